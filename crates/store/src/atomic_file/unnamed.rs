//! Files without a name until they are finished, where the file system has them.
//!
//! They leave no files, however the process ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::target::{TargetDirectory, TargetName};

/// A new file in `dir` that has no name; `None` where there are none.
pub(super) fn open(dir: &TargetDirectory, mode: u32) -> io::Result<Option<File>> {
    match dir.open_unnamed(mode) {
        Ok(file) => Ok(Some(file)),
        // File systems without such files answer EOPNOTSUPP. A kernel that does not know
        // `O_TMPFILE` sees an attempt to write to a directory, and answers EISDIR.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How an attempt to give a file its name ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamingOutcome {
    Named,
    Taken,
    /// Not supported here.
    Refused,
}

/// Links `file` to its name.
pub(super) fn name(file: &File, target: TargetName<'_>) -> io::Result<NamingOutcome> {
    let result = match target.name_file(file) {
        // Older kernels want a privilege for this, and a detour otherwise.
        Err(Errno::NOENT | Errno::INVAL | Errno::PERM) => {
            let detour = format!("/proc/self/fd/{}", file.as_raw_fd());
            target.name_by_detour(&detour)
        }
        other => other,
    };
    match result {
        Ok(()) => Ok(NamingOutcome::Named),
        Err(Errno::EXIST) => Ok(NamingOutcome::Taken),
        // Some containers have no `/proc` for the detour, or forbid the call; a temporary name
        // still works there.
        Err(Errno::NOENT | Errno::PERM | Errno::OPNOTSUPP | Errno::XDEV | Errno::NOSYS) => {
            Ok(NamingOutcome::Refused)
        }
        Err(error) => Err(error.into()),
    }
}
