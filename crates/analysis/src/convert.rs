//! Converting dump files to numpy arrays, many at a time.
//!
//! Each input and output of a dump file becomes `{file}.{input|output}.{index}.npy`. Values are
//! exact: types that numpy lacks go to the smallest type that holds them. A file that cannot be
//! converted is reported and the others are converted all the same.

mod names;
mod npy;

pub(crate) use npy::decode_tensor;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use opscope_store::atomic_file::{Creator, Modes};
use opscope_store::dump;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::convert::dtype::DecodeError;
use thiserror::Error;

use crate::job;

/// One dump file to convert, and where its arrays go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The dump file.
    pub path: PathBuf,
    /// The file's name, which its arrays' names begin with.
    pub file_name: String,
    /// The name that `mapping.csv` gives for it, if the real one was too long.
    pub real_name: Option<String>,
    /// Directory below the output directory.
    pub subdir: PathBuf,
    /// Size in bytes.
    pub n_bytes: u64,
}

/// How to convert.
#[derive(Clone, Debug)]
pub struct Options {
    /// The output directory; created if it is missing.
    pub out: PathBuf,
    /// Threads to use.
    pub n_threads: usize,
    /// Permissions of what is created.
    pub modes: Modes,
    /// Whether arrays that exist already are replaced.
    pub is_replacing: bool,
}

/// What became of all files.
#[derive(Debug, Default)]
pub struct Report {
    /// Dump files that were converted completely.
    pub n_converted: u64,
    /// Arrays that were written.
    pub n_arrays: u64,
    /// Bytes of the dump files that were read.
    pub n_bytes_read: u64,
    /// Bytes that were written.
    pub n_bytes_written: u64,
    /// What could not be converted, in the order of the sources.
    pub failures: Vec<Failure>,
}

/// A file, or one tensor of it, that could not be converted.
#[derive(Debug)]
pub struct Failure {
    /// The dump file.
    pub path: PathBuf,
    /// Why.
    pub error: ConvertError,
}

/// Why a file or tensor could not be converted.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The file cannot be read, is damaged, or the array cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The number of a dtype that no version of the format defines.
    #[error("{slot}: the dtype number {code} is unknown")]
    UnknownDtype {
        /// Which tensor, such as `input.0`.
        slot: String,
        /// The number.
        code: u32,
    },
    /// The bytes do not fit dtype and shape, or the dtype has no numeric value.
    #[error("{slot}")]
    Decode {
        /// Which tensor.
        slot: String,
        /// Why.
        source: DecodeError,
    },
    /// The shape is not usable.
    #[error("{slot}")]
    Shape {
        /// Which tensor.
        slot: String,
        /// Why.
        source: opscope_tensor::ShapeError,
    },
    /// The array exists and is not to be replaced.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
}

/// Lists what to convert: a file as it is, a directory with everything below it, keeping its
/// structure. Directories that cannot be listed are returned beside the sources.
pub fn sources(path: &Path) -> (Vec<Source>, Vec<StoreError>) {
    if !path.is_dir() {
        return (vec![single_source(path)], Vec::new());
    }
    let listing = dump::list(path);
    let source = |entry: dump::Entry| {
        let parent = entry.path.parent().unwrap_or(path);
        Source {
            subdir: parent
                .strip_prefix(path)
                .unwrap_or(Path::new(""))
                .to_owned(),
            file_name: file_name(&entry.path),
            real_name: entry.is_mapped().then(|| entry.real_name.clone()),
            n_bytes: entry.n_bytes,
            path: entry.path,
        }
    };
    (
        listing.entries.into_iter().map(source).collect(),
        listing.errors,
    )
}

fn single_source(path: &Path) -> Source {
    let file_name = file_name(path);
    let parent = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let real_name = dump::read_mapping(parent).remove(&file_name);
    let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    Source {
        path: path.to_owned(),
        file_name,
        real_name,
        subdir: PathBuf::new(),
        n_bytes,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Converts every source. `progress` is told the bytes of each source when it is done.
///
/// # Errors
/// [`StoreError::Io`] if the output directory cannot be created; everything else is in the report.
pub fn run(
    sources: &[Source],
    options: &Options,
    progress: impl Fn(u64) + Sync,
) -> Result<Report, StoreError> {
    let creator = Creator::new(options.modes);
    creator.create_dir(&options.out)?;
    let writer = npy::Writer {
        creator,
        options,
        mapping: Mutex::new(()),
    };
    let results = job::map(sources, options.n_threads, |source| {
        let result = writer.convert(source);
        progress(source.n_bytes);
        result
    });
    let mut report = Report::default();
    for (source, converted) in sources.iter().zip(results) {
        report.n_arrays += converted.n_arrays;
        report.n_bytes_read += source.n_bytes;
        report.n_bytes_written += converted.n_bytes;
        report.n_converted += u64::from(converted.errors.is_empty());
        let failure = |error| Failure {
            path: source.path.clone(),
            error,
        };
        report
            .failures
            .extend(converted.errors.into_iter().map(failure));
    }
    Ok(report)
}

impl ConvertError {
    /// Where in the file the problem is, if it is the file's content.
    pub fn format_error(&self) -> Option<&FormatError> {
        match self {
            ConvertError::Store(StoreError::Corrupt { source, .. }) => Some(source),
            _ => None,
        }
    }
}
