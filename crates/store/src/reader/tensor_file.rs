//! A file with tensors, brought into one form whichever format it has.
//!
//! Dump files of the runtime and of the nano runtime, numpy's arrays, archives of arrays and
//! overflow records in JSON all become a list of [`StoredTensor`]s, each with a range of the file's
//! bytes.

mod archive;
mod array;
mod dump_data;
mod elements;
mod head;
mod open_archives;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Layout, Shape, ShapeError};

use super::term::DumpTerm;
use crate::file_format::dump_data::{self as dump_format, CheckedHead};
use crate::file_format::ort_trace::ValueUse;
use crate::file_format::{
    ffts_plus, hdf5, nano, npy, npy_zst, npz, onnx_tensor, op_debug, ort_trace, polygraphy_json,
    safetensors, sqlite, torch_save,
};
use crate::file_parts::{FilePart, FileParts};
use crate::record::SlotSide;
use crate::tree::mindspore::TensorFileName;
use crate::{FormatError, StoreError};

pub(super) use archive::META_PREFIX;
pub use head::{FileContent, FileExpectation, FileHead, FileRequest};
pub use open_archives::keep_archives_open;

/// Bytes of an overflow record, as devices write it.
const RECORD_BYTES: u64 = op_debug::BLOCK_RECORD_BYTES as u64;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// The dump file of AscendCL.
    DumpData,
    /// The dump file of the nano runtime.
    Nano,
    /// A numpy array: one output.
    Npy,
    /// An overflow record in JSON: one output, as the record's bytes would be.
    RecordJson,
    /// numpy's archive of named arrays.
    Npz,
    /// An archive of named tensors.
    Safetensors,
    /// Groups of datasets.
    Hdf5,
    /// Elements in a file that does not describe them until it is full: tables do.
    Elements,
    /// Arrays by name in JSON, of each runner and iteration.
    PolygraphyJson,
    /// The value of an ONNX graph.
    TensorProto,
    /// Tensors among plain data of PyTorch's.
    TorchSave,
    /// Values of an ONNX graph in a database, with the nodes that they belong to.
    OrtTrace,
}

impl FileKind {
    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::DumpData => dump_format::FORMAT_NAME,
            FileKind::Nano => nano::FORMAT_NAME,
            FileKind::Npy => npy::FORMAT_NAME,
            FileKind::RecordJson => op_debug::FORMAT_NAME,
            FileKind::Npz => npz::FORMAT_NAME,
            FileKind::Safetensors => safetensors::FORMAT_NAME,
            FileKind::Hdf5 => hdf5::FORMAT_NAME,
            FileKind::Elements => "elements",
            FileKind::PolygraphyJson => polygraphy_json::FORMAT_NAME,
            FileKind::TensorProto => onnx_tensor::FORMAT_NAME,
            FileKind::TorchSave => torch_save::FORMAT_NAME,
            FileKind::OrtTrace => ort_trace::FORMAT_NAME,
        }
    }

    /// Whether names of tensors are those of values of an ONNX graph.
    pub fn holds_values(self) -> bool {
        matches!(
            self,
            FileKind::PolygraphyJson | FileKind::TensorProto | FileKind::OrtTrace
        )
    }

    /// Whether tensors have names in the file, as those of several operators do.
    pub fn is_archive(self) -> bool {
        matches!(
            self,
            FileKind::Npz
                | FileKind::Safetensors
                | FileKind::Hdf5
                | FileKind::PolygraphyJson
                | FileKind::TensorProto
                | FileKind::TorchSave
                | FileKind::OrtTrace
        )
    }
}

/// One tensor, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    /// Input or output; of an archive everything is an output.
    pub side: SlotSide,
    /// Position among the inputs or outputs of the file.
    pub index: usize,
    /// Position among the operator's inputs or outputs, if the file contains a different one.
    pub slot: Option<u32>,
    /// Its name, in an archive.
    pub name: Option<String>,
    /// The run of a model that it belongs to, if the archive contains it.
    pub run: Option<StoredRun>,
    /// Its slots, if the file contains them.
    pub uses: Vec<ValueUse>,
    /// Type of the elements.
    pub dtype: DumpTerm<DType>,
    /// Meaning of the axes.
    pub layout: DumpTerm<Layout>,
    /// Dimensions as stored; absent and empty both mean a scalar.
    pub shape: Option<Vec<u64>>,
    /// Dimensions before the layout was changed, if the file has them.
    pub original_shape: Option<Vec<u64>>,
    /// Layout before fusion, if the file contains it.
    pub original_layout: Option<Layout>,
    /// Name and output of the operator before fusion that produced it, if the file contains them.
    pub original: Option<(String, u32)>,
    /// Groups of the convolution whose filter it is; `None` if it has one group, or is not a
    /// filter.
    pub n_groups: Option<usize>,
    /// Bytes of the elements.
    pub n_bytes: u64,
    /// Where the elements begin in the file; none where they are compressed or brought into another
    /// order.
    pub offset: Option<u64>,
    /// Where the elements are among the bytes of the [`TensorFile`].
    range: Range<usize>,
}

/// The run of a model that a tensor of an archive is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// Which tool ran the model, if known.
    pub runner: Option<String>,
    /// Which of its runs, counted from 0.
    pub iteration: u64,
    /// The label that distinguishes it from other runs in the same file; `None` if there are no
    /// others.
    pub label: Option<String>,
}

impl StoredTensor {
    /// A dense array without a history.
    pub fn array(dtype: DType, shape: &Shape, layout: Layout, range: Range<usize>) -> StoredTensor {
        StoredTensor {
            side: SlotSide::Output,
            index: 0,
            slot: None,
            name: None,
            run: None,
            uses: Vec::new(),
            dtype: DumpTerm::Known(dtype),
            layout: DumpTerm::Known(layout),
            shape: Some(shape.iter().map(|&dim| dim as u64).collect()),
            original_shape: None,
            original_layout: None,
            original: None,
            n_groups: None,
            n_bytes: range.len() as u64,
            offset: None,
            range,
        }
    }

    /// Its place among the tensors of its operator.
    pub fn operator_slot(&self) -> (SlotSide, u32) {
        let index = u32::try_from(self.index).unwrap_or(u32::MAX);
        (self.side, self.slot.unwrap_or(index))
    }

    /// `input.0`, `output.1`, …, or the name in the archive, after the run if there are several.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => match self.run.as_ref().and_then(|run| run.label.as_deref()) {
                Some(run) => format!("{run}/{name}"),
                None => name.clone(),
            },
            None => format!("{}.{}", self.side.name(), self.index),
        }
    }

    /// The dimensions; without any it is a single element.
    ///
    /// # Errors
    /// [`ShapeError`] if there are too many elements.
    pub fn element_shape(&self) -> Result<Shape, ShapeError> {
        let dims = match &self.shape {
            Some(dims) => dims
                .iter()
                .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
                .collect(),
            None => vec![1],
        };
        Shape::new(dims)
    }
}

/// A tensor of a file that is open.
#[derive(Clone, Copy)]
pub struct OpenedTensor<'a> {
    /// Its description.
    pub stored: &'a StoredTensor,
    /// Its elements.
    pub bytes: &'a [u8],
}

/// Facts about a file as a whole. Formats that lack one leave it empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Format version.
    pub version: String,
    /// When the file was made, in microseconds since 1970-01-01 UTC.
    pub dump_time: u64,
    /// The operator's name before characters were replaced.
    pub op_name: String,
    /// Names and values of attributes.
    pub attributes: Vec<(String, String)>,
    /// Text of an exception dump.
    pub message: String,
}

/// A part of a file that is not a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraPiece {
    /// Its kind.
    pub kind: ExtraKind,
    /// Position among the on-chip buffers, or among the workspaces.
    pub index: usize,
    /// Size in bytes.
    pub n_bytes: u64,
    range: Range<usize>,
}

/// The kind of an [`ExtraPiece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraKind {
    /// The on-chip buffer of level 1.
    L1Buffer,
    /// Another on-chip buffer.
    Buffer,
    /// A workspace.
    Space,
}

/// A checked file. [`TensorFile::elements`] reads the elements.
pub struct TensorFile {
    /// Its path, for errors; empty if it is in memory.
    path: PathBuf,
    kind: FileKind,
    /// Its name, or its real name if the file's name is a number.
    file_name: String,
    facts: FileFacts,
    tensors: Vec<StoredTensor>,
    extras: Vec<ExtraPiece>,
    /// Bytes before the payload.
    n_start: u64,
    /// Size of the file without its compression, if it has one.
    n_decompressed: Option<u64>,
    parts: FileParts,
    /// The files of each tensor, if they are several.
    gathered: Vec<FileParts>,
}

impl TensorFile {
    /// Opens a file of any format. `file_name` is its real name.
    ///
    /// Tensors of a dump that one FFTS+ thread wrote get the shapes of that thread's parts. Any
    /// other first attribute is ignored.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or is damaged.
    pub fn open(path: &Path, file_name: &str) -> Result<TensorFile, StoreError> {
        TensorFile::open_for(path, file_name, None)
    }

    /// [`TensorFile::open`] for the sake of one tensor, given by side and position: others of an
    /// archive whose parts are compressed are left out.
    ///
    /// # Errors
    /// As for [`TensorFile::open`].
    pub fn open_for(
        path: &Path,
        file_name: &str,
        wanted: Option<(SlotSide, usize)>,
    ) -> Result<TensorFile, StoreError> {
        let file = TensorFile::open_format(path, file_name, wanted)?;
        Ok(TensorFile {
            path: path.to_owned(),
            ..file
        })
    }

    fn open_format(
        path: &Path,
        file_name: &str,
        wanted: Option<(SlotSide, usize)>,
    ) -> Result<TensorFile, StoreError> {
        // These two find their parts themselves: a large archive is not brought into memory for one
        // of them.
        if file_name.ends_with(npz::SUFFIX) {
            return archive::open_npz(path, file_name, wanted.map(|(_, index)| index));
        }
        if hdf5::is_name(file_name) {
            return archive::open_hdf5(path, file_name, wanted.map(|(_, index)| index));
        }
        let read = |result: io::Result<FilePart>| result.map_err(StoreError::io("read", path));
        let parts = FileParts::open(path).map_err(StoreError::io("read", path))?;
        // Databases have names of many kinds, and journals that are found by path.
        if sqlite::has_magic(parts.start()) {
            return archive::open_trace(path, file_name, wanted.map(|(_, index)| index));
        }
        let corrupt = |format| StoreError::corrupt(format, path);
        if file_name.ends_with(safetensors::SUFFIX) {
            let file = archive::safetensors_file(parts, file_name);
            return file.map_err(corrupt(safetensors::FORMAT_NAME));
        }
        if op_debug::is_json_record_name(file_name) {
            let file = array::record_file(read(parts.whole())?.as_ref(), file_name);
            return file.map_err(corrupt(op_debug::FORMAT_NAME));
        }
        // Other tools write JSON as well, so the name alone is not enough.
        if polygraphy_json::has_signs(parts.start()) && file_name.ends_with(polygraphy_json::SUFFIX)
        {
            let wanted = wanted.map(|(_, index)| index);
            let whole = read(parts.whole())?;
            let file = archive::polygraphy_file(whole.as_ref(), file_name, wanted);
            return file.map_err(corrupt(polygraphy_json::FORMAT_NAME));
        }
        if onnx_tensor::may_be_file(file_name) {
            let whole = read(parts.whole())?;
            if onnx_tensor::is_file(file_name, whole.as_ref()) {
                let file = archive::onnx_tensor_file(whole, file_name);
                return file.map_err(corrupt(onnx_tensor::FORMAT_NAME));
            }
        }
        if torch_save::is_file(&parts) {
            let file = archive::torch_file(parts, file_name, wanted.map(|(_, index)| index));
            return file.map_err(corrupt(torch_save::FORMAT_NAME));
        }
        if npy_zst::is_compressed(file_name, parts.start()) {
            let content = npy_zst::decode(read(parts.whole())?.as_ref());
            let file = content.and_then(|content| array::compressed_file(content, file_name));
            return file.map_err(corrupt(npy_zst::FORMAT_NAME));
        }
        // A file with this suffix counts as an array even without the magic, so that the error
        // about a damaged one speaks of an array.
        if file_name.ends_with(npy_zst::PLAIN_SUFFIX) || npy::has_magic(parts.start()) {
            let file = array::array_file(parts, file_name);
            return file.map_err(corrupt(npy::FORMAT_NAME));
        }
        if nano::is_nano(parts.start()) {
            let file = TensorFile::from_nano(parts, file_name);
            return file.map_err(corrupt(nano::FORMAT_NAME));
        }
        // Dump files begin with a length and have no magic, so every other format has its turn
        // before.
        TensorFile::dump_file(parts, path, file_name)
    }

    /// A dump file of the runtime.
    fn dump_file(parts: FileParts, path: &Path, name: &str) -> Result<TensorFile, StoreError> {
        let corrupt = |format| StoreError::corrupt(format, path);
        let start = parts.length_and_header(dump_format::HEADER_BYTES_MAX as usize);
        let start = start.map_err(StoreError::io("read", path))?;
        let mut head = CheckedHead::read(start.as_ref(), parts.n_bytes())
            .map_err(corrupt(dump_format::FORMAT_NAME))?;
        ffts_plus::apply_own_slices(&mut head.header, name)
            .map_err(|error| corrupt(ffts_plus::FORMAT_NAME)(error.into()))?;
        Ok(TensorFile::from_dump(head, parts, name))
    }

    /// Reads the elements of one of the file's tensors.
    ///
    /// # Errors
    /// [`StoreError::Io`], also if the file has become shorter.
    pub fn elements(&self, stored: &StoredTensor) -> Result<FilePart, StoreError> {
        self.elements_part(stored, 0..stored.range.len())
    }

    /// Reads some bytes of one of the file's tensors.
    ///
    /// # Errors
    /// As for [`TensorFile::elements`]; also if the tensor has no such bytes.
    pub fn elements_part(
        &self,
        stored: &StoredTensor,
        bytes: Range<usize>,
    ) -> Result<FilePart, StoreError> {
        let Range { start, end } = stored.range;
        let is_inside = bytes.start <= bytes.end && bytes.end <= end - start;
        let part = match is_inside {
            true => self
                .parts_of(stored)
                .part(start + bytes.start..start + bytes.end),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        self.read(part)
    }

    /// Like [`TensorFile::elements`], but maps large tensors.
    ///
    /// # Errors
    /// As for [`TensorFile::elements`]. [`FileBytes::map_part`](crate::file_bytes::FileBytes) has the
    /// consequences of truncating the file.
    pub fn mapped_elements(&self, stored: &StoredTensor) -> Result<FilePart, StoreError> {
        self.read(self.parts_of(stored).mapped_part(stored.range.clone()))
    }

    fn parts_of(&self, stored: &StoredTensor) -> &FileParts {
        if self.gathered.is_empty() {
            return &self.parts;
        }
        let is_same =
            |other: &StoredTensor| (other.side, other.index) == (stored.side, stored.index);
        let position = self.tensors.iter().position(is_same);
        let gathered = position.and_then(|position| self.gathered.get(position));
        gathered.unwrap_or(&self.parts)
    }

    /// Reads the bytes of an on-chip buffer or a workspace.
    ///
    /// # Errors
    /// As for [`TensorFile::elements`].
    pub fn extra_bytes(&self, piece: &ExtraPiece) -> Result<FilePart, StoreError> {
        self.read(self.parts.part(piece.range.clone()))
    }

    fn read(&self, part: io::Result<FilePart>) -> Result<FilePart, StoreError> {
        part.map_err(StoreError::io("read", &self.path))
    }

    /// The file's format.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The facts of the file as a whole.
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// Bytes before the payload.
    pub fn n_start(&self) -> u64 {
        self.n_start
    }

    /// Size of the file without its compression, if it has one.
    pub fn n_decompressed(&self) -> Option<u64> {
        self.n_decompressed
    }

    /// Returns the parts of the name of a MindSpore array; `None` for files of other kinds or
    /// names.
    pub fn array_name(&self) -> Option<TensorFileName> {
        let name = TensorFileName::parse(&self.file_name);
        name.filter(|_| self.kind == FileKind::Npy)
    }

    /// `input.0`, `output.1`, …; an array is what its name says.
    pub fn slot_of(&self, stored: &StoredTensor) -> String {
        match self.array_name() {
            Some(name) => format!("{}.{}", name.side.name(), name.slot),
            None => stored.label(),
        }
    }

    /// Whether the name shows that the outputs are overflow records.
    pub fn holds_records(&self) -> bool {
        let is_record = match self.kind {
            FileKind::DumpData | FileKind::RecordJson => true,
            FileKind::Npy => self.is_record_array(),
            FileKind::Nano
            | FileKind::Npz
            | FileKind::Safetensors
            | FileKind::Hdf5
            | FileKind::Elements
            | FileKind::PolygraphyJson
            | FileKind::TensorProto
            | FileKind::TorchSave
            | FileKind::OrtTrace => false,
        };
        is_record && op_debug::is_record_name(&self.file_name)
    }

    /// Whether the array has the form of an overflow record.
    fn is_record_array(&self) -> bool {
        self.tensors.iter().all(|tensor| {
            tensor.dtype == DumpTerm::Known(DType::U8) && tensor.n_bytes == RECORD_BYTES
        })
    }

    /// Inputs, then outputs.
    pub fn tensors(&self) -> impl Iterator<Item = &StoredTensor> {
        self.tensors.iter()
    }

    /// Number of inputs, or of outputs.
    pub fn n_tensors(&self, side: SlotSide) -> usize {
        self.tensors.iter().filter(|t| t.side == side).count()
    }

    /// The tensor at a position; `None` if it is missing.
    pub fn tensor(&self, side: SlotSide, index: usize) -> Option<&StoredTensor> {
        self.tensors()
            .find(|stored| (stored.side, stored.index) == (side, index))
    }

    /// On-chip buffers and workspaces, which are not tensors.
    pub fn extras(&self) -> impl Iterator<Item = &ExtraPiece> {
        self.extras.iter()
    }
}

impl StoredTensor {
    /// Its offset in the file.
    pub fn start(&self) -> u64 {
        // Of a remote file only a part may be available.
        self.offset.unwrap_or(self.range.start as u64)
    }
}

/// The error of a tensor that takes another number of bytes than there are.
fn wrong_size(dtype: DType, shape: &Shape, range: &Range<usize>) -> FormatError {
    let expected = match shape.n_bytes(dtype) {
        Ok(n) => format!("{n} bytes of {dtype} {shape}"),
        Err(error) => error.to_string(),
    };
    FormatError::new(range.start as u64, expected, range.len().to_string())
}
