//! A directory for files of a model that a process makes for itself.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use opscope_store::temporary::{self, TemporaryName};

/// A directory that only this user can look into. It goes with everything in it when it is dropped.
pub(super) struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// Makes one in `parent`, and removes those that killed processes have left there.
    pub(super) fn new(parent: &Path) -> Result<PrivateDir, String> {
        const N_TRIES: usize = 64;
        // A process that was killed cannot remove its own.
        temporary::clean_directories(parent);
        for _ in 0..N_TRIES {
            let path = parent.join(TemporaryName::next().to_string());
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(PrivateDir { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let path = path.display();
                    return Err(format!("cannot create the directory `{path}`: {error}"));
                }
            }
        }
        let parent = parent.display();
        Err(format!(
            "cannot create a directory in `{parent}`: {N_TRIES} names are taken"
        ))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // There is no caller left to report the failure to.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_directory_is_private_and_goes() {
        let parent = tempfile::tempdir().unwrap();
        let [first, second] = [0, 1].map(|_| PrivateDir::new(parent.path()).unwrap());
        let path = first.path.clone();
        assert_ne!(path, second.path);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::write(path.join("weights"), [0; 9]).unwrap();
        drop(first);
        assert!(!path.exists() && second.path.exists());
        let missing = parent.path().join("none");
        let error = PrivateDir::new(&missing).err().unwrap();
        assert!(error.contains("none"), "{error}");
    }
}
