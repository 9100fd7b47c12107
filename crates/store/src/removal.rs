//! Taking back what was written.
//!
//! A file is removed only while it is the one that was written: the same inode of the same size,
//! and no symbolic link. Directories are removed only when they are empty. So files that others
//! have put into a dump, or in place of a part of it, stay.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::StoreError;

/// A file as it was when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its name in its directory.
    pub name: OsString,
    device: u64,
    inode: u64,
    n_bytes: u64,
}

impl WrittenFile {
    /// Reads the metadata of a file that was just written; `None` if it is gone, or not a regular
    /// file.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn look(path: &Path) -> Result<Option<WrittenFile>, StoreError> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("look at", path)(error)),
        };
        let name = path.file_name().filter(|_| metadata.is_file());
        Ok(name.map(|name| WrittenFile {
            name: name.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            n_bytes: metadata.len(),
        }))
    }

    /// Whether the name in `dir` still refers to this file.
    #[expect(clippy::useless_conversion, reason = "widths differ between systems")]
    fn is_in(&self, dir: &OwnedFd) -> Result<bool, Errno> {
        let found = match statat(dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(
            FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
                && u64::from(found.st_dev) == self.device
                && u64::from(found.st_ino) == self.inode
                && u64::try_from(found.st_size) == Ok(self.n_bytes),
        )
    }
}

/// A directory that files are taken out of.
pub struct EmptiedDirectory<'a> {
    dir: &'a Path,
    /// `None` if it is not there any more.
    opened: Option<OwnedFd>,
}

impl EmptiedDirectory<'_> {
    /// Opens `dir`; one that is gone, or that something else has taken the place of, has no files.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn open(dir: &Path) -> Result<EmptiedDirectory<'_>, StoreError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        match openat(CWD, dir, flags, Mode::empty()) {
            Ok(opened) => Ok(EmptiedDirectory {
                dir,
                opened: Some(opened),
            }),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Ok(EmptiedDirectory { dir, opened: None })
            }
            Err(error) => Err(StoreError::io("open the directory", dir)(error.into())),
        }
    }

    /// Removes `file`; `false` if it is gone, or is another file by now.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn remove(&self, file: &WrittenFile) -> Result<bool, StoreError> {
        let Some(dir) = &self.opened else {
            return Ok(false);
        };
        // Both calls go by the opened directory: a path could lead elsewhere between the two.
        let result = match file.is_in(dir) {
            Ok(true) => unlinkat(dir, &file.name, AtFlags::empty()).map(|()| true),
            other => other,
        };
        result.map_err(|error| self.error(&file.name, error))
    }

    fn error(&self, name: &OsStr, error: Errno) -> StoreError {
        StoreError::io("remove", &self.dir.join(name))(error.into())
    }
}

/// Removes an empty directory; `false` if it is not empty, does not exist, or is not a directory.
///
/// # Errors
/// [`StoreError::Io`] if the operating system refuses for another reason.
pub fn remove_empty_dir(dir: &Path) -> Result<bool, StoreError> {
    match fs::remove_dir(dir) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory => Ok(false),
            // Some file systems say so of directories with something in them.
            io::ErrorKind::AlreadyExists => Ok(false),
            _ => Err(StoreError::io("remove the directory", dir)(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn remove(dir: &Path, file: &WrittenFile) -> bool {
        EmptiedDirectory::open(dir).unwrap().remove(file).unwrap()
    }

    #[test]
    fn only_the_file_that_was_written_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            WrittenFile::look(&path).unwrap().unwrap()
        };
        let file = write("ours");
        assert!(remove(dir.path(), &file));
        assert!(!remove(dir.path(), &file), "it is gone");

        let file = write("ours");
        fs::write(&path, "ours, and a line of theirs").unwrap();
        assert!(!remove(dir.path(), &file));
        assert!(path.exists());

        let file = write("ours");
        fs::rename(&path, dir.path().join("aside")).unwrap();
        fs::write(&path, "them").unwrap();
        assert!(!remove(dir.path(), &file), "another file of the same size");
        assert_eq!(fs::read(&path).unwrap(), b"them");
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("file"), "x").unwrap();
        let file = WrittenFile::look(&real.join("file")).unwrap().unwrap();
        symlink(&real, &link).unwrap();
        assert!(!remove(&link, &file));
        symlink(real.join("file"), dir.path().join("file")).unwrap();
        assert!(!remove(dir.path(), &file));
        assert_eq!(WrittenFile::look(&dir.path().join("file")).unwrap(), None);
        assert!(real.join("file").exists());
        assert!(!remove_empty_dir(&link).unwrap());
    }

    #[test]
    fn another_name_of_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        fs::write(&first, "x").unwrap();
        let file = WrittenFile::look(&first).unwrap().unwrap();
        fs::hard_link(&first, &second).unwrap();
        assert!(remove(dir.path(), &file));
        assert_eq!(fs::read(&second).unwrap(), b"x");
    }

    #[test]
    fn directories_go_when_they_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), "x").unwrap();
        assert!(!remove_empty_dir(&inner).unwrap());
        fs::remove_file(inner.join("file")).unwrap();
        assert!(remove_empty_dir(&inner).unwrap());
        assert!(!remove_empty_dir(&inner).unwrap());
    }
}
