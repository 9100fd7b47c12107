//! Keeps element files open while a thread does one kind of work.
//!
//! A native dump stores all elements in a few files. Opening a file for each tensor takes longer
//! than comparing small ones.

use opscope_store::file_bytes;
use opscope_store::file_parts::FileParts;
use opscope_store::kept_open::KeptOpen;
use opscope_store::reader::{IndexedTensor, TensorFile, keep_archives_open};
use opscope_store::{SharedPath, StoreError, remote};

use super::ElementsError;

/// Maximum number of open files per thread: two dumps, each with the current and the next step's
/// file.
const N_OPEN_MAX: usize = 8;

thread_local! {
    static OPEN: KeptOpen<(SharedPath, FileParts)> = const { KeptOpen::new() };
}

/// Runs `work` and keeps files open until it returns.
pub(crate) fn keep_open<R>(work: impl FnOnce() -> R) -> R {
    KeptOpen::during(&OPEN, || {
        keep_archives_open(|| file_bytes::reuse_buffers(work))
    })
}

/// Opens the file with the elements of a native dump's record.
pub(super) fn of_elements(record: &IndexedTensor) -> Result<TensorFile, ElementsError> {
    // In-process and remote data have no local file to keep open.
    if record.held.is_some() || remote::is_remote(&record.path) {
        return Ok(TensorFile::open_elements(record)?);
    }
    let known = OPEN.with(|open| {
        let files = open.list()?;
        let known = files.iter().find(|(path, _)| *path == record.path);
        known.map(|(_, parts)| parts.clone())
    });
    // The file may have grown since it was opened.
    if let Some(parts) = known
        && let Ok(file) = TensorFile::of_elements(parts, record)
    {
        return Ok(file);
    }
    let path = &record.path;
    let parts = FileParts::open_in_dump(path).map_err(StoreError::io("read", path))?;
    OPEN.with(|open| {
        if let Some(mut files) = open.list() {
            // The known file was too short.
            files.retain(|(known, _)| known != path);
            if files.len() >= N_OPEN_MAX {
                files.remove(0);
            }
            files.push((path.clone(), parts.clone()));
        }
    });
    Ok(TensorFile::of_elements(parts, record)?)
}
