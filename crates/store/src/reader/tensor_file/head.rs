//! Reads a file's description of its tensors, without reading their elements.

use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Layout};

use super::{FileKind, StoredTensor, TensorFile, archive, array};
use crate::file_bytes::FileBytes;
use crate::file_format::npy::{self, NpyHeader};
use crate::file_format::stats_csv::{self, StatsTable};
use crate::file_format::{
    hdf5, nano, npy_zst, npz, ort_trace, polygraphy_json, safetensors, torch_save,
};
use crate::file_parts::FileParts;
use crate::tree::acl::DumpFileName;
use crate::{StoreError, remote};

/// Bytes of a remote file that are read for its header.
const START_BYTES: u64 = 64 << 10;
/// Remote files up to this size are fetched whole.
const WHOLE_BYTES_MAX: u64 = 256 << 10;

/// A file whose contents a reader asks for.
#[derive(Clone, Debug)]
pub struct FileRequest {
    /// Where it is.
    pub path: PathBuf,
    /// Its real name.
    pub real_name: String,
    /// Its possible content.
    pub expectation: FileExpectation,
}

/// The possible content of a file, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileExpectation {
    /// Tensors or overflow records.
    Tensors,
    /// A table of statistics.
    Table,
    /// One or the other: the content decides.
    Either,
}

/// The contents of a file without elements.
#[derive(Clone, Debug)]
pub enum FileContent {
    /// Descriptions of tensors.
    Tensors(FileHead),
    /// Statistics of tensors.
    Table(StatsTable),
}

/// The descriptions of a file's tensors.
#[derive(Clone, Debug)]
pub struct FileHead {
    /// The file's format.
    pub kind: FileKind,
    /// Whether the outputs are overflow records.
    pub holds_records: bool,
    /// When the file was made, in microseconds since 1970-01-01 UTC; 0 where it does not say.
    pub dump_time: u64,
    /// The operator's name; empty where the file does not say.
    pub op_name: String,
    /// Names and values of attributes, in files of PyTorch.
    pub attributes: Vec<(String, String)>,
    /// Inputs, then outputs.
    pub tensors: Vec<StoredTensor>,
}

impl FileRequest {
    /// Reads headers and tables. A compressed array is decompressed as far as its header goes, so
    /// that damage further on is not noticed here.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or is damaged.
    pub fn read_head(&self) -> Result<FileContent, StoreError> {
        self.read_with(|| FileHead::read(&self.path, &self.real_name))
    }

    /// [`FileRequest::read_head`] for the whole file, so that all damage is noticed.
    ///
    /// # Errors
    /// As for [`FileRequest::read_head`].
    pub fn read_whole(&self) -> Result<FileContent, StoreError> {
        self.read_with(|| {
            // For uncompressed files, opening reads only the head.
            match FileHead::read_remote(&self.path, &self.real_name)? {
                Some(head) => Ok(head),
                None => Ok((&TensorFile::open(&self.path, &self.real_name)?).into()),
            }
        })
    }

    fn read_with(
        &self,
        read_tensors: impl FnOnce() -> Result<FileHead, StoreError>,
    ) -> Result<FileContent, StoreError> {
        match self.read_table()? {
            Some(table) => Ok(FileContent::Table(table)),
            None => read_tensors().map(FileContent::Tensors),
        }
    }

    /// Reads the table; none if the file holds tensors.
    pub(crate) fn read_table(&self) -> Result<Option<StatsTable>, StoreError> {
        match self.expectation {
            FileExpectation::Tensors => Ok(None),
            FileExpectation::Table => stats_csv::read_file(&self.path).map(Some),
            FileExpectation::Either => stats_csv::read_if_table(&self.path),
        }
    }
}

impl From<&TensorFile> for FileHead {
    fn from(file: &TensorFile) -> FileHead {
        FileHead {
            kind: file.kind,
            holds_records: file.holds_records(),
            dump_time: file.facts.dump_time,
            op_name: file.facts.op_name.clone(),
            attributes: file.facts.attributes.clone(),
            tensors: file.tensors.clone(),
        }
    }
}

impl FileHead {
    fn read(path: &Path, file_name: &str) -> Result<FileHead, StoreError> {
        if let Some(head) = FileHead::read_remote(path, file_name)? {
            return Ok(head);
        }
        if file_name.ends_with(npz::SUFFIX) {
            let tensors = archive::npz_members(path)?;
            return Ok(FileHead::from_arrays(FileKind::Npz, tensors));
        }
        if hdf5::is_name(file_name) {
            let tensors = archive::hdf5_members(path)?;
            return Ok(FileHead::from_arrays(FileKind::Hdf5, tensors));
        }
        if file_name.ends_with(npy_zst::SUFFIX)
            && let Some(array) = compressed_array(path)?
        {
            return Ok(FileHead::from_arrays(FileKind::Npy, vec![array]));
        }
        // Other programs use these suffixes too, so the content decides from here on.
        if polygraphy_json::is_file(path, file_name) {
            let bytes = FileBytes::open(path).map_err(StoreError::io("read", path))?;
            let tensors = archive::polygraphy_members(bytes.as_ref());
            let tensors =
                tensors.map_err(StoreError::corrupt(polygraphy_json::FORMAT_NAME, path))?;
            return Ok(FileHead::from_arrays(FileKind::PolygraphyJson, tensors));
        }
        if ort_trace::is_file_at(path, file_name) {
            let tensors = archive::trace_members(path)?;
            return Ok(FileHead::from_arrays(FileKind::OrtTrace, tensors));
        }
        if torch_save::is_file_at(path, file_name) {
            let file = FileParts::open(path).map_err(StoreError::io("read", path))?;
            let members = archive::torch_members(&file);
            let (tensors, facts) =
                members.map_err(StoreError::corrupt(torch_save::FORMAT_NAME, path))?;
            return Ok(FileHead {
                attributes: facts.attributes,
                ..FileHead::from_arrays(FileKind::TorchSave, tensors)
            });
        }
        Ok(FileHead::from(&TensorFile::open(path, file_name)?))
    }

    /// The head of a remote file whose elements need not be fetched for it; `None` if this is no
    /// such file, or only the whole file shows it.
    fn read_remote(path: &Path, file_name: &str) -> Result<Option<FileHead>, StoreError> {
        let is_archive = file_name.ends_with(safetensors::SUFFIX);
        let is_array = file_name.ends_with(npy_zst::PLAIN_SUFFIX);
        let may_be = is_archive || is_array || DumpFileName::parse(file_name).is_some();
        if !may_be || !remote::is_remote(path) {
            return Ok(None);
        }
        let failed = || StoreError::io("read", path);
        let n_file = remote::metadata(path).map_err(failed())?.len();
        // One request brings either.
        if n_file <= WHOLE_BYTES_MAX {
            return Ok(None);
        }
        let start = remote::read_start(path, START_BYTES).map_err(failed())?;
        let start = (*start).as_ref();
        if is_array {
            // Elements in another order, or of text, are rearranged when such a file is opened.
            let plain = NpyHeader::decode(start).ok().filter(|(header, _)| {
                let is_text = header.dtype == DType::String;
                !header.is_big_endian && !header.is_fortran_order && !is_text
            });
            if plain.is_none() {
                return Ok(None);
            }
        } else {
            // Both begin with the length of their header. In other formats the number there is not
            // that small.
            let length = start.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let is_at_hand = length.is_some_and(|n| n > 0 && n <= START_BYTES - 8);
            if !is_at_hand || nano::is_nano(start) {
                return Ok(None);
            }
        }
        let n_file = usize::try_from(n_file).unwrap_or(usize::MAX);
        let parts = FileParts::only_start(start.to_vec().into(), n_file);
        let file = if is_array {
            array::array_file(parts, file_name).map_err(StoreError::corrupt(npy::FORMAT_NAME, path))
        } else if is_archive {
            let file = archive::safetensors_file(parts, file_name);
            file.map_err(StoreError::corrupt(safetensors::FORMAT_NAME, path))
        } else {
            TensorFile::dump_file(parts, path, file_name)
        };
        file.map(|file| Some(FileHead::from(&file)))
    }

    fn from_arrays(kind: FileKind, tensors: Vec<StoredTensor>) -> FileHead {
        FileHead {
            kind,
            holds_records: false,
            dump_time: 0,
            op_name: String::new(),
            attributes: Vec::new(),
            tensors,
        }
    }
}

/// An array whose header is sufficient; `None` for text, whose size it does not contain.
fn compressed_array(path: &Path) -> Result<Option<StoredTensor>, StoreError> {
    let bytes = FileBytes::open(path).map_err(StoreError::io("read", path))?;
    let header = npy_zst::header(bytes.as_ref());
    let (header, _) = header.map_err(StoreError::corrupt(npy_zst::FORMAT_NAME, path))?;
    if header.dtype == DType::String {
        return Ok(None);
    }
    let range = 0..header.n_data_bytes().unwrap_or(usize::MAX);
    let stored = StoredTensor::array(header.dtype, &header.shape, Layout::Nd, range);
    Ok(Some(stored))
}
