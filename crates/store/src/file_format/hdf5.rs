//! HDF5: groups of datasets, as Keras, h5py and old versions of PyTorch for Ascend write golden
//! data.
//!
//! The parser is a library built to handle damaged files. Other files, which a dataset or link may
//! point to, are not opened.

use std::collections::HashSet;
use std::sync::Arc;

use hdf5_reader::error::Error;
use hdf5_reader::group::Group;
use hdf5_reader::messages::datatype::{CompoundField, Datatype};
use hdf5_reader::storage::{BlockCacheStorage, Storage, StorageBuffer};
use hdf5_reader::{Dataset, Hdf5File, OpenOptions};
use opscope_tensor::{DType, Shape};

use crate::file_parts::{FilePart, FileParts};
use crate::{FormatError, check_memory};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "HDF5";
/// How names of files end.
pub const SUFFIXES: [&str; 2] = [".h5", ".hdf5"];
/// Maximum number of datasets of a file.
pub const N_DATASETS_MAX: usize = 1 << 16;
/// Maximum nesting of groups.
const DEPTH_MAX: usize = 64;
/// Maximum expansion of one byte of a file, which deflate reaches for zeros.
const EXPANSION_MAX: u64 = 1032;
/// Datasets of that size are read however small their file is: a single fill value may define all
/// elements.
const N_FILLED_BYTES_MAX: u64 = 64 << 20;

/// The same for all datasets together: several names may refer to one, and a dataset without
/// elements takes no space.
const N_BYTES_TOTAL_MIN: u64 = 1 << 30;

/// Whether a file has the name of an HDF5 file.
pub fn is_name(file_name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| file_name.ends_with(suffix))
}

/// Size of cached blocks. Smaller ranges are copied from blocks, others are read directly.
const BLOCK_BYTES: usize = 64 << 10;
/// Number of cached blocks.
const N_BLOCKS_MAX: usize = 64;

/// A dataset.
pub struct Hdf5Array {
    /// Its path: the names of its groups and its own, with `/` between.
    pub path: String,
    /// Element type; [`DType::Undefined`] of text, structures and references.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// The dataset, or why it cannot be read: it is listed all the same.
    dataset: Result<Dataset, FormatError>,
}

/// The datasets of a file, group by group, in the order of their names.
///
/// # Errors
/// [`FormatError`] if the file is damaged, or holds more than [`N_DATASETS_MAX`] datasets.
pub fn decode(file: FileParts) -> Result<Vec<Hdf5Array>, FormatError> {
    let n_bytes = file.n_bytes() as u64;
    let storage = Arc::new(FileStorage::new(file));
    let file = Hdf5File::from_storage_with_options(storage, OpenOptions::default());
    let file = file.map_err(damaged)?;
    let mut walk = Walk::default();
    walk.add_group(&file.root_group().map_err(damaged)?, "")?;
    let mut n_bytes_total: u64 = 0;
    for array in &walk.found {
        check_size(array, n_bytes)?;
        n_bytes_total = n_bytes_total.saturating_add(array.n_bytes()?);
    }
    let n_max = n_bytes.saturating_mul(EXPANSION_MAX);
    if n_bytes_total > n_max.max(N_BYTES_TOTAL_MIN) {
        let found = format!("{n_bytes_total} bytes of all together in {n_bytes}");
        return Err(unexpected(
            "datasets that the file can hold".to_owned(),
            &found,
        ));
    }
    Ok(walk.found)
}

/// A file as the storage of the HDF5 library.
struct FileStorage {
    file: FileParts,
    /// The same file, for the many small ranges of the metadata.
    blocks: BlockCacheStorage,
}

/// A file without a cache.
struct PlainStorage(FileParts);

impl FileStorage {
    fn new(file: FileParts) -> FileStorage {
        let plain = Arc::new(PlainStorage(file.clone()));
        FileStorage {
            file,
            blocks: BlockCacheStorage::new(plain, BLOCK_BYTES, N_BLOCKS_MAX),
        }
    }
}

impl Storage for FileStorage {
    fn len(&self) -> u64 {
        self.file.n_bytes() as u64
    }

    fn read_range(&self, offset: u64, len: usize) -> Result<StorageBuffer, Error> {
        if len < BLOCK_BYTES {
            return self.blocks.read_range(offset, len);
        }
        read_range(&self.file, offset, len)
    }
}

impl Storage for PlainStorage {
    fn len(&self) -> u64 {
        self.0.n_bytes() as u64
    }

    fn read_range(&self, offset: u64, len: usize) -> Result<StorageBuffer, Error> {
        read_range(&self.0, offset, len)
    }
}

fn read_range(file: &FileParts, offset: u64, len: usize) -> Result<StorageBuffer, Error> {
    let start = usize::try_from(offset).map_err(|_| Error::OffsetOutOfBounds(offset))?;
    let end = start.checked_add(len).filter(|&end| end <= file.n_bytes());
    let end = end.ok_or_else(|| Error::UnexpectedEof {
        offset,
        needed: len as u64,
        available: (file.n_bytes() as u64).saturating_sub(offset),
    })?;
    let part: Arc<FilePart> = Arc::new(file.part(start..end)?);
    StorageBuffer::from_shared_owner(part, 0, len)
}

/// The way through the groups of a file.
#[derive(Default)]
struct Walk {
    /// Groups that were seen, by their addresses: links may lead back to them.
    seen: HashSet<u64>,
    found: Vec<Hdf5Array>,
}

impl Walk {
    fn add_group(&mut self, group: &Group, path: &str) -> Result<(), FormatError> {
        if !self.seen.insert(group.address()) {
            return Ok(());
        }
        if path.matches('/').count() > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} groups inside one another");
            return Err(unexpected(expected, path));
        }
        let (mut groups, mut names) = group.member_names().map_err(damaged)?;
        // Files list them by age or by hash.
        groups.sort_unstable();
        names.sort_unstable();
        for name in names {
            if self.found.len() == N_DATASETS_MAX {
                return Err(unexpected(
                    format!("at most {N_DATASETS_MAX} datasets"),
                    "more",
                ));
            }
            let array = Hdf5Array::open(group, &name, format!("{path}{name}"))?;
            self.found.push(array);
        }
        for name in groups {
            let inner = group.group(&name).map_err(damaged)?;
            self.add_group(&inner, &format!("{path}{name}/"))?;
        }
        Ok(())
    }
}

/// Refuses what a few bytes claim to hold.
fn check_size(array: &Hdf5Array, n_file_bytes: u64) -> Result<(), FormatError> {
    let n_bytes = array.n_bytes()?;
    let n_max = n_file_bytes
        .saturating_mul(EXPANSION_MAX)
        .max(N_FILLED_BYTES_MAX);
    if n_bytes <= n_max {
        return Ok(());
    }
    let found = format!("{n_bytes} bytes of `{}` in {n_file_bytes}", array.path);
    Err(unexpected(
        "datasets that the file can hold".to_owned(),
        &found,
    ))
}

impl Hdf5Array {
    fn open(group: &Group, name: &str, path: String) -> Result<Hdf5Array, FormatError> {
        let dataset = group
            .dataset(name)
            .map_err(|error| unreadable(&path, &error));
        let (dtype, dims) = match &dataset {
            // A dataset without a space is not a scalar.
            Ok(dataset) if dataset.num_elements().is_ok_and(|n| n == 0) && dataset.ndim() == 0 => {
                (dtype_of(dataset.dtype()), &[0][..])
            }
            Ok(dataset) => (dtype_of(dataset.dtype()), dataset.shape()),
            Err(_) => (DType::Undefined, &[][..]),
        };
        let extents: Result<Vec<usize>, _> = dims.iter().map(|&dim| usize::try_from(dim)).collect();
        let Some(shape) = extents.ok().and_then(|dims| Shape::new(dims).ok()) else {
            let found = format!("`{path}` with {dims:?}");
            let expected = "a shape that fits the address space".to_owned();
            return Err(unexpected(expected, &found));
        };
        Ok(Hdf5Array {
            path,
            dtype,
            shape,
            dataset,
        })
    }

    /// Bytes of its elements; none of a dataset that cannot be read.
    ///
    /// # Errors
    /// [`FormatError`] if they do not fit the address space.
    pub fn n_bytes(&self) -> Result<u64, FormatError> {
        match &self.dataset {
            Ok(dataset) => Ok(dataset.raw_byte_len().map_err(damaged)? as u64),
            Err(_) => Ok(0),
        }
    }

    /// Its elements, in row-major order and the byte order of this machine.
    ///
    /// # Errors
    /// [`FormatError`] if they are damaged, do not fit memory, or went through a filter that is not
    /// known.
    pub fn read(&self) -> Result<Vec<u8>, FormatError> {
        let n_bytes = self.n_bytes()?;
        check_memory(n_bytes)
            .map_err(|error| unexpected("as much memory".to_owned(), &error.to_string()))?;
        let dataset = self.dataset.as_ref().map_err(Clone::clone)?;
        match self.dtype {
            // Text and references point into the file, so their bytes are meaningless outside of
            // it.
            DType::Undefined => dataset.read_raw_bytes(),
            _ => dataset.read_native_bytes(),
        }
        .map_err(|error| unreadable(&self.path, &error))
    }
}

/// h5py writes truth as an enumeration of `FALSE` and `TRUE`, complex numbers as structures of `r`
/// and `i`.
fn dtype_of(datatype: &Datatype) -> DType {
    match datatype {
        Datatype::FixedPoint { size, signed, .. } => integer(*size, *signed),
        Datatype::FloatingPoint { size: 2, .. } => DType::F16,
        Datatype::FloatingPoint { size: 4, .. } => DType::F32,
        Datatype::FloatingPoint { size: 8, .. } => DType::F64,
        Datatype::Enum { members, .. }
            if members.len() == 2
                && members
                    .iter()
                    .all(|member| ["FALSE", "TRUE"].contains(&member.name.as_str())) =>
        {
            DType::Bool
        }
        Datatype::Enum { base, .. } => dtype_of(base),
        Datatype::Compound { size, fields } => complex(*size, fields),
        _ => DType::Undefined,
    }
}

fn integer(size: u8, is_signed: bool) -> DType {
    match (size, is_signed) {
        (1, true) => DType::I8,
        (1, false) => DType::U8,
        (2, true) => DType::I16,
        (2, false) => DType::U16,
        (4, true) => DType::I32,
        (4, false) => DType::U32,
        (8, true) => DType::I64,
        (8, false) => DType::U64,
        _ => DType::Undefined,
    }
}

fn complex(size: u32, fields: &[CompoundField]) -> DType {
    let [real, imaginary] = fields else {
        return DType::Undefined;
    };
    let parts = (dtype_of(&real.datatype), dtype_of(&imaginary.datatype));
    let is_pair = real.name == "r" && imaginary.name == "i" && real.byte_offset == 0;
    match (is_pair, size, parts) {
        (true, 8, (DType::F32, DType::F32)) => DType::C64,
        (true, 16, (DType::F64, DType::F64)) => DType::C128,
        _ => DType::Undefined,
    }
}

fn damaged(error: impl Into<Error>) -> FormatError {
    unexpected("a sound file".to_owned(), &error.into().to_string())
}

fn unreadable(path: &str, error: &Error) -> FormatError {
    let found = format!("`{path}` with {error}");
    unexpected("datasets that can be read".to_owned(), &found)
}

fn unexpected(expected: String, found: &str) -> FormatError {
    FormatError::new(0, expected, found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn golden(name: &str) -> FileParts {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hdf5");
        FileParts::open(&dir.join(name)).unwrap()
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let bytes = golden("h5py.h5");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.h5");
        for at in (0..bytes.start().len()).step_by(97) {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.start().to_vec();
                damaged[at] ^= flip;
                std::fs::write(&path, &damaged).unwrap();
                let found = decode(FileParts::open(&path).unwrap());
                for array in found.unwrap_or_default() {
                    let read = array.read();
                    assert!(
                        read.is_err() || read.unwrap().len() as u64 == array.n_bytes().unwrap()
                    );
                }
            }
        }
        for n in [0, 8, 100, bytes.start().len() / 2] {
            std::fs::write(&path, &bytes.start()[..n]).unwrap();
            let all = decode(FileParts::open(&path).unwrap());
            let is_refused = |all: Vec<Hdf5Array>| all.iter().any(|array| array.read().is_err());
            assert!(all.map_or(true, is_refused), "{n} bytes");
        }
    }

    #[test]
    fn a_small_file_cannot_ask_for_much() {
        for name in ["filled.h5", "many_names.h5"] {
            let error = decode(golden(name)).err().unwrap().to_string();
            let expected = "datasets that the file can hold";
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
