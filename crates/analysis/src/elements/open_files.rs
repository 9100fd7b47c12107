//! Files of elements that stay open while a thread has work of one kind to do.
//!
//! A native dump has all its elements in few files. Opening one for each tensor takes longer than
//! comparing small ones.

use opscope_store::file_bytes::FileBytes;
use opscope_store::kept_open::KeptOpen;
use opscope_store::reader::{IndexedTensor, TensorFile, keep_archives_open};
use opscope_store::{SharedPath, StoreError, remote};

use super::ElementsError;

/// Files of a thread that are open at once: those of two dumps, and of steps that begin the next
/// one.
const N_OPEN_MAX: usize = 8;

thread_local! {
    static OPEN: KeptOpen<(SharedPath, FileBytes)> = const { KeptOpen::new() };
}

/// Does `work`, during which files stay open.
pub(crate) fn keep_open<R>(work: impl FnOnce() -> R) -> R {
    KeptOpen::during(&OPEN, || keep_archives_open(work))
}

/// Opens the file that a record of a native dump has its elements in.
pub(super) fn of_elements(record: &IndexedTensor) -> Result<TensorFile, ElementsError> {
    // What this process holds, and what a remote store does, is no file to keep open.
    if record.held.is_some() || remote::is_remote(&record.path) {
        return Ok(TensorFile::open_elements(record)?);
    }
    let known = OPEN.with(|open| {
        let files = open.list()?;
        let known = files.iter().find(|(path, _)| *path == record.path);
        known.map(|(_, bytes)| bytes.clone())
    });
    // A file that grows may reach further by now than when it was opened.
    if let Some(bytes) = known
        && let Ok(file) = TensorFile::of_elements(bytes, record)
    {
        return Ok(file);
    }
    let path = &record.path;
    let bytes = FileBytes::open_in_dump(path).map_err(|source| StoreError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    })?;
    OPEN.with(|open| {
        if let Some(mut files) = open.list() {
            // The mapping that was too short.
            files.retain(|(known, _)| known != path);
            if files.len() >= N_OPEN_MAX {
                files.remove(0);
            }
            files.push((path.clone(), bytes.clone()));
        }
    });
    Ok(TensorFile::of_elements(bytes, record)?)
}
