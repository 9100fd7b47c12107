//! Converts dump files to other file formats, many at a time.
//!
//! Each input and output of a dump file is written to a separate file, or all of them to one
//! safetensors file. Values are exact: a dtype that the new format lacks is widened to the smallest
//! dtype that holds it. Overflow records become JSON. A file or tensor that cannot be converted is
//! reported, and conversion goes on with the rest.

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

/// Options of a conversion.
#[derive(Clone, Debug)]
pub struct ConversionOptions {
    /// The output directory; created if it is missing.
    pub out: PathBuf,
    /// Kind of file to write.
    pub kind: ConvertedForm,
    /// Compression level of arrays; `None` leaves them uncompressed. Other formats are never
    /// compressed.
    pub compression: Option<zstd::CompressionLevel>,
    /// Target layout of every tensor; `None` keeps the dump's layout.
    pub relayout: Option<WantedLayout>,
    /// The only tensor to convert; `None` converts all tensors, buffers and workspaces.
    pub pick: Option<PickedTensor>,
    /// Threads to use.
    pub n_threads: usize,
    /// Permissions of new files and directories.
    pub modes: PermissionModes,
    /// Whether existing files are replaced.
    pub is_replacing: bool,
}

/// Kind of file to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConvertedForm {
    /// One NumPy array per tensor.
    #[default]
    Npy,
    /// One NumPy array per tensor, with `MindSpore`'s file names.
    MsNpy,
    /// The raw elements of each tensor.
    Bin,
    /// The elements of each tensor as text.
    Txt,
    /// All tensors of a dump file in one safetensors file.
    Safetensors,
    /// One file per tensor, in `torch.save`'s format.
    Pt,
}

/// One tensor of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickedTensor {
    /// Input or output side of the operator.
    pub side: SlotSide,
    /// Index on that side.
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
    /// Files and tensors that could not be converted, in source order.
    pub failures: Vec<ConvertFailure>,
}

/// A file, or one tensor of it, that could not be converted.
#[derive(Debug)]
pub struct ConvertFailure {
    /// The dump file.
    pub path: PathBuf,
    /// The cause.
    pub error: ConvertError,
}

/// Converts every source. `progress` is called with the byte count of each finished source.
///
/// # Errors
/// [`StoreError::Io`] if the output directory cannot be created. All other errors are in the
/// report.
pub fn run(
    sources: &[ConvertSource],
    options: &ConversionOptions,
    progress: impl Fn(u64) + Sync,
) -> Result<ConvertReport, StoreError> {
    let creator = Creator::in_dump(&options.out, options.modes);
    // Creating it first reports an unusable directory once, not once per file.
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
        // Counted even if the conversion failed, so that the bytes match those of `progress`.
        report.n_bytes_read += source.n_bytes;
        report.n_bytes_written += converted.n_bytes;
        // A file counts as converted only if every tensor was.
        report.n_converted += u64::from(converted.errors.is_empty());
        let failures = converted.errors.into_iter().map(|error| ConvertFailure {
            path: source.path.clone(),
            error,
        });
        report.failures.extend(failures);
    }
    Ok(report)
}
