//! Reads dumps of any form on several threads.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::DumpListing;
use opscope_store::reader::{self, DumpIndex, FileRequest, TakeTensors};

use crate::job;

/// Reads the tensor metadata of a directory (recursively) or of a single file, without elements.
///
/// # Errors
/// [`StoreError::Io`] if there is nothing at `path`. All other errors are in the index.
pub fn read_dump(path: &Path, n_threads: usize) -> Result<DumpIndex, StoreError> {
    reader::read_dump(path, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_head)
    })
}

/// Like [`read_dump`], but passes the tensors to a callback.
///
/// # Errors
/// As [`read_dump`].
pub(crate) fn read_dump_into(
    path: &Path,
    n_threads: usize,
    take: TakeTensors<'_>,
) -> Result<DumpIndex, StoreError> {
    let read =
        &mut |requests: &[FileRequest]| job::map(requests, n_threads, FileRequest::read_head);
    reader::read_dump_into(path, read, take)
}

/// Like [`read_dump_into`], for an existing listing.
pub(crate) fn read_listing_into(
    listing: DumpListing,
    n_threads: usize,
    take: TakeTensors<'_>,
) -> DumpIndex {
    let reader = reader::reader_of(&listing);
    let read =
        &mut |requests: &[FileRequest]| job::map(requests, n_threads, FileRequest::read_head);
    reader.index_into(listing, read, take)
}

/// Reads every file of a listing completely, so that all damage is detected.
pub fn read_whole(listing: DumpListing, n_threads: usize) -> DumpIndex {
    reader::read_listing(listing, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_whole)
    })
}

/// Like [`read_whole`], for files, operators and statistics only: executions and tensors may be
/// missing.
pub fn read_overview(listing: DumpListing, n_threads: usize) -> DumpIndex {
    reader::read_overview(listing, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_whole)
    })
}
