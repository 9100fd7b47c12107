//! Converting dump files to files of other kinds, many at a time.
//!
//! Each input and output of a dump file becomes a file of its own, or all of them together one
//! safetensors file. Values are exact: types that the new file lacks go to the smallest type that
//! holds them. Overflow records become JSON. A file or tensor that cannot be converted is reported,
//! and the others are converted all the same.

mod error;
mod names;
mod sources;
mod text;
mod writer;

pub use error::ConvertError;
pub use sources::{ConvertSource, FoundSources, collision, sources};

use std::path::PathBuf;

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::zstd;
use opscope_store::record::SlotSide;
use writer::ResultWriter;

use crate::elements::WantedLayout;
use crate::job;

/// How to convert.
#[derive(Clone, Debug)]
pub struct ConversionOptions {
    /// The output directory; created if it is missing.
    pub out: PathBuf,
    /// Kind of file to write.
    pub kind: ConvertedForm,
    /// How hard arrays are compressed, if they are to be. Files of other kinds are not.
    pub compression: Option<zstd::CompressionLevel>,
    /// The layout to bring every tensor into; by default they keep theirs.
    pub relayout: Option<WantedLayout>,
    /// The only tensor to convert; by default all of them, and buffers and workspaces too.
    pub pick: Option<PickedTensor>,
    /// Threads to use.
    pub n_threads: usize,
    /// Permissions of what is created.
    pub modes: PermissionModes,
    /// Whether files that exist already are replaced.
    pub is_replacing: bool,
}

/// Kind of file to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConvertedForm {
    /// A numpy array for each tensor.
    #[default]
    Npy,
    /// A numpy array for each tensor, named as `MindSpore` names them.
    MsNpy,
    /// The elements of each tensor and nothing else.
    Bin,
    /// The elements of each tensor as text.
    Txt,
    /// All tensors of a dump file in one file.
    Safetensors,
    /// The file that `torch.save` writes, for each tensor.
    Pt,
}

/// One tensor of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickedTensor {
    /// Which side of the operator it is on.
    pub side: SlotSide,
    /// Its position there.
    pub index: usize,
}

/// The outcome of converting all files.
#[derive(Debug, Default)]
pub struct ConvertReport {
    /// Dump files that were converted completely.
    pub n_converted: u64,
    /// Tensors that were written.
    pub n_arrays: u64,
    /// Overflow records that were written.
    pub n_records: u64,
    /// Buffers and workspaces that were written.
    pub n_rest: u64,
    /// Bytes of the dump files that were read.
    pub n_bytes_read: u64,
    /// Bytes that were written.
    pub n_bytes_written: u64,
    /// Files and tensors that could not be converted, in the order of the sources.
    pub failures: Vec<ConvertFailure>,
}

/// A file, or one tensor of it, that could not be converted.
#[derive(Debug)]
pub struct ConvertFailure {
    /// The dump file.
    pub path: PathBuf,
    /// Why.
    pub error: ConvertError,
}

/// Converts every source. `progress` is told the bytes of each source when it is done.
///
/// # Errors
/// [`StoreError::Io`] if the output directory cannot be created; everything else is in the report.
pub fn run(
    sources: &[ConvertSource],
    options: &ConversionOptions,
    progress: impl Fn(u64) + Sync,
) -> Result<ConvertReport, StoreError> {
    let creator = Creator::in_dump(&options.out, options.modes);
    // Made first, so that an unusable directory is one error and not one for each file.
    creator.create_dir(&options.out)?;
    let writer = ResultWriter::new(creator, options);
    let results = job::map(sources, options.n_threads, |source| {
        let result = writer.convert(source);
        progress(source.n_bytes);
        result
    });
    let mut report = ConvertReport::default();
    for (source, converted) in sources.iter().zip(results) {
        report.n_arrays += converted.n_arrays;
        report.n_records += converted.n_records;
        report.n_rest += converted.n_rest;
        report.n_bytes_read += source.n_bytes;
        report.n_bytes_written += converted.n_bytes;
        report.n_converted += u64::from(converted.errors.is_empty());
        let failures = converted.errors.into_iter().map(|error| ConvertFailure {
            path: source.path.clone(),
            error,
        });
        report.failures.extend(failures);
    }
    Ok(report)
}
