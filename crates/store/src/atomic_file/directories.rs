//! Creates directories, and verifies existing ones.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::PermissionModes;
use super::target::{LINK_REASON, TargetDirectory};
use crate::temporary::{self, LeftOvers};
use crate::{StoreError, remote};

/// How often a directory is created whose parents vanish.
const N_ATTEMPTS: usize = 10;
const CREATE: &str = "create the directory";

/// Directories that are known to be there.
#[derive(Debug, Default)]
pub(super) struct KnownDirectories {
    /// Below it no symbolic link is followed, and nothing is created elsewhere.
    root: Option<PathBuf>,
    is_cleaning: bool,
    known: Mutex<HashSet<PathBuf>>,
    /// The root without links in its path, once it is there.
    real_root: Mutex<Option<PathBuf>>,
    left_overs: Mutex<LeftOvers>,
}

impl KnownDirectories {
    pub(super) fn below(root: &Path, is_cleaning: bool) -> KnownDirectories {
        KnownDirectories {
            root: Some(root.to_owned()),
            is_cleaning,
            ..KnownDirectories::default()
        }
    }

    pub(super) fn left_overs(&self) -> LeftOvers {
        *lock(&self.left_overs)
    }

    /// Whether `path` was noted by [`KnownDirectories::note`].
    pub(super) fn knows(&self, path: &Path) -> bool {
        lock(&self.known).contains(path)
    }

    /// Remembers that `path` is there, and how.
    pub(super) fn note(&self, path: &Path) {
        lock(&self.known).insert(path.to_owned());
    }

    /// Opens an existing directory. Inside a dump it follows no links, even if one has replaced the
    /// directory.
    pub(super) fn open(&self, dir: &Path) -> io::Result<TargetDirectory> {
        remote::check_writable(dir)?;
        let below = self.root.as_ref().and_then(|root| {
            let below = dir.strip_prefix(root).ok()?;
            let mut components = below.components();
            let is_plain = components.all(|component| matches!(component, Component::Normal(_)));
            is_plain.then_some((root, below))
        });
        match below {
            None => Ok(TargetDirectory::At(dir.to_owned())),
            Some((root, below)) => TargetDirectory::open(&self.real_root(root)?, below),
        }
    }

    fn real_root(&self, root: &Path) -> io::Result<PathBuf> {
        let mut known = lock(&self.real_root);
        if let Some(real) = &*known {
            return Ok(real.clone());
        }
        let real = root.canonicalize()?;
        *known = Some(real.clone());
        Ok(real)
    }

    /// Creates one directory; it has `modes` whatever the umask is.
    pub(super) fn make(&self, dir: &Path, modes: PermissionModes) -> io::Result<()> {
        let (parent, name) = split(dir);
        let parent = self.open(parent)?;
        let target = parent.target(name);
        target.create_dir(modes.dir)?;
        modes.settle_dir(|| target.open_dir());
        Ok(())
    }

    pub(super) fn create(&self, dir: &Path, modes: PermissionModes) -> Result<(), StoreError> {
        if self.knows(dir) {
            return Ok(());
        }
        remote::check_writable(dir).map_err(StoreError::io(CREATE, dir))?;
        match &self.root {
            None => create_with_parents(dir, modes)?,
            Some(root) => self.create_below(root, dir, modes)?,
        }
        self.note(dir);
        Ok(())
    }

    /// Forgets that `path` is there.
    pub(super) fn forget(&self, path: &Path) {
        lock(&self.known).remove(path);
    }

    fn create_below(
        &self,
        root: &Path,
        dir: &Path,
        modes: PermissionModes,
    ) -> Result<(), StoreError> {
        let mut result = self.try_below(root, dir, modes);
        // A parent that was empty may have been taken back in between.
        for _ in 1..N_ATTEMPTS {
            match &result {
                Err(error) if error.is_not_found() => {
                    // Any parent may be missing, and known ones are not created again.
                    for parent in dir.ancestors() {
                        self.forget(parent);
                    }
                    result = self.try_below(root, dir, modes);
                }
                _ => break,
            }
        }
        result
    }

    fn try_below(&self, root: &Path, dir: &Path, modes: PermissionModes) -> Result<(), StoreError> {
        let refuse = |reason| StoreError::io(CREATE, dir)(io::Error::other(reason));
        let below = dir
            .strip_prefix(root)
            .map_err(|_| refuse("it is not in the directory of the dump"))?;
        if !self.knows(root) {
            create_with_parents(root, modes)?;
            self.clean(root);
            self.note(root);
        }
        let mut path = root.to_owned();
        for component in below.components() {
            let Component::Normal(name) = component else {
                return Err(refuse("it leads out of the directory of the dump"));
            };
            path.push(name);
            if self.knows(&path) {
                continue;
            }
            match self.make(&path, modes) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // `mkdir` answers the same where a file or a link has the name.
                    check_is_directory(&path)?;
                    self.clean(&path);
                }
                Err(error) => return Err(StoreError::io(CREATE, &path)(error)),
            }
            self.note(&path);
        }
        Ok(())
    }

    fn clean(&self, dir: &Path) {
        if self.is_cleaning {
            let found = temporary::clean(dir);
            let mut sum = lock(&self.left_overs);
            *sum = *sum + found;
        }
    }
}

/// Directory and name of a path.
pub(super) fn split(path: &Path) -> (&Path, &Path) {
    let dir = path.parent().unwrap_or(Path::new("."));
    (dir, path.file_name().map_or(path, Path::new))
}

/// Creates one directory, whatever links lead to it.
fn make(dir: &Path, modes: PermissionModes) -> io::Result<()> {
    DirBuilder::new().mode(modes.dir).create(dir)?;
    modes.settle_dir(|| File::open(dir));
    Ok(())
}

/// Creates `dir` and its missing parents; symbolic links among them are the caller's choice.
fn create_with_parents(dir: &Path, modes: PermissionModes) -> Result<(), StoreError> {
    if dir.as_os_str().is_empty() {
        return Ok(());
    }
    let mut result = make(dir, modes);
    for _ in 1..N_ATTEMPTS {
        let Some(parent) = dir.parent().filter(|_| {
            result
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        }) else {
            break;
        };
        create_with_parents(parent, modes)?;
        result = make(dir, modes);
    }
    match result {
        // `.` and `/` and what another process was faster to create.
        Err(_) if dir.is_dir() => Ok(()),
        result => result.map_err(StoreError::io(CREATE, dir)),
    }
}

/// Checks that `path` is a directory and not a link to one created by another user.
fn check_is_directory(path: &Path) -> Result<(), StoreError> {
    let metadata = fs::symlink_metadata(path).map_err(StoreError::io("examine", path))?;
    if metadata.is_dir() {
        return Ok(());
    }
    let reason = if metadata.is_symlink() {
        LINK_REASON
    } else {
        "there is a file"
    };
    Err(StoreError::io(CREATE, path)(io::Error::other(reason)))
}

/// Locks even after a panic, because no panic leaves the data behind these locks half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
