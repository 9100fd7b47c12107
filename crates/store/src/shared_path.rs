//! A path that shares memory with equal ones.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path that is cheap to clone, because many tensors share a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedPath(Arc<Path>);

impl SharedPath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Default for SharedPath {
    fn default() -> SharedPath {
        SharedPath(Path::new("").into())
    }
}

impl Deref for SharedPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for SharedPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl From<&Path> for SharedPath {
    fn from(path: &Path) -> SharedPath {
        SharedPath(path.into())
    }
}

impl From<&PathBuf> for SharedPath {
    fn from(path: &PathBuf) -> SharedPath {
        SharedPath(path.as_path().into())
    }
}

impl From<PathBuf> for SharedPath {
    fn from(path: PathBuf) -> SharedPath {
        SharedPath(path.into())
    }
}

impl fmt::Debug for SharedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_path(), f)
    }
}
