//! Files of `torch.save`: a zip archive with a pickle of plain data, and the bytes of its tensors.
//!
//! Members, all stored without compression: `{dir}/data.pkl`, `{dir}/byteorder`, `{dir}/data/{key}`
//! for the elements of each storage, and a few that say nothing of tensors. The pickle says how to
//! rebuild tensors from storages. Source: PyTorch's serialization notes, `torch/serialization.py`
//! and `torch/_utils.py`.

mod archive;
mod elements;
mod known_names;
mod meta;
mod names;
pub mod pickle;
mod rebuild;
mod walk;
mod write;

use std::ops::Range;
use std::path::Path;

use opscope_tensor::{DType, Shape};

use archive::TorchArchive;
use walk::TensorWalk;

pub use write::write;

use crate::FormatError;
use crate::file_parts::FileParts;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "PyTorch";
/// How names of files end, where the end says what they are.
pub const SUFFIXES: [&str; 3] = [".pt", ".pth", ".ckpt"];
/// Another possible end of file names.
const COMMON_SUFFIX: &str = ".bin";
/// Maximum number of tensors of a file.
pub const N_TENSORS_MAX: usize = 1 << 16;
/// Maximum nesting of values.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of values visited; a repeated value counts each time.
pub const N_VISITS_MAX: usize = 1 << 22;
/// Maximum bytes of the description of a value in a file.
pub const META_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes of the names of all tensors.
pub const NAMES_BYTES_MAX: usize = 16 << 20;
/// Maximum expansion of one byte of a file.
const EXPANSION_MAX: usize = 1032;
/// Tensors up to this size in all are read however small their file is: one element may define all
/// of them.
const N_FILLED_BYTES_MAX: usize = 64 << 20;
/// How files of versions before 1.6 begin: a pickle of a number.
const OLD_MAGIC: [u8; 14] = *b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

/// A file that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TorchFile {
    /// Its tensors, in the order of its data.
    pub tensors: Vec<TorchTensor>,
    /// Number of values that are not tensors: numbers, texts and others, those of `meta` included.
    pub n_others: usize,
    /// Facts about the value in a file with the keys `value` and `meta`, as SGLang's dumper writes
    /// it: numbers, texts and truths under keys that are text, as Python prints them.
    pub meta: Vec<(String, String)>,
}

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TorchTensor {
    /// Where it is among the plain data; empty if it is all of it.
    pub name: String,
    /// Dimensions; empty for a tensor without elements here and without a stated shape.
    pub shape: Shape,
    /// Its elements.
    pub content: TorchContent,
}

/// Elements as far as a file has them.
#[derive(Clone, Debug, PartialEq)]
pub enum TorchContent {
    /// Elements of a storage.
    Dense(DenseElements),
    /// None that are read. The word says what kind of tensor or of elements it is.
    Unread(String),
}

/// Where elements are in a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseElements {
    /// Their type.
    pub dtype: DType,
    /// The bytes of the storage in the file.
    storage: Range<usize>,
    /// Position of the first one.
    start: usize,
    strides: Vec<isize>,
    changes: ElementChanges,
}

/// The changes that the bytes of elements need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ElementChanges {
    /// They are in the other byte order.
    is_swapped: bool,
    /// Imaginary parts have the other sign.
    is_conjugate: bool,
    /// Numbers have the other sign.
    is_negative: bool,
}

/// Whether a file is one of `torch.save`, of any version.
pub fn is_file(file: &FileParts) -> bool {
    file.start().starts_with(&OLD_MAGIC) || archive::has_pickle(file)
}

/// Whether name and content are those of a PyTorch file; `false` if it cannot be read.
pub fn is_file_at(path: &Path, file_name: &str) -> bool {
    stem_of(file_name).is_some() && FileParts::open(path).is_ok_and(|file| is_file(&file))
}

/// A file name without the suffix that files of `torch.save` have.
pub fn stem_of(file_name: &str) -> Option<&str> {
    let common = file_name.strip_suffix(COMMON_SUFFIX);
    common.or_else(|| telling_stem(file_name))
}

/// [`stem_of`] for suffixes that no other file has.
pub fn telling_stem(file_name: &str) -> Option<&str> {
    SUFFIXES
        .iter()
        .find_map(|suffix| file_name.strip_suffix(suffix))
}

/// The tensors of a file.
///
/// # Errors
/// [`FormatError`] if the file is damaged, has the form of before 1.6, or names classes and
/// functions other than those of plain tensors.
pub fn decode(file: &FileParts) -> Result<TorchFile, FormatError> {
    if file.start().starts_with(&OLD_MAGIC) {
        let found = "the form of before 1.6, which \
            `torch.save(torch.load(path, weights_only=True), path)` writes anew";
        return Err(FormatError::new(
            0,
            "the zip file of PyTorch 1.6 and later",
            found,
        ));
    }
    let archive = TorchArchive::new(file)?;
    // Places in the pickle become places in the file.
    let start = archive.pickle.start as u64;
    let found =
        pickle::decode(archive.pickle_bytes.as_ref(), known_names::is_known).and_then(|pickle| {
            let meta = meta::of_pickle(&pickle)?;
            let file = TensorWalk::new(&pickle, &archive).finish()?;
            Ok(TorchFile { meta, ..file })
        });
    found.map_err(|error| error.shifted(start))
}

impl TorchTensor {
    /// Bytes of its elements.
    pub fn n_bytes(&self) -> usize {
        match &self.content {
            TorchContent::Dense(elements) => self.shape.n_bytes(elements.dtype).unwrap_or(0),
            TorchContent::Unread(_) => 0,
        }
    }

    /// Where its elements are in the file, if they lie there as they are needed.
    pub fn place(&self) -> Option<Range<usize>> {
        match &self.content {
            TorchContent::Dense(elements) => elements.place(&self.shape),
            TorchContent::Unread(_) => Some(0..0),
        }
    }

    /// Its elements, in row-major order and little-endian.
    ///
    /// # Errors
    /// [`FormatError`] if they do not fit memory, or cannot be read.
    pub fn read(&self, file: &FileParts) -> Result<Vec<u8>, FormatError> {
        match &self.content {
            TorchContent::Dense(elements) => elements.read(&self.shape, file),
            TorchContent::Unread(_) => Ok(Vec::new()),
        }
    }
}

/// Bytes of copies of these tensors.
///
/// # Errors
/// [`FormatError`] if it is more than a file of this size should take.
pub fn n_copied_bytes(tensors: &[TorchTensor], n_file_bytes: usize) -> Result<usize, FormatError> {
    // All of them count together: each may fit, and refer to the same few bytes.
    let sizes = tensors.iter().map(TorchTensor::n_bytes);
    let n_bytes = sizes.fold(0_usize, usize::saturating_add);
    let n_max = n_file_bytes
        .saturating_mul(EXPANSION_MAX)
        .max(N_FILLED_BYTES_MAX);
    if n_bytes > n_max {
        let expected = format!("tensors of at most {n_max} bytes in {n_file_bytes}");
        return Err(FormatError::new(0, expected, n_bytes.to_string()));
    }
    crate::check_memory(n_bytes as u64)
        .map_err(|error| FormatError::new(0, "tensors that fit memory", error.to_string()))?;
    Ok(n_bytes)
}
