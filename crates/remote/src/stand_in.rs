//! The private directory of files without content.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::temporary::{self, TemporaryName};

use crate::lock;

/// Nobody else looks into these directories.
const DIR_MODE: u32 = 0o700;
/// Names that are tried.
const N_TRIES: usize = 64;

/// The directory, made when it is needed.
#[derive(Default)]
pub(crate) struct StandIns {
    dir: Mutex<Option<(u32, PathBuf)>>,
    n_places: AtomicU64,
}

impl StandIns {
    /// A directory for one listing.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn next_place(&self) -> io::Result<PathBuf> {
        let number = self.n_places.fetch_add(1, Ordering::Relaxed);
        let place = self.dir()?.join(number.to_string());
        self.create_dir(&place)?;
        Ok(place)
    }

    /// Makes a directory with those above it.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn create_dir(&self, dir: &Path) -> io::Result<()> {
        // Most files of a dump are in a directory with others.
        if dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().mode(DIR_MODE).recursive(true).create(dir)
    }

    /// A file that is gone once nobody has it open.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        tempfile::tempfile_in(self.dir()?)
    }

    /// Where large things of this process go, on the disk that `TMPDIR` names.
    fn dir(&self) -> io::Result<PathBuf> {
        let mut known = lock(&self.dir);
        let pid = std::process::id();
        // A child that was forked off makes its own: its parent goes on with this one.
        if let Some((owner, dir)) = &*known
            && *owner == pid
        {
            return Ok(dir.clone());
        }
        let parent = std::env::temp_dir();
        // A process that was killed cannot remove its own.
        temporary::clean_directories(&parent);
        for _ in 0..N_TRIES {
            let dir = parent.join(TemporaryName::next().to_string());
            match DirBuilder::new().mode(DIR_MODE).create(&dir) {
                Ok(()) => {
                    // Whatever the umask is.
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

    /// Removes the directory with everything in it. What is open stays readable.
    pub(crate) fn remove(&self) {
        let mut known = lock(&self.dir);
        // The parent's is not this process's to remove.
        if let Some((_, dir)) = known.take_if(|(owner, _)| *owner == std::process::id()) {
            let _ = fs::remove_dir_all(&dir);
            // Children that Python forks off end without a word, and have left theirs.
            temporary::clean_directories(dir.parent().unwrap_or(&dir));
        }
    }
}
