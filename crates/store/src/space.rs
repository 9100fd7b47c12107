//! Free space of file systems.

use std::path::Path;

use rustix::fs::statvfs;

use crate::StoreError;
use crate::atomic_file::nearest;

/// Room for those who are not the system itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes that can still be written.
    pub n_bytes_free: u64,
    /// Files that can still be created; `None` where the file system sets no limit.
    pub n_files_free: Option<u64>,
    /// Files occupy space in multiples of this.
    pub block_bytes: u64,
}

/// The free space in the file system of `path`, or of its nearest existing parent directory.
///
/// # Errors
/// [`StoreError::Io`] if the operating system does not report it.
pub fn space(path: &Path) -> Result<FreeSpace, StoreError> {
    let path = nearest(path);
    let found = statvfs(path)
        .map_err(|error| StoreError::io("look for free space in", path)(error.into()))?;
    Ok(FreeSpace {
        n_bytes_free: found.f_bavail.saturating_mul(found.f_frsize),
        // Btrfs makes inodes as it needs them and reports a total of 0, which is not a full disk.
        n_files_free: (found.f_files > 0).then_some(found.f_favail),
        block_bytes: found.f_frsize.max(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_there_yet_has_the_room_of_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        let here = space(dir.path()).unwrap();
        let below = space(&dir.path().join("a/b")).unwrap();
        assert!(here.n_bytes_free > 0 && here.block_bytes > 0);
        assert_eq!(here.block_bytes, below.block_bytes);
        assert!(space(Path::new("nowhere/at/all")).is_ok());
    }
}
