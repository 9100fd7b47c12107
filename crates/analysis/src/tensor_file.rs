//! A file with tensors, brought into one form whichever format it has.
//!
//! Three formats hold tensors: the runtime's dump file, that of the nano runtime, and numpy's arrays.
//! All of them look like a `DumpData` header and pieces of a payload here.

mod array;
mod head;
mod slices;

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{
    self, DumpFile, DumpHeader, DumpTensor, PayloadKind, Piece,
};
use opscope_store::file_format::ffts_plus::{self, FftsPlus};
use opscope_store::file_format::nano::{self, NanoHeader};
use opscope_store::file_format::{npy, npy_zst, op_debug};
use opscope_store::record::Side;
use opscope_store::tree::mindspore::TensorFileName;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::{DType, Layout, Shape, TensorView};

use array::{array_file, compressed_array_file};
pub(crate) use head::Head;
pub use slices::SliceError;

use crate::describe::slot_name;

/// How the file of an array begins.
const NPY_MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of an overflow record, as devices write it.
const RECORD_BYTES: u64 = op_debug::BLOCK_RECORD_BYTES as u64;
/// Field of a nano dump's name that holds the operator's name.
const OP_NAME_FIELD: usize = 1;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The dump file of AscendCL.
    DumpData,
    /// The dump file of the nano runtime.
    Nano,
    /// A numpy array: one output.
    Npy,
    /// An overflow record in JSON: one output, as the record's bytes would be.
    RecordJson,
}

impl FileKind {
    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::DumpData => dump_data::FORMAT_NAME,
            FileKind::Nano => nano::FORMAT_NAME,
            FileKind::Npy => npy::FORMAT_NAME,
            FileKind::RecordJson => op_debug::FORMAT_NAME,
        }
    }
}

/// A checked file: its pieces lie inside it.
pub struct TensorFile {
    kind: FileKind,
    /// Its name; the real one where the file goes by digits.
    file_name: String,
    header: DumpHeader,
    pieces: Vec<Piece>,
    /// Bytes before the payload.
    n_start: u64,
    /// Size of the file without its compression, if it has one.
    n_decompressed: Option<u64>,
    bytes: FileBytes,
}

impl TensorFile {
    /// Opens a file of any format. `file_name` is its real name.
    ///
    /// Tensors of a dump that one FFTS+ thread wrote get the shapes of that thread's parts. Another
    /// first attribute means nothing.
    pub(crate) fn open(path: &Path, file_name: &str) -> Result<TensorFile, StoreError> {
        let bytes = FileBytes::open(path).map_err(|source| StoreError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        let corrupt = |format| {
            move |source| StoreError::Corrupt {
                format,
                path: path.to_owned(),
                source,
            }
        };
        if op_debug::is_json_record_name(file_name) {
            return record_file(&bytes, file_name).map_err(corrupt(op_debug::FORMAT_NAME));
        }
        if npy_zst::is_compressed(file_name, bytes.as_ref()) {
            let corrupt = corrupt(npy_zst::FORMAT_NAME);
            let content = npy_zst::decode(bytes.as_ref());
            let array = content.and_then(|content| compressed_array_file(content, file_name));
            return array.map_err(corrupt);
        }
        if file_name.ends_with(npy_zst::PLAIN_SUFFIX) || bytes.as_ref().starts_with(NPY_MAGIC) {
            return array_file(bytes, file_name).map_err(corrupt(npy::FORMAT_NAME));
        }
        if nano::is_nano(bytes.as_ref()) {
            return nano_file(bytes, file_name).map_err(corrupt(nano::FORMAT_NAME));
        }
        let dump = DumpFile::from_bytes(bytes).map_err(corrupt(dump_data::FORMAT_NAME))?;
        let mut file = TensorFile::from_dump(dump, file_name);
        file.apply_own_slices()
            .map_err(|error| corrupt(ffts_plus::FORMAT_NAME)(error.into()))?;
        Ok(file)
    }

    /// A dump file of AscendCL. Its tensors keep the shapes of the header, FFTS+ threads or not.
    pub fn from_dump(dump: DumpFile, file_name: &str) -> TensorFile {
        let n_start = dump_data::LENGTH_BYTES.saturating_add(dump.n_header_bytes());
        let (bytes, header, pieces) = dump.into_parts();
        TensorFile {
            kind: FileKind::DumpData,
            file_name: file_name.to_owned(),
            header,
            pieces,
            n_start,
            n_decompressed: None,
            bytes,
        }
    }

    /// A nano dump. The caller has checked with [`NanoHeader::check_size`] that the header of `n_header`
    /// bytes fits the file's size.
    pub fn from_nano(
        nano: &NanoHeader,
        n_header: usize,
        bytes: FileBytes,
        file_name: &str,
    ) -> TensorFile {
        let mut start = nano::LENGTH_BYTES.saturating_add(n_header);
        let n_start = start as u64;
        let mut pieces = Vec::new();
        for (kind, tensors) in [
            (PayloadKind::Input, &nano.inputs),
            (PayloadKind::Output, &nano.outputs),
        ] {
            for (index, tensor) in tensors.iter().enumerate() {
                let size = usize::try_from(tensor.size).unwrap_or(usize::MAX);
                let end = start.saturating_add(size);
                let range = start..end;
                pieces.push(Piece { kind, index, range });
                start = end;
            }
        }
        let op_name = file_name.split('.').nth(OP_NAME_FIELD).unwrap_or_default();
        let entries = |tensors: &[nano::NanoTensor]| tensors.iter().map(|t| t.to_entry()).collect();
        let header = DumpHeader {
            version: nano.version.to_string(),
            op_name: op_name.to_owned(),
            inputs: entries(&nano.inputs),
            outputs: entries(&nano.outputs),
            ..DumpHeader::default()
        };
        TensorFile {
            kind: FileKind::Nano,
            file_name: file_name.to_owned(),
            header,
            pieces,
            n_start,
            n_decompressed: None,
            bytes,
        }
    }

    /// A file without anything in it.
    pub fn empty(bytes: FileBytes, file_name: &str) -> TensorFile {
        TensorFile {
            kind: FileKind::DumpData,
            file_name: file_name.to_owned(),
            header: DumpHeader::default(),
            pieces: Vec::new(),
            n_start: 0,
            n_decompressed: None,
            bytes,
        }
    }

    /// Writes `bytes` at the end of `out`, from file to file if they are a part of this one.
    pub(crate) fn write(&self, bytes: &[u8], out: &mut File) -> io::Result<()> {
        match self.bytes.range_of(bytes) {
            Some(range) => self.bytes.copy_to(range, out),
            None => out.write_all(bytes),
        }
    }

    /// Where in the file a slice of its bytes lies; `None` for bytes from elsewhere.
    pub(crate) fn range_of(&self, bytes: &[u8]) -> Option<Range<usize>> {
        self.bytes.range_of(bytes)
    }

    /// All bytes of the file, without its compression.
    pub(crate) fn into_bytes(self) -> FileBytes {
        self.bytes
    }

    /// Returns the format of the file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Returns the header; that of a format other than `DumpData` is made from what the file says.
    pub fn header(&self) -> &DumpHeader {
        &self.header
    }

    /// Bytes before the payload.
    pub(crate) fn n_start(&self) -> u64 {
        self.n_start
    }

    /// Size of the file without its compression, if it has one.
    pub(crate) fn n_decompressed(&self) -> Option<u64> {
        self.n_decompressed
    }

    /// Returns the parts of the name of a MindSpore array; `None` for files of other kinds or names.
    pub(crate) fn array_name(&self) -> Option<TensorFileName> {
        let name = TensorFileName::parse(&self.file_name);
        name.filter(|_| self.kind == FileKind::Npy)
    }

    /// `input.0`, `output.1`, …; an array is what its name says.
    pub(crate) fn slot_of(&self, tensor: &DumpTensor<'_>) -> String {
        match self.array_name() {
            Some(name) => format!("{}.{}", name.side.name(), name.slot),
            None => slot_name(tensor),
        }
    }

    /// Whether the name says that the outputs are overflow records.
    pub(crate) fn holds_records(&self) -> bool {
        let is_record = match self.kind {
            FileKind::DumpData | FileKind::RecordJson => true,
            FileKind::Npy => self.is_record_array(),
            FileKind::Nano => false,
        };
        is_record && op_debug::is_record_name(&self.file_name)
    }

    /// Whether the array has the form of an overflow record.
    fn is_record_array(&self) -> bool {
        let outputs = &self.header.outputs;
        outputs
            .iter()
            .all(|entry| entry.dtype() == Some(DType::U8) && entry.size == RECORD_BYTES)
    }

    /// Inputs, then outputs.
    pub fn tensors(&self) -> impl Iterator<Item = DumpTensor<'_>> {
        self.pieces.iter().filter_map(|piece| {
            let Piece { kind, index, .. } = *piece;
            let entries = match kind {
                PayloadKind::Input => &self.header.inputs,
                PayloadKind::Output => &self.header.outputs,
                PayloadKind::Buffer | PayloadKind::Space => return None,
            };
            Some(DumpTensor {
                kind,
                index,
                entry: entries.get(index)?,
                bytes: self.bytes_of(piece),
            })
        })
    }

    /// On-chip buffers and workspaces: what is no tensor.
    pub fn rest(&self) -> impl Iterator<Item = (&Piece, &[u8])> {
        let is_rest =
            |piece: &&Piece| matches!(piece.kind, PayloadKind::Buffer | PayloadKind::Space);
        let pieces = self.pieces.iter().filter(is_rest);
        pieces.map(|piece| (piece, self.bytes_of(piece)))
    }

    /// Where an output begins in the file.
    pub(crate) fn output_offset(&self, index: usize) -> u64 {
        let is_output = |p: &&Piece| (p.kind, p.index) == (PayloadKind::Output, index);
        let piece = self.pieces.iter().find(is_output);
        piece.map_or(0, |piece| piece.range.start as u64)
    }

    fn bytes_of(&self, piece: &Piece) -> &[u8] {
        let bytes = self.bytes.as_ref().get(piece.range.clone());
        bytes.unwrap_or_default()
    }

    fn apply_own_slices(&mut self) -> Result<(), SliceError> {
        let text = self.header.attrs.first().map(|attr| attr.value.as_str());
        let Some(Ok(attribute)) = text.map(FftsPlus::parse) else {
            return Ok(());
        };
        if !attribute.is_auto_threaded {
            return Ok(());
        }
        let thread = self.thread()?;
        for (side, slices) in [
            (Side::Input, &attribute.input_slices),
            (Side::Output, &attribute.output_slices),
        ] {
            if !slices.is_empty() {
                self.apply_slices(&attribute, side, thread)?;
            }
        }
        Ok(())
    }
}

/// A record in JSON looks as if its bytes were an output.
fn record_file(bytes: &FileBytes, file_name: &str) -> Result<TensorFile, FormatError> {
    let record = op_debug::from_json(bytes.as_ref())?.encode();
    let shape = Shape::new([record.len()]).unwrap_or_default();
    let array = TensorView {
        dtype: DType::U8,
        shape: &shape,
        layout: Layout::Nd,
        bytes: &record,
    };
    array
        .check()
        .map_err(|error| FormatError::new(0, "a record", error.to_string()))?;
    Ok(TensorFile {
        kind: FileKind::RecordJson,
        ..TensorFile::from_array(array, file_name, Layout::Nd)
    })
}

fn nano_file(bytes: FileBytes, file_name: &str) -> Result<TensorFile, FormatError> {
    let (header, n_header) = NanoHeader::decode(bytes.as_ref())?;
    header.check_size(n_header, bytes.as_ref().len())?;
    Ok(TensorFile::from_nano(&header, n_header, bytes, file_name))
}
