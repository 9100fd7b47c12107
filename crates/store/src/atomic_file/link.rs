//! Further names for finished files.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Creator;
use crate::StoreError;

/// Which way a file came to another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// One file with two names.
    Hard,
    /// Two files that share their blocks until one of them is changed.
    Reflink,
    /// Two files, each with bytes of its own.
    Copy,
}

/// How an attempt to share a file's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The name is there, [`Linked::Hard`] or [`Linked::Reflink`].
    Shared(Linked),
    /// The name was taken; what has it is untouched.
    Taken,
    /// The file system cannot share the bytes, or the file has as many names as it may have.
    Refused,
}

impl Creator {
    /// Gives the finished file `existing` the further name `new`, unless that is taken: `None`.
    ///
    /// By a hard link; where the file system has none, or not between these two, or `existing` has as
    /// many as it may have, by a file that shares its blocks, or else by a copy. `new` appears whole or
    /// not at all.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, as where `existing` is gone.
    pub fn link_file(&self, existing: &Path, new: &Path) -> Result<Option<Linked>, StoreError> {
        match self.share_file(existing, new)? {
            Sharing::Shared(linked) => Ok(Some(linked)),
            Sharing::Taken => Ok(None),
            Sharing::Refused => {
                let mut source = File::open(existing).map_err(StoreError::io("open", existing))?;
                let is_new = self.create_with(new, |file| io::copy(&mut source, file).map(drop))?;
                Ok(is_new.then_some(Linked::Copy))
            }
        }
    }

    /// [`Creator::link_file`] that does not fall back on a copy.
    ///
    /// # Errors
    /// As for [`Creator::link_file`].
    pub fn share_file(&self, existing: &Path, new: &Path) -> Result<Sharing, StoreError> {
        if let Some(dir) = new.parent() {
            self.create_dir(dir)?;
        }
        match self.hard_link(existing, new) {
            Ok(()) => Ok(Sharing::Shared(Linked::Hard)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Sharing::Taken),
            Err(error) if is_refusal(&error) => self.reflink(existing, new),
            Err(error) => Err(StoreError::io("link", new)(error)),
        }
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        if self.n_links_max < u64::MAX && existing.metadata()?.nlink() >= self.n_links_max {
            return Err(rustix::io::Errno::MLINK.into());
        }
        std::fs::hard_link(existing, new)
    }

    fn reflink(&self, existing: &Path, new: &Path) -> Result<Sharing, StoreError> {
        let source = File::open(existing).map_err(StoreError::io("open", existing))?;
        let mut is_refused = false;
        let result = self.create_with(new, |file| {
            rustix::fs::ioctl_ficlone(file, &source).map_err(|error| {
                let error = io::Error::from(error);
                is_refused = is_refusal(&error);
                error
            })
        });
        match result {
            Ok(true) => Ok(Sharing::Shared(Linked::Reflink)),
            Ok(false) => Ok(Sharing::Taken),
            Err(_) if is_refused => Ok(Sharing::Refused),
            Err(error) => Err(error),
        }
    }
}

/// Whether a file system says that it cannot do this, as opposed to having failed at it.
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
