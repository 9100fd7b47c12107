//! What we keep beside a dump, in a directory that readers pass over.

use std::path::{Path, PathBuf};

use super::acl::clean_name;

/// The directory's name, below the directory that a dump goes to.
pub const OWN_DIR: &str = ".opscope";

/// The description of a graph, beside the dumps of models that came from no file.
pub fn graph_file(root: &Path, name: &str) -> PathBuf {
    let name = clean_name(name);
    root.join(OWN_DIR)
        .join("graphs")
        .join(format!("{name}.json"))
}

/// Which graph was executed when, beside the dumps of models that came from no file.
pub fn executions_file(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("executions.json")
}

/// Where files are found by what they hold.
pub fn content_dir(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("content")
}
