//! Detects whether a file was written or replaced.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A stamp that changes when the file is written or replaced.
///
/// File times have a resolution of some milliseconds: of two changes within that time that keep the
/// size, the second may go unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The current stamp of the file; `None` if it is missing or inaccessible.
    pub fn read(path: &Path) -> Option<FileStamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(FileStamp {
            // A file replaced by renaming gets another inode, even with the same size and time.
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            // A tool may reset the modification time, but not this one.
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
