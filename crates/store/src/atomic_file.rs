//! Directories and files that appear whole or not at all.
//!
//! A file is written without a name, or under a temporary name in its own directory, and then given
//! its final name in one step, which fails if the name is taken, or replaces the other file if the
//! caller asks for it. A directory listing shows complete files only. A finished file can get
//! further names. A creator can also do a dry run, which only counts what it would write.

mod append;
mod directories;
mod growing;
mod link;
mod pace;
mod pretend;
mod size_limit;
mod target;
mod unnamed;

use std::fs::{File, Permissions};
use std::io::{self, IoSlice, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use self::append::AppendedTable;
use self::directories::{KnownDirectories, split};
use self::pace::WritePace;
use self::pretend::{DryRunNames, n_bytes, n_bytes_of};
use self::size_limit::without_signal;
use self::target::{TargetDirectory, TargetName};
use self::unnamed::NamingOutcome;
use crate::StoreError;
use crate::temporary::{LeftOvers, TemporaryName};

pub use growing::GrowingFile;
pub use link::{FileIdentity, LinkMethod, SharingOutcome, file_holds};
pub use pretend::DryRunTotals;
pub(crate) use pretend::nearest;

/// The prefix of temporary files, which readers ignore.
pub use crate::temporary::PREFIX as TEMPORARY_PREFIX;

/// Permission bits for new files and directories. Dumps can hold private data, so the default
/// admits only the owner. The bits apply whatever the umask is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionModes {
    /// For directories.
    pub dir: u32,
    /// For files.
    pub file: u32,
}

impl Default for PermissionModes {
    fn default() -> Self {
        PermissionModes {
            dir: 0o700,
            file: 0o600,
        }
    }
}

impl PermissionModes {
    /// Sets the bits for other users, which the umask may have removed although the caller asked
    /// for them. A file system without permissions may refuse: then fewer users have access.
    fn settle_file(self, file: &File) {
        if self.file & 0o077 == 0 {
            return;
        }
        if let Ok(metadata) = file.metadata() {
            let mode = metadata.permissions().mode();
            if mode & 0o777 != self.file {
                let _ = file.set_permissions(Permissions::from_mode(mode & !0o777 | self.file));
            }
        }
    }

    fn settle_dir(self, open: impl FnOnce() -> io::Result<File>) {
        if self.dir & 0o077 == 0 {
            return;
        }
        let Ok(dir) = open() else {
            return;
        };
        if let Ok(metadata) = dir.metadata() {
            let mode = metadata.permissions().mode();
            if mode & 0o777 != self.dir && metadata.is_dir() {
                // The higher bits stay: a directory inherits the set-group-ID bit from its parent.
                let _ = dir.set_permissions(Permissions::from_mode(mode & !0o777 | self.dir));
            }
        }
    }
}

/// Creates directories and files with given permissions; remembers the directories.
#[derive(Debug)]
pub struct Creator {
    modes: PermissionModes,
    directories: KnownDirectories,
    /// Maximum number of names of a file.
    n_links_max: u64,
    /// Whether files without a name work, as far as is known.
    has_unnamed: AtomicBool,
    pace: WritePace,
    last_table: Mutex<Option<AppendedTable>>,
    /// Receives everything instead of the disk in a dry run.
    pretence: Option<DryRunNames>,
}

impl Default for Creator {
    fn default() -> Self {
        Creator::new(PermissionModes::default())
    }
}

impl Creator {
    /// A creator that uses `modes`.
    pub fn new(modes: PermissionModes) -> Creator {
        Creator {
            modes,
            n_links_max: u64::MAX,
            has_unnamed: AtomicBool::new(true),
            pace: WritePace::default(),
            last_table: Mutex::default(),
            directories: KnownDirectories::default(),
            pretence: None,
        }
    }

    /// The same, but limits a file to `n` hard-linked names, as if the file system allowed no more.
    /// File systems have their own limit, 65,000 on ext4.
    #[must_use]
    pub fn with_links_max(self, n: u64) -> Creator {
        Creator {
            n_links_max: n,
            ..self
        }
    }

    /// A creator that creates nothing: it answers as one with `modes` would, remembers which names
    /// would be taken, and counts.
    pub fn pretending(modes: PermissionModes) -> Creator {
        Creator {
            pretence: Some(DryRunNames::default()),
            ..Creator::new(modes)
        }
    }

    /// A creator for the dump below `root`: it creates directories nowhere else, and follows no
    /// symbolic link below `root`, whatever its origin.
    pub fn in_dump(root: &Path, modes: PermissionModes) -> Creator {
        Creator {
            directories: KnownDirectories::below(root, false),
            ..Creator::new(modes)
        }
    }

    /// Like [`Creator::in_dump`], and removes the unfinished files of killed processes from each
    /// directory that existed before.
    pub fn in_shared_dump(root: &Path, modes: PermissionModes) -> Creator {
        Creator {
            directories: KnownDirectories::below(root, true),
            ..Creator::new(modes)
        }
    }

    /// Returns the counts of the unfinished files removed so far.
    pub fn left_overs(&self) -> LeftOvers {
        self.directories.left_overs()
    }

    /// Returns the totals that a pretending creator would have written so far, if files occupy
    /// multiples of `block_bytes`; `None` for a creator that writes.
    pub fn pretended(&self, block_bytes: u64) -> Option<DryRunTotals> {
        let pretence = self.pretence.as_ref()?;
        Some(pretence.total(block_bytes))
    }

    /// The permissions of what is created.
    pub fn modes(&self) -> PermissionModes {
        self.modes
    }

    /// The stamp of an existing or pretended file.
    ///
    /// # Errors
    /// The operating system's.
    pub fn stamp(&self, path: &Path) -> io::Result<FileIdentity> {
        match &self.pretence {
            Some(pretence) => pretence.stamp(path),
            None => FileIdentity::read(path),
        }
    }

    /// Whether something is there, or would be.
    pub fn exists(&self, path: &Path) -> bool {
        match &self.pretence {
            Some(pretence) => pretence.exists(path),
            None => path.exists(),
        }
    }

    /// Creates `dir` and its missing parents.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, or if a symbolic link is in the way.
    pub fn create_dir(&self, dir: &Path) -> Result<(), StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.create_dir(dir);
            return result.map_err(StoreError::io("create the directory", dir));
        }
        self.directories.create(dir, self.modes)
    }

    /// Forgets `dir`, which is about to be removed, so that it is created again when needed.
    pub fn forget_dir(&self, dir: &Path) {
        self.directories.forget(dir);
    }

    /// Creates `dir` in an existing directory; returns `false` if it is there already.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn create_new_dir(&self, dir: &Path) -> Result<bool, StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.create_new_dir(dir);
            return result.map_err(StoreError::io("create the directory", dir));
        }
        match self.directories.make(dir, self.modes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(StoreError::io("create the directory", dir)(error)),
        }
    }

    /// Writes `parts`, one after the other, as the new file `path`.
    ///
    /// Returns `false`, and leaves the other file alone, if `path` exists.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses; no file is left then.
    pub fn create_file(&self, path: &Path, parts: &[&[u8]]) -> Result<bool, StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.create(path, n_bytes(parts));
            return result.map_err(StoreError::io("write", path));
        }
        self.create_with(path, |file| self.pace.write(file, parts))
    }

    /// [`Creator::create_file`] with content that `write` produces.
    ///
    /// # Errors
    /// As for [`Creator::create_file`].
    pub fn create_with(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<bool, StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = n_bytes_of(write).and_then(|n_bytes| pretence.create(path, n_bytes));
            return result.map_err(StoreError::io("write", path));
        }
        let (dir, name) = split(path);
        let has_unnamed = self.has_unnamed.load(Ordering::Relaxed);
        if has_unnamed && let (dir, Some(mut file)) = self.in_dir(dir, unnamed::open)? {
            self.modes.settle_file(&file);
            let written = without_signal(|| write(&mut file));
            let result = written.and_then(|()| unnamed::name(&file, dir.target(name)));
            match result.map_err(StoreError::io("write", path))? {
                NamingOutcome::Named => return Ok(true),
                NamingOutcome::Taken => return Ok(false),
                NamingOutcome::Refused => {}
            }
            // Later files get a temporary name at once.
            self.has_unnamed.store(false, Ordering::Relaxed);
            // `write` runs only once, so the content comes out of the file that could not be named.
            return self.create_named(path, |copy| {
                file.rewind()?;
                io::copy(&mut file, copy).map(drop)
            });
        }
        self.has_unnamed.store(false, Ordering::Relaxed);
        self.create_named(path, write)
    }

    /// [`Creator::create_with`] by way of a temporary name.
    fn create_named(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<bool, StoreError> {
        self.by_way_of_temporary(path, write, |temporary, target| {
            let is_named = temporary.rename_to_free(target)?;
            if !is_named {
                temporary.remove()?;
            }
            Ok(is_named)
        })
    }

    /// Writes a file under a temporary name, and renames it by `publish`.
    fn by_way_of_temporary<T>(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
        publish: impl FnOnce(TargetName<'_>, TargetName<'_>) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        let (dir, name) = split(path);
        let temporary = temporary_name();
        let (dir, mut file) = self.in_dir(dir, |dir, mode| dir.target(&temporary).create(mode))?;
        let temporary = dir.target(&temporary);
        self.modes.settle_file(&file);
        let result =
            without_signal(|| write(&mut file)).and_then(|()| publish(temporary, dir.target(name)));
        if result.is_err() {
            // The error that matters is the first one.
            let _ = temporary.remove();
        }
        result.map_err(StoreError::io("write", path))
    }

    /// Writes `parts`, one after the other, as the file `path`, in place of the file or symbolic
    /// link that has the name.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses; the old file is untouched then.
    pub fn replace_file(&self, path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.replace(path, n_bytes(parts));
            return result.map_err(StoreError::io("write", path));
        }
        self.replace_with(path, |file| write_all_vectored(file, parts))
    }

    /// [`Creator::replace_file`] with content that `write` produces.
    ///
    /// # Errors
    /// As for [`Creator::replace_file`].
    pub fn replace_with(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = n_bytes_of(write).and_then(|n_bytes| pretence.replace(path, n_bytes));
            return result.map_err(StoreError::io("write", path));
        }
        self.by_way_of_temporary(path, write, |temporary, target| temporary.rename_to(target))
    }

    /// Renames the file `from` to `to`; `false`, with no change, if that name is taken.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn rename_new(&self, from: &Path, to: &Path) -> Result<bool, StoreError> {
        let ((from_dir, from_name), (to_dir, to_name)) = (split(from), split(to));
        let from_dir = self.directories.open(from_dir);
        let renamed = from_dir.and_then(|from_dir| {
            let to_dir = self.directories.open(to_dir)?;
            let target = to_dir.target(to_name);
            from_dir.target(from_name).rename_to_free(target)
        });
        renamed.map_err(StoreError::io("rename", from))
    }

    /// Opens something in `dir`, which is created if it is missing or has been removed since.
    fn in_dir<T>(
        &self,
        dir: &Path,
        open: impl Fn(&TargetDirectory, u32) -> io::Result<T>,
    ) -> Result<(TargetDirectory, T), StoreError> {
        let try_it = || {
            let directory = self.directories.open(dir)?;
            let opened = open(&directory, self.modes.file)?;
            Ok((directory, opened))
        };
        self.create_dir(dir)?;
        let result: io::Result<(TargetDirectory, T)> = try_it();
        match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget_dir(dir);
                self.create_dir(dir)?;
                try_it()
            }
            result => result,
        }
        .map_err(StoreError::io("create a file in", dir))
    }
}

fn temporary_name() -> PathBuf {
    TemporaryName::next().to_string().into()
}

/// `write_all` for several buffers, with as few system calls as the kernel allows.
pub fn write_all_vectored(file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts
        .iter()
        // A call with only empty buffers writes 0 bytes, which would look like a full disk.
        .filter(|part| !part.is_empty())
        .map(|part| IoSlice::new(part))
        .collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
