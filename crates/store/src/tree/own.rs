//! What we keep beside a dump, in a directory that readers pass over.

use std::path::{Path, PathBuf};

/// The directory's name, below the directory that a dump goes to.
pub const OWN_DIR: &str = ".opscope";

/// Where files are found by what they hold.
pub fn content_dir(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("content")
}
