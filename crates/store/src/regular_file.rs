//! Opening files for reading: regular files, and nothing else.
//!
//! A named pipe would keep its reader waiting, and reading a device can do anything. Every reader
//! of this project opens its files here; `cargo xtask check` sees to it.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::remote;

/// Maximum number of bytes that are allocated before any of them has been read.
const RESERVE_BYTES_MAX: u64 = 16 << 20;

/// Whether a symbolic link in the last place of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLink {
    Followed,
    Refused,
}

/// Opens something other than a file, such as a pipe or a device, to write to it directly.
///
/// # Errors
/// The operating system's.
pub fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Opens the file that the user named. A link that they named is followed.
///
/// # Errors
/// The operating system's, or [`not_regular`].
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    open_as(path, LastLink::Followed)
}

/// Opens a file that was found in a dump, where no symbolic link is followed.
///
/// # Errors
/// As for [`open`].
pub fn open_in_dump(path: &Path) -> io::Result<(File, Metadata)> {
    open_as(path, LastLink::Refused)
}

/// All bytes of a file that the user named, `n_bytes_max` at most.
///
/// # Errors
/// As for [`open`], and if there are more.
pub fn read(path: &Path, n_bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(open(path)?, n_bytes_max)
}

/// [`read`] of a file that was found in a dump.
///
/// # Errors
/// As for [`open_in_dump`], and if there are more.
pub fn read_in_dump(path: &Path, n_bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(open_in_dump(path)?, n_bytes_max)
}

/// Reads the metadata of the file that the user named without opening it.
///
/// # Errors
/// As for [`open`].
pub fn check(path: &Path) -> io::Result<Metadata> {
    let metadata = remote::metadata(path)?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        Err(not_regular(metadata.file_type()))
    }
}

/// The error about something that is not a regular file.
pub fn not_regular(kind: FileType) -> io::Error {
    if kind.is_dir() {
        return io::ErrorKind::IsADirectory.into();
    }
    let name = if kind.is_symlink() {
        "a symbolic link, which is not followed inside a dump"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    };
    let reason = format!("expected a regular file, found {name}");
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn open_as(path: &Path, link: LastLink) -> io::Result<(File, Metadata)> {
    // Object storage has neither links nor devices.
    if let Some(opened) = remote::open(path) {
        return opened;
    }
    // Opening a device can already do something.
    let before = match link {
        LastLink::Followed => std::fs::metadata(path),
        LastLink::Refused => std::fs::symlink_metadata(path),
    }?;
    if !before.is_file() {
        return Err(not_regular(before.file_type()));
    }
    // It may have been replaced meanwhile: opening does not block, and the descriptor shows its
    // kind.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if link == LastLink::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(not_regular(metadata.file_type()))
    }
}

fn read_opened((file, metadata): (File, Metadata), n_bytes_max: u64) -> io::Result<Vec<u8>> {
    let n_bytes = metadata.len();
    let too_large = |n_bytes: u64| {
        let reason = format!("expected at most {n_bytes_max} bytes, found {n_bytes}");
        io::Error::new(io::ErrorKind::FileTooLarge, reason)
    };
    if n_bytes > n_bytes_max {
        return Err(too_large(n_bytes));
    }
    // The file may have grown since it was checked: one byte more than allowed reveals that.
    let bytes = read_at_most(file, n_bytes_max.saturating_add(1), n_bytes)?;
    if bytes.len() as u64 > n_bytes_max {
        Err(too_large(bytes.len() as u64))
    } else {
        Ok(bytes)
    }
}

/// Reads at most `n_bytes_max` bytes from a source with the stated size `n_bytes`. Memory grows
/// only with the received bytes, whatever the stated size.
pub(crate) fn read_at_most(
    reader: impl Read,
    n_bytes_max: u64,
    n_bytes: u64,
) -> io::Result<Vec<u8>> {
    let reserve = n_bytes.min(n_bytes_max).min(RESERVE_BYTES_MAX);
    let mut bytes = Vec::with_capacity(usize::try_from(reserve).unwrap_or_default());
    reader.take(n_bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "12345").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("pipe"), path("to_pipe")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let check = |path: &Path, named: &str, in_dump: &str| {
            let text = |opened: io::Result<(File, Metadata)>| {
                opened.map_or_else(|error| error.to_string(), |_| String::new())
            };
            let (found, found_in_dump) = (text(open(path)), text(open_in_dump(path)));
            assert!(
                found.contains(named) && found.is_empty() == named.is_empty(),
                "{found}"
            );
            assert!(found_in_dump.contains(in_dump), "{found_in_dump}");
            assert_eq!(found_in_dump.is_empty(), in_dump.is_empty());
        };
        check(&path("file"), "", "");
        check(&path("link"), "", "found a symbolic link");
        check(&path("pipe"), "found a named pipe", "found a named pipe");
        check(&path("to_pipe"), "found a named pipe", "a symbolic link");
        check(&path("socket"), "found a socket", "found a socket");
        check(Path::new("/dev/zero"), "found a device", "found a device");
        check(dir.path(), "is a directory", "is a directory");
        check(&path("absent"), "No such file", "No such file");
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let error = read(&path, 4).unwrap_err().to_string();
        assert_eq!(error, "expected at most 4 bytes, found 5");
        // A sparse file may be longer than any memory without occupying space.
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        assert!(read(&path, 1 << 20).is_err());
    }
}
