//! Lines at the end of a file that other processes may append to as well.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::Creator;
use super::directories::split;
use super::size_limit::without_signal;
use crate::StoreError;

impl Creator {
    /// Appends whole lines to `path` with one call, creating it if needed.
    ///
    /// # Errors
    /// As for [`Creator::append`].
    pub fn append_line(&self, path: &Path, line: &str) -> Result<(), StoreError> {
        self.append(path, "", line).map(drop)
    }

    /// Appends whole lines to `path` with one call, so that lines of several processes do not mix.
    /// If there is no file, a single process creates one with `header` first; `true` means that it
    /// was this one.
    ///
    /// A file that ends in the middle of a line was left by a killed process: appending starts a
    /// new line first.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, or if there is a symbolic link or
    /// another thing that is not a file.
    pub fn append(&self, path: &Path, header: &str, lines: &str) -> Result<bool, StoreError> {
        if let Some(pretence) = &self.pretence {
            let is_new = !pretence.exists(path);
            let n_header_bytes = if is_new { header.len() } else { 0 };
            let n_bytes = (n_header_bytes + lines.len()) as u64;
            let result = pretence.append(path, n_bytes);
            return result
                .map(|()| is_new)
                .map_err(StoreError::io("write", path));
        }
        // Opened again only if the file was removed.
        let mut last = self
            .last_table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = last.as_mut().filter(|table| table.is_at(path)) {
            let written = write(&mut table.file, lines);
            return written
                .map(|()| false)
                .map_err(StoreError::io("write", path));
        }
        let mut is_new = false;
        if !self.directories.knows(path) && path.symlink_metadata().is_err() {
            is_new = match header {
                // Without a header the file is never seen half written, so it needs no temporary
                // name first.
                "" => self.create_empty(path),
                header => self.create_file(path, &[header.as_bytes()]),
            }?;
        }
        let mut file = self.open_to_append(path)?;
        let mut is_broken = false;
        if !self.directories.knows(path) {
            is_broken = !ends_with_a_line(&mut file).map_err(StoreError::io("read", path))?;
            self.directories.note(path);
        }
        let text = if is_broken {
            format!("\n{lines}")
        } else {
            lines.to_owned()
        };
        write(&mut file, &text).map_err(StoreError::io("write", path))?;
        *last = AppendedTable::new(path, file).ok();
        Ok(is_new)
    }

    fn create_empty(&self, path: &Path) -> Result<bool, StoreError> {
        let (dir, name) = split(path);
        let created = self
            .directories
            .open(dir)
            .and_then(|dir| dir.target(name).create(self.modes.file));
        match created {
            Ok(file) => {
                self.modes.settle_file(&file);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(StoreError::io("open", path)(error)),
        }
    }

    /// Opens a regular file for appending.
    fn open_to_append(&self, path: &Path) -> Result<File, StoreError> {
        let (dir, name) = split(path);
        let dir = self.directories.open(dir);
        dir.and_then(|dir| dir.target(name).open_to_append())
            .map_err(StoreError::io("open", path))
    }
}

/// The file that was appended to last.
#[derive(Debug)]
pub(super) struct AppendedTable {
    path: PathBuf,
    file: File,
    device: u64,
    inode: u64,
}

impl AppendedTable {
    fn new(path: &Path, file: File) -> io::Result<AppendedTable> {
        let metadata = file.metadata()?;
        Ok(AppendedTable {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            file,
        })
    }

    /// Whether it is still what `path` names.
    fn is_at(&self, path: &Path) -> bool {
        let is_same =
            |metadata: Metadata| (metadata.dev(), metadata.ino()) == (self.device, self.inode);
        self.path == path && path.symlink_metadata().is_ok_and(is_same)
    }
}

/// Appends with one call. A file grows page by page meanwhile, so the lock informs processes that
/// check whether the last line is complete. File systems without locks are used without one.
fn write(file: &mut File, text: &str) -> io::Result<()> {
    // A shared lock is enough: writes in append mode are atomic. It only excludes readers of the
    // last byte.
    let is_locked = file.lock_shared().is_ok();
    let written = without_signal(|| file.write_all(text.as_bytes()));
    if is_locked {
        file.unlock()?;
    }
    written
}

/// Whether the last line is complete, once no writer is busy.
fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    let is_locked = file.lock().is_ok();
    let answer = last_byte(file).map(|last| last.is_none_or(|byte| byte == b'\n'));
    if is_locked {
        file.unlock()?;
    }
    answer
}

fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(Some(last[0]))
}
