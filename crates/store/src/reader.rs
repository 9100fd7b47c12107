//! Reading dumps: every form of dump becomes one [`DumpIndex`].
//!
//! | module | what it holds |
//! | --- | --- |
//! | `index` | the contents of a dump as plain data |
//! | `tensor_file` | a file with tensors, whatever its format |
//! | `tensor_statistics` | the statistics that a dump has of a tensor |
//! | `entries` | listed files and what is read from them |
//! | `ascend` | AscendCL's trees, single files, and directories of converted arrays |
//! | `mindspore` | `MindSpore`'s trees |
//! | `native` | our own form |
//! | `msprobe` | msProbe's trees |
//! | `sglang` | the files of SGLang's dumpers |
//! | `debug_mode` | logs of PyTorch's `DebugMode` |
//! | `arrays` | archives of named arrays, and arrays by name |
//!
//! A reader decides from a listing of files whether it knows the dump, requests the files that it
//! needs, and builds an index from their content. The caller reads the files, on any number of
//! threads: nothing here starts one.

mod arrays;
mod ascend;
mod debug_mode;
mod entries;
mod index;
mod mindspore;
mod msprobe;
mod native;
mod sglang;
mod tensor_file;
mod tensor_statistics;
mod term;

use std::path::Path;

use crate::StoreError;
use crate::dump::{self, DumpEntry, DumpListing, PassReason, PassedOver};

pub use ascend::read_tables;
pub use index::{
    DumpIndex, ElementsPlace, ExecutionKind, IndexedExecution, IndexedFile, IndexedTable,
    IndexedTensor, OperatorInFile, OtherNames,
};
pub use mindspore::FORM as MINDSPORE_FORM;
pub use native::{FORM as NATIVE_FORM, NativeStep, native_steps};
pub use tensor_file::{
    ExtraKind, ExtraPiece, FileContent, FileExpectation, FileFacts, FileHead, FileKind,
    FileRequest, OpenedTensor, StoredRun, StoredTensor, TensorFile, keep_archives_open,
};
pub use tensor_statistics::{StatisticCell, TensorStatistics};
pub use term::DumpTerm;

/// Reads all of the files that a reader asks for; the results keep their order.
pub type ReadFiles<'a> = &'a mut dyn FnMut(&[FileRequest]) -> Vec<Result<FileContent, StoreError>>;

/// Receives tensors; those of one execution are consecutive.
pub type TakeTensors<'a> = &'a mut dyn FnMut(Vec<IndexedTensor>);

/// The rank and the step of a file.
pub type FilePlace = (Option<u32>, Option<u64>);

/// A form of dump that can be read.
pub trait DumpReader: Sync {
    /// The form's name, for programs.
    fn form(&self) -> &'static str;

    /// Whether a listing is a dump of this form.
    fn detect(&self, listing: &DumpListing) -> bool;

    /// Why a listed file other than a table of statistics has no tensors to convert, by its name;
    /// none if it may hold some.
    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason>;

    /// The rank and the step that everything in a listed file belongs to, by its path. `None` if the
    /// path does not say it.
    fn place_of(&self, _entry: &DumpEntry) -> Option<FilePlace> {
        None
    }

    /// Everything that a dump of this form holds. What cannot be read is noted among the errors,
    /// and everything else is there all the same. A damaged file whose name says that it is a part
    /// of the dump is there too, as one tensor without a dtype.
    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex;

    /// [`DumpReader::index`] that hands the tensors over, in their order and at once or in several
    /// parts, instead of keeping them. A form may leave executions out of the index then.
    fn index_into(
        &self,
        listing: DumpListing,
        read: ReadFiles<'_>,
        take: TakeTensors<'_>,
    ) -> DumpIndex {
        let mut index = self.index(listing, read);
        take(std::mem::take(&mut index.tensors));
        index
    }

    /// [`DumpReader::index`] for those who want to know of files, operators and tables of
    /// statistics alone. A form may leave executions and tensors out, which large dumps have no
    /// room for.
    fn overview(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        self.index(listing, read)
    }
}

/// The form of logs of PyTorch's `DebugMode`.
pub const DEBUG_MODE_FORM: &str = "debug_mode";

/// Every form. The first that knows a dump reads it; the last takes whatever is left.
const READERS: &[&dyn DumpReader] = &[
    &native::NativeReader,
    &msprobe::ProbeReader,
    &sglang::SglangReader,
    &mindspore::MindSporeReader,
    &debug_mode::DebugModeReader,
    &arrays::ArraysReader,
    &ascend::AscendReader,
];

/// The reader of a listing.
pub fn reader_of(listing: &DumpListing) -> &'static dyn DumpReader {
    let known = READERS.iter().find(|reader| reader.detect(listing));
    *known.unwrap_or(&READERS[READERS.len() - 1])
}

/// Drops the files of other ranks and steps, so that they are never opened. Only files whose paths
/// name a place are dropped, and none if that would drop all of them: such a dump reads as before,
/// and its content shows which ranks and steps there are.
pub fn retain_places(listing: &mut DumpListing, is_wanted: impl Fn(FilePlace) -> bool) {
    let reader = reader_of(listing);
    let lists = [&listing.entries, &listing.tables, &listing.step_tables];
    let mut entries = lists.into_iter().flatten();
    let is_any_kept = entries.any(|entry| reader.place_of(entry).is_some_and(&is_wanted));
    drop(entries);
    if !is_any_kept {
        return;
    }
    for list in [
        &mut listing.entries,
        &mut listing.tables,
        &mut listing.step_tables,
    ] {
        list.retain(|entry| reader.place_of(entry).is_none_or(&is_wanted));
    }
}

/// Reads a listing, whatever form it has.
pub fn read_listing(listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
    reader_of(&listing).index(listing, read)
}

/// [`read_listing`] without executions and tensors, where that is less work.
pub fn read_overview(listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
    reader_of(&listing).overview(listing, read)
}

/// Reads a directory with everything below it, or a single file.
///
/// # Errors
/// [`StoreError::Io`] if there is nothing at `path`; everything else is in the index.
pub fn read_dump(path: &Path, read: ReadFiles<'_>) -> Result<DumpIndex, StoreError> {
    let is_dir = is_dir(path)?;
    let listing = list(path, is_dir);
    Ok(finished(read_listing(listing, read), is_dir))
}

/// [`read_dump`] that hands the tensors over instead of keeping them, and may leave executions and
/// tables of statistics out: large dumps have no room for several forms of their tensors.
///
/// # Errors
/// As [`read_dump`].
pub fn read_dump_into(
    path: &Path,
    read: ReadFiles<'_>,
    take: TakeTensors<'_>,
) -> Result<DumpIndex, StoreError> {
    let is_dir = is_dir(path)?;
    let listing = list(path, is_dir);
    let index = reader_of(&listing).index_into(listing, read, take);
    Ok(finished(index, is_dir))
}

fn is_dir(path: &Path) -> Result<bool, StoreError> {
    let metadata = crate::remote::metadata(path).map_err(StoreError::io("read", path))?;
    Ok(metadata.is_dir())
}

fn list(path: &Path, is_dir: bool) -> DumpListing {
    if is_dir {
        dump::list(path)
    } else {
        dump::list_file(path)
    }
}

fn finished(mut index: DumpIndex, is_dir: bool) -> DumpIndex {
    if !is_dir {
        refuse_passed_over(&mut index);
    }
    index
}

/// A file that the user names is meant to be read.
fn refuse_passed_over(index: &mut DumpIndex) {
    for PassedOver { path, reason } in std::mem::take(&mut index.passed_over) {
        let [noun, _] = reason.nouns();
        let reason = format!("expected tensors or statistics, found a {noun}");
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        index.errors.push(StoreError::io("read", &path)(error));
    }
}
