//! Files without a name until they are finished, where the file system has them.
//!
//! Whatever ends the process, nothing is left of them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;

/// A new file in `dir` that has no name; `None` where there are none.
pub(super) fn open(dir: &Path, mode: u32) -> io::Result<Option<File>> {
    let flags = i32::try_from(OFlags::TMPFILE.bits()).unwrap_or(0);
    // It can be read too: where it cannot be given a name, it is copied.
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .mode(mode)
        .open(dir);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            _ => Err(error),
        },
    }
}

/// How an attempt to give a file its name ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Named,
    Taken,
    /// There is no way to do so here.
    Refused,
}

/// Gives `file` its name.
pub(super) fn name(file: &File, path: &Path) -> io::Result<Naming> {
    let result = match linkat(file, "", CWD, path, AtFlags::EMPTY_PATH) {
        // Older kernels want a privilege for this, and a detour otherwise.
        Err(Errno::NOENT | Errno::INVAL | Errno::PERM) => {
            let detour = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, detour, CWD, path, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    };
    match result {
        Ok(()) => Ok(Naming::Named),
        Err(Errno::EXIST) => Ok(Naming::Taken),
        Err(Errno::NOENT | Errno::PERM | Errno::OPNOTSUPP | Errno::XDEV | Errno::NOSYS) => {
            Ok(Naming::Refused)
        }
        Err(error) => Err(error.into()),
    }
}
