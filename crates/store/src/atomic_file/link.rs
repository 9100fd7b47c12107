//! Further names for finished files.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::directories::split;
use super::{Creator, temporary_name};
use crate::{StoreError, regular_file};

/// Number of bytes that are compared at once.
const COMPARE_BYTES: usize = 256 << 10;

/// Which way a file came to another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMethod {
    /// One file with two names.
    Hard,
    /// Two files that share their blocks until one of them is changed.
    Reflink,
    /// Two files with separate content.
    Copy,
}

/// How an attempt to share a file's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingOutcome {
    /// The name is there, [`LinkMethod::Hard`] or [`LinkMethod::Reflink`].
    Shared(LinkMethod),
    /// The name was taken; the existing file is untouched.
    Taken,
    /// The file system cannot share the bytes, the file has as many names as it may have, or it is
    /// gone.
    Refused,
}

impl Creator {
    /// Links the finished file `existing` to the further name `new`, or returns `None` if that is
    /// taken.
    ///
    /// By a hard link; where the file system has none, or not between these two, or `existing` has
    /// as many as it may have, by a file that shares its blocks, or else by a copy. `new` appears
    /// whole or not at all.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, as where `existing` is gone.
    pub fn link_file(&self, existing: &Path, new: &Path) -> Result<Option<LinkMethod>, StoreError> {
        match self.share_file(existing, new)? {
            SharingOutcome::Shared(linked) => Ok(Some(linked)),
            SharingOutcome::Taken => Ok(None),
            SharingOutcome::Refused => {
                let opened = regular_file::open_in_dump(existing);
                let (mut source, _) = opened.map_err(StoreError::io("open", existing))?;
                let is_new = self.create_with(new, |file| io::copy(&mut source, file).map(drop))?;
                Ok(is_new.then_some(LinkMethod::Copy))
            }
        }
    }

    /// [`Creator::link_file`] that does not fall back on a copy.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system fails.
    pub fn share_file(&self, existing: &Path, new: &Path) -> Result<SharingOutcome, StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.link(existing, new);
            return result.map_err(StoreError::io("link", new));
        }
        if let Some(dir) = new.parent() {
            self.create_dir(dir)?;
        }
        let result = match self.hard_link(existing, new) {
            // The directory was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && existing.exists() => {
                if let Some(dir) = new.parent() {
                    self.forget_dir(dir);
                    self.create_dir(dir)?;
                }
                self.hard_link(existing, new)
            }
            result => result,
        };
        match result {
            Ok(()) => Ok(SharingOutcome::Shared(LinkMethod::Hard)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(SharingOutcome::Taken),
            Err(error) if is_refusal(&error) => self.reflink(existing, new),
            Err(_) if !existing.exists() => Ok(SharingOutcome::Refused),
            Err(error) => Err(StoreError::io("link", new)(error)),
        }
    }

    /// Links the finished file `existing` to the name `new`, replacing the file of that name.
    /// Returns `false`, and leaves that file alone, if the file system refuses.
    ///
    /// # Errors
    /// As for [`Creator::link_file`].
    pub fn share_file_replacing(&self, existing: &Path, new: &Path) -> Result<bool, StoreError> {
        if let Some(pretence) = &self.pretence {
            let result = pretence.link_replacing(existing, new);
            return result.map_err(StoreError::io("link", new));
        }
        let (dir, name) = split(new);
        let temporary = temporary_name();
        if !matches!(
            self.share_file(existing, &dir.join(&temporary))?,
            SharingOutcome::Shared(_)
        ) {
            return Ok(false);
        }
        let dir = self
            .directories
            .open(dir)
            .map_err(StoreError::io("link", new))?;
        let temporary = dir.target(&temporary);
        let result = temporary.rename_to(dir.target(name));
        // It is still there if the rename failed, or if both names were the same file's before.
        let _ = temporary.remove();
        result.map_err(StoreError::io("link", new))?;
        Ok(true)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        // Without a configured limit the file system's answer is enough, and saves a `stat`.
        if self.n_links_max < u64::MAX && existing.metadata()?.nlink() >= self.n_links_max {
            return Err(rustix::io::Errno::MLINK.into());
        }
        let ((from_dir, from_name), (to_dir, to_name)) = (split(existing), split(new));
        let from_dir = self.directories.open(from_dir)?;
        let to_dir = self.directories.open(to_dir)?;
        from_dir.target(from_name).link_to(to_dir.target(to_name))
    }

    fn reflink(&self, existing: &Path, new: &Path) -> Result<SharingOutcome, StoreError> {
        let Ok((source, _)) = regular_file::open_in_dump(existing) else {
            return Ok(SharingOutcome::Refused);
        };
        // The error comes back wrapped with its path; the flag keeps whether it was a refusal.
        let mut is_refused = false;
        let result = self.create_with(new, |file| {
            rustix::fs::ioctl_ficlone(file, &source).map_err(|error| {
                let error = io::Error::from(error);
                is_refused = is_refusal(&error);
                error
            })
        });
        match result {
            Ok(true) => Ok(SharingOutcome::Shared(LinkMethod::Reflink)),
            Ok(false) => Ok(SharingOutcome::Taken),
            Err(_) if is_refused => Ok(SharingOutcome::Refused),
            Err(error) => Err(error),
        }
    }
}

/// Properties that show, without reading a file, whether it is unchanged.
///
/// Further names do not change it; writing into the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    n_bytes: u64,
    changed: (i64, i64),
}

impl FileIdentity {
    /// That of a file that is not there: no device has its number.
    pub(super) fn pretended(serial: u64, n_bytes: u64) -> FileIdentity {
        FileIdentity {
            device: u64::MAX,
            inode: serial,
            n_bytes,
            changed: (0, 0),
        }
    }

    /// The stamp of the regular file `path`.
    ///
    /// # Errors
    /// The operating system's, or [`io::ErrorKind::InvalidInput`] if it is something else.
    pub fn read(path: &Path) -> io::Result<FileIdentity> {
        let metadata = path.symlink_metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            n_bytes: metadata.len(),
            // Not the time of the last change of the inode: every further name would move that.
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    /// The file's length.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}

/// Whether a file holds exactly `parts`, one after the other.
///
/// # Errors
/// The operating system's.
pub fn file_holds(path: &Path, parts: &[&[u8]]) -> io::Result<bool> {
    let (mut file, metadata) = regular_file::open_in_dump(path)?;
    let n_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
    if metadata.len() != n_bytes {
        return Ok(false);
    }
    let mut buffer = vec![0; COMPARE_BYTES.min(usize::try_from(n_bytes).unwrap_or(COMPARE_BYTES))];
    for chunk in parts.iter().flat_map(|part| part.chunks(COMPARE_BYTES)) {
        let buffer = &mut buffer[..chunk.len()];
        match file.read_exact(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            result => result?,
        }
        if buffer != chunk {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an error means that the file system does not support the operation, rather than that it
/// failed.
fn is_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let refusals = [
        Errno::MLINK,
        Errno::XDEV,
        Errno::PERM,
        Errno::OPNOTSUPP,
        Errno::NOTTY,
        Errno::INVAL,
        Errno::NOSYS,
    ];
    Errno::from_io_error(error).is_some_and(|errno| refusals.contains(&errno))
}
