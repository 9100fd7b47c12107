//! Telling whether a file was written or replaced.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A mark of a file that changes when the file is written or replaced by another one.
///
/// The system's clock of files moves in steps of some milliseconds: of two changes of a file within
/// one such step that leave its size as it is, the second may not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the file as it is now; `None` if it is not there or cannot be looked at.
    pub fn read(path: &Path) -> Option<FileStamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(FileStamp {
            // A file that is replaced by renaming gets another inode, even if its size and time
            // stay the same.
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            // A tool may set the time of writing back; this one it cannot set.
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
