//! Reads dumps of any form on several threads.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::DumpListing;
use opscope_store::reader::{self, DumpIndex, FileRequest, TakeTensors};

use crate::job;

/// Reads what a directory with everything below it, or a single file, says of its tensors, without
/// their elements.
///
/// # Errors
/// [`StoreError::Io`] if there is nothing at `path`; everything else is in the index.
pub fn read_dump(path: &Path, n_threads: usize) -> Result<DumpIndex, StoreError> {
    reader::read_dump(path, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_head)
    })
}

/// [`read_dump`] that hands the tensors over instead of keeping them.
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

/// [`read_dump_into`] of what was listed before.
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

/// Reads a listing, looking at every file from beginning to end, so that all damage is noticed.
pub fn read_whole(listing: DumpListing, n_threads: usize) -> DumpIndex {
    reader::read_listing(listing, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_whole)
    })
}

/// [`read_whole`] for the files, operators and tables of statistics alone: there may be no
/// executions and tensors.
pub fn read_overview(listing: DumpListing, n_threads: usize) -> DumpIndex {
    reader::read_overview(listing, &mut |requests| {
        job::map(requests, n_threads, FileRequest::read_whole)
    })
}
