//! Dump files of three kinds in one form.

use std::path::{Path, PathBuf};

use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{
    BufferEntry, DumpFile, DumpHeader, PayloadKind, PayloadPiece, TensorEntry, dtype_code,
    layout_code,
};
use opscope_store::file_format::ffts_plus::{FftsPlus, SliceError, apply_slices, thread_in_name};
use opscope_store::file_format::nano::{self, NanoHeader};
use opscope_store::file_format::{npy, op_debug};
use opscope_store::file_parts::FileParts;
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Layout, TensorView};

use crate::failure::{ErrorCode, ToolFailure};
use crate::log;
use crate::numpy::{self, LoadFailure};

/// The smallest file that the reference opens; smaller ones count as empty dumps.
const FILE_BYTES_MIN: usize = 9;
/// Files of this size cause a warning.
const LARGE_FILE_BYTES: usize = 1 << 30;
/// Minimum number of fields in the name of a nano dump, and the index of the operator's name.
const NANO_NAME_FIELDS_MIN: usize = 5;
const NANO_OP_NAME_FIELD: usize = 4;
/// A number without a dtype.
const UNKNOWN_DTYPE: u32 = u32::MAX;

/// A dump file and its contents.
pub(super) struct DumpSource {
    /// Its path, with symbolic links resolved.
    pub(super) path: PathBuf,
    /// The file name.
    pub(super) file_name: String,
    /// The operator's name in the header.
    pub(super) op_name: String,
    is_nano: bool,
    /// The file as `DumpData`, whatever its format: the reference knows no other.
    file: DumpFile,
}

/// One input or output.
#[derive(Clone, Copy)]
pub(super) struct SourceTensor<'a> {
    pub(super) side: SlotSide,
    pub(super) index: usize,
    pub(super) entry: &'a TensorEntry,
    pub(super) bytes: &'a [u8],
}

impl SourceTensor<'_> {
    /// `input:0`, for messages and the list of failed files.
    pub(super) fn label(&self) -> String {
        format!("{}:{}", self.side.name(), self.index)
    }
}

impl DumpSource {
    /// Reads a dump file, a nano dump or an array file. Slices of an FFTS+ thread get separate
    /// shapes.
    pub(super) fn open(path: &Path) -> Result<DumpSource, ToolFailure> {
        let mut source = DumpSource::open_whole(path)?;
        source.apply_attribute()?;
        Ok(source)
    }

    /// Reads a file, ignoring its first attribute.
    pub(super) fn open_whole(path: &Path) -> Result<DumpSource, ToolFailure> {
        let file_name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // The reference checks the nano runtime's magic number before the name.
        if file_name.ends_with(".npy")
            && !FileParts::open(path).is_ok_and(|file| nano::is_nano(file.start()))
        {
            return open_array(path, file_name);
        }
        let invalid = ErrorCode::InvalidDumpData;
        let bytes = FileBytes::open(path)
            .map_err(|error| parse_failure(path, invalid, &error.to_string()))?;
        let n_bytes = bytes.as_ref().len();
        if n_bytes == 0 {
            let detail = "The file size is zero. Please check the dump file.";
            return Err(parse_failure(path, invalid, detail));
        }
        if n_bytes >= LARGE_FILE_BYTES {
            log::warning(&format!("The size of {} exceeds 1 GB.", log::quoted(path)));
        }
        if nano::is_nano(bytes.as_ref()) {
            return open_nano(path, file_name, bytes);
        }
        if n_bytes < FILE_BYTES_MIN {
            log::error(&format!(
                "The size of '{}' must be greater than 8, but the file size is {n_bytes}. \
                 Please check the dump file.",
                path.display()
            ));
            let file = DumpFile::from_parts(bytes, DumpHeader::default(), Vec::new(), 0);
            return Ok(DumpSource::new(path, file_name, file));
        }
        let dump = DumpFile::from_bytes(bytes)
            .map_err(|error| parse_failure(path, invalid, &error.to_string()))?;
        Ok(DumpSource::new(path, file_name, dump))
    }

    /// The value of the header's first attribute.
    pub(super) fn first_attribute(&self) -> Option<&str> {
        let attribute = self.file.header().attrs.first();
        attribute.map(|attribute| attribute.value.as_str())
    }

    /// Whether the nano runtime wrote the file.
    pub(super) fn is_nano(&self) -> bool {
        self.is_nano
    }

    /// Whether the file contains overflow records.
    pub(super) fn is_op_debug(&self) -> bool {
        self.file_name.starts_with(op_debug::FILE_NAME_PREFIX)
    }

    /// The tensors of one side, in order.
    pub(super) fn side(&self, side: SlotSide) -> impl Iterator<Item = SourceTensor<'_>> {
        self.tensors().filter(move |tensor| tensor.side == side)
    }

    /// Inputs, then outputs.
    pub(super) fn tensors(&self) -> impl Iterator<Item = SourceTensor<'_>> {
        self.file.tensors().map(|tensor| SourceTensor {
            side: match tensor.kind {
                PayloadKind::Input => SlotSide::Input,
                _ => SlotSide::Output,
            },
            index: tensor.index,
            entry: tensor.entry,
            bytes: tensor.bytes,
        })
    }

    /// The buffers with their bytes.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (BufferEntry, &[u8])> {
        self.rest(PayloadKind::Buffer).map(|(index, bytes)| {
            let entry = self.file.header().buffers.get(index);
            (entry.copied().unwrap_or_default(), bytes)
        })
    }

    /// The bytes of each workspace.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &[u8]> {
        self.rest(PayloadKind::Space).map(|(_, bytes)| bytes)
    }

    fn rest(&self, kind: PayloadKind) -> impl Iterator<Item = (usize, &[u8])> {
        let pieces = self.file.pieces().iter();
        let pieces = pieces.filter(move |piece| piece.kind == kind);
        pieces.map(|piece| (piece.index, self.file.bytes_of(piece)))
    }

    fn new(path: &Path, file_name: String, file: DumpFile) -> DumpSource {
        DumpSource {
            path: path.to_owned(),
            file_name,
            op_name: file.header().op_name.clone(),
            is_nano: false,
            file,
        }
    }

    /// Sets the shape of each tensor to the slice of the file's FFTS+ thread.
    ///
    /// The reference reads the first attribute of every file, and fails on any other kind.
    fn apply_attribute(&mut self) -> Result<(), ToolFailure> {
        let Some(attribute) = self.file.header().attrs.first() else {
            return Ok(());
        };
        let attribute = FftsPlus::parse(&attribute.value)
            .map_err(|error| ToolFailure::unexpected(error.to_string()))?;
        if !attribute.is_auto_threaded {
            return Ok(());
        }
        let thread = thread_in_name(&self.file_name).map_err(slice_failure)?;
        for side in [SlotSide::Input, SlotSide::Output] {
            let applied = apply_slices(self.file.header_mut(), &attribute, side, thread);
            applied.map_err(slice_failure)?;
        }
        Ok(())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the function of `map_err`"
)]
fn slice_failure(error: SliceError) -> ToolFailure {
    let message = error.to_string();
    match error {
        SliceError::Name(_) => ToolFailure::new(ErrorCode::InvalidPath, message),
        SliceError::Count { .. } => ToolFailure::new(ErrorCode::InputMapping, message),
        SliceError::Thread(_) | SliceError::Format(_) => ToolFailure::unexpected(message),
    }
}

fn parse_failure(path: &Path, code: ErrorCode, detail: &str) -> ToolFailure {
    log::error(detail);
    let message = format!("Failed to parse dump file \"{}\".", path.display());
    ToolFailure::new(code, message)
}

/// An array file counts as a dump with one output. The reference packs its elements into the bytes
/// of a dump, with a byte for each complex one.
fn open_array(path: &Path, file_name: String) -> Result<DumpSource, ToolFailure> {
    let array = numpy::load(path).map_err(|error| match error {
        LoadFailure::Refused(reason) => {
            let detail = format!(
                "Failed to parse dump file {}. Only data of the numpy format is supported. {reason}",
                log::quoted(path)
            );
            parse_failure(path, ErrorCode::InvalidDumpData, &detail)
        }
        LoadFailure::OtherType(reason, _) => parse_failure(path, ErrorCode::DataType, &reason),
        LoadFailure::Exception(reason) => ToolFailure::unexpected(reason),
    })?;
    let view = array.tensor.host_view();
    let tensor = view.map_err(|error| ToolFailure::unexpected(error.to_string()))?;
    // Status 21, as for every dtype without a number in the reference. A dtype that only Opscope
    // has has no numpy name either.
    if array.is_big_endian || npy::descr(tensor.dtype).is_none() {
        let detail = format!("The dtype({}) does not support.", tensor.dtype);
        return Err(parse_failure(path, ErrorCode::DataType, &detail));
    }
    let bytes = match tensor.dtype {
        DType::C64 | DType::C128 => packed(tensor),
        _ => tensor.bytes.to_vec(),
    };
    Ok(DumpSource::new(path, file_name, array_file(tensor, bytes)))
}

/// A dump file with one output of the array's dtype and shape, for any bytes.
fn array_file(array: TensorView<'_>, bytes: Vec<u8>) -> DumpFile {
    let entry = TensorEntry {
        data_type: dtype_code(array.dtype).unwrap_or(UNKNOWN_DTYPE),
        format: layout_code(Layout::Reserved),
        shape: Some(array.shape.iter().map(|&dim| dim as u64).collect()),
        size: bytes.len() as u64,
        ..TensorEntry::default()
    };
    let header = DumpHeader {
        outputs: vec![entry],
        ..DumpHeader::default()
    };
    let piece = PayloadPiece {
        kind: PayloadKind::Output,
        index: 0,
        range: 0..bytes.len(),
    };
    DumpFile::from_parts(bytes, header, vec![piece], 0)
}

/// An array's elements, packed into dump bytes like the reference: complex ones as booleans.
pub(super) fn packed(array: TensorView<'_>) -> Vec<u8> {
    let width = match array.dtype {
        DType::C64 => 4,
        DType::C128 => 8,
        DType::Bool => return array.bytes.iter().map(|&b| u8::from(b != 0)).collect(),
        _ => return array.bytes.to_vec(),
    };
    let elements = array.bytes.chunks_exact(2 * width);
    elements
        .map(|element| {
            u8::from(!element.chunks_exact(width).all(|part| {
                // Zero of either sign.
                part.split_last()
                    .is_none_or(|(last, rest)| last & 0x7f == 0 && rest.iter().all(|b| *b == 0))
            }))
        })
        .collect()
}

/// Whether a file is a nano dump whose name has too few fields.
pub(super) fn lacks_nano_fields(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').count() < NANO_NAME_FIELDS_MIN
        && FileParts::open(path).is_ok_and(|file| nano::is_nano(file.start()))
}

fn open_nano(path: &Path, file_name: String, bytes: FileBytes) -> Result<DumpSource, ToolFailure> {
    let fields: Vec<&str> = file_name.split('.').collect();
    let Some(op_name) = fields.get(NANO_OP_NAME_FIELD) else {
        let detail = format!("The name has fewer than {NANO_NAME_FIELDS_MIN} fields.");
        return Err(parse_failure(path, ErrorCode::InvalidDumpData, &detail));
    };
    let op_name = (*op_name).to_owned();
    let file = bytes.as_ref();
    let (header, n_header) = NanoHeader::decode(file)
        .map_err(|error| parse_failure(path, ErrorCode::Nano, &error.to_string()))?;
    header
        .check_size(n_header, file.len())
        .map_err(|error| parse_failure(path, ErrorCode::SizeMismatch, &error.to_string()))?;
    let file = header.to_dump_file(n_header, bytes);
    Ok(DumpSource {
        op_name,
        is_nano: true,
        ..DumpSource::new(path, file_name, file)
    })
}
