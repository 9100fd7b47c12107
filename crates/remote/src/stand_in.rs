//! The private directory of the placeholders.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::temporary::{self, TemporaryName};

use crate::lock;

/// Other users cannot read these directories.
const DIR_MODE: u32 = 0o700;
/// Number of names to try.
const N_TRIES: usize = 64;

/// The directory, created on first use.
#[derive(Default)]
pub(crate) struct StandIns {
    dir: Mutex<Option<(u32, PathBuf)>>,
    n_places: AtomicU64,
}

impl StandIns {
    /// Creates a directory for one listing.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn next_place(&self) -> io::Result<PathBuf> {
        let number = self.n_places.fetch_add(1, Ordering::Relaxed);
        let place = self.dir()?.join(number.to_string());
        self.create_dir(&place)?;
        Ok(place)
    }

    /// Creates a directory and its parents.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn create_dir(&self, dir: &Path) -> io::Result<()> {
        // Most files of a dump share a directory.
        if dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().mode(DIR_MODE).recursive(true).create(dir)
    }

    /// Opens an unnamed file, which disappears when it is closed.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        tempfile::tempfile_in(self.dir()?)
    }

    /// The directory for large data of this process, on the disk that `TMPDIR` names.
    fn dir(&self) -> io::Result<PathBuf> {
        let mut known = lock(&self.dir);
        let pid = std::process::id();
        // A forked child creates another directory, as its parent still uses this one.
        if let Some((owner, dir)) = &*known
            && *owner == pid
        {
            return Ok(dir.clone());
        }
        let parent = std::env::temp_dir();
        // Removes directories of processes that were killed.
        temporary::clean_directories(&parent);
        for _ in 0..N_TRIES {
            let dir = parent.join(TemporaryName::next().to_string());
            match DirBuilder::new().mode(DIR_MODE).create(&dir) {
                Ok(()) => {
                    // Regardless of the umask.
                    fs::set_permissions(&dir, Permissions::from_mode(DIR_MODE))?;
                    *known = Some((pid, dir.clone()));
                    return Ok(dir);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let reason = format!("cannot create a directory in `{}`", parent.display());
                    return Err(io::Error::new(error.kind(), format!("{reason}: {error}")));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes the directory and its content. Open files stay readable.
    pub(crate) fn remove(&self) {
        let mut known = lock(&self.dir);
        // The parent's directory is not this process's to remove.
        if let Some((_, dir)) = known.take_if(|(owner, _)| *owner == std::process::id()) {
            let _ = fs::remove_dir_all(&dir);
            // Children forked by Python end without cleaning up and leave theirs.
            temporary::clean_directories(dir.parent().unwrap_or(&dir));
        }
    }
}
