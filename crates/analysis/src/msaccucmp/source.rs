//! Dump files of three kinds, brought into one form.

use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_store::FormatError;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{
    BufferEntry, DumpFile, DumpHeader, PayloadKind, TensorEntry, dtype_code, layout_code,
};
use opscope_store::file_format::ffts_plus::FftsPlus;
use opscope_store::file_format::nano::{self, NanoHeader};
use opscope_store::file_format::{npy, op_debug};
use opscope_store::record::Side;
use opscope_tensor::Layout;

use super::failure::{Code, Failure};
use super::log;

/// The smallest file that the reference looks into; smaller ones count as empty dumps.
const FILE_BYTES_MIN: usize = 9;
/// A file of this size is worth a warning.
const LARGE_FILE_BYTES: usize = 1 << 30;
/// Fields of a name that a nano dump must have, and which of them the reference takes for the
/// operator's name.
const NANO_NAME_FIELDS_MIN: usize = 5;
const NANO_OP_NAME_FIELD: usize = 4;

/// What a dump file holds.
pub(super) struct Source {
    /// Where it is, without symbolic links.
    pub(super) path: PathBuf,
    /// The last part of the path.
    pub(super) file_name: String,
    /// The operator's name as the header gives it.
    pub(super) op_name: String,
    /// Inputs, then outputs.
    tensors: Vec<(Side, usize, TensorEntry, Range<usize>)>,
    /// On-chip buffers.
    buffers: Vec<(BufferEntry, Range<usize>)>,
    /// Workspaces.
    spaces: Vec<Range<usize>>,
    bytes: FileBytes,
}

/// One input or output.
#[derive(Clone, Copy)]
pub(super) struct SourceTensor<'a> {
    pub(super) side: Side,
    pub(super) index: usize,
    pub(super) entry: &'a TensorEntry,
    pub(super) bytes: &'a [u8],
}

impl SourceTensor<'_> {
    /// `input:0`, as messages and the list of failed files call it.
    pub(super) fn label(&self) -> String {
        format!("{}:{}", self.side.name(), self.index)
    }
}

impl Source {
    /// Reads a dump file, a nano dump or an array file.
    pub(super) fn open(path: &Path) -> Result<Source, Failure> {
        let file_name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if file_name.ends_with(".npy") {
            return open_array(path, file_name);
        }
        let parse_failure = |detail: String| {
            log::error(&detail);
            let message = format!("Failed to parse dump file \"{}\".", path.display());
            Failure::new(Code::InvalidDumpData, message)
        };
        let bytes = FileBytes::open(path).map_err(|error| parse_failure(error.to_string()))?;
        let n_bytes = bytes.as_ref().len();
        if n_bytes == 0 {
            return Err(parse_failure(
                "The file size is zero. Please check the dump file.".into(),
            ));
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
            return Ok(Source::empty(path, file_name, bytes));
        }
        let file = DumpFile::from_bytes(bytes).map_err(|error| parse_failure(error.to_string()))?;
        let (mut source, header) = Source::from_dump(path, file_name, file);
        if let Some(attribute) = header.attrs.first() {
            source.apply_attribute(&attribute.value)?;
        }
        Ok(source)
    }

    /// Whether the file holds overflow records.
    pub(super) fn is_op_debug(&self) -> bool {
        self.file_name.starts_with(op_debug::FILE_NAME_PREFIX)
    }

    /// The tensors of one side, in order.
    pub(super) fn side(&self, side: Side) -> impl Iterator<Item = SourceTensor<'_>> {
        self.tensors().filter(move |tensor| tensor.side == side)
    }

    /// Inputs, then outputs.
    pub(super) fn tensors(&self) -> impl Iterator<Item = SourceTensor<'_>> {
        self.tensors
            .iter()
            .map(|(side, index, entry, range)| SourceTensor {
                side: *side,
                index: *index,
                entry,
                bytes: self.slice(range),
            })
    }

    /// The buffers with their bytes.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (&BufferEntry, &[u8])> {
        self.buffers
            .iter()
            .map(|(entry, range)| (entry, self.slice(range)))
    }

    /// The bytes of each workspace.
    pub(super) fn spaces(&self) -> impl Iterator<Item = &[u8]> {
        self.spaces.iter().map(|range| self.slice(range))
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.as_ref().get(range.clone()).unwrap_or_default()
    }

    fn empty(path: &Path, file_name: String, bytes: FileBytes) -> Source {
        Source {
            path: path.to_owned(),
            file_name,
            op_name: String::new(),
            tensors: Vec::new(),
            buffers: Vec::new(),
            spaces: Vec::new(),
            bytes,
        }
    }

    fn from_dump(path: &Path, file_name: String, file: DumpFile) -> (Source, DumpHeader) {
        let (bytes, header, pieces) = file.into_parts();
        let mut source = Source::empty(path, file_name, bytes);
        source.op_name.clone_from(&header.op_name);
        for piece in pieces {
            let entry = match piece.kind {
                PayloadKind::Input => header.inputs.get(piece.index).map(|e| (Side::Input, e)),
                PayloadKind::Output => header.outputs.get(piece.index).map(|e| (Side::Output, e)),
                PayloadKind::Buffer => {
                    let entry = header.buffers.get(piece.index).copied().unwrap_or_default();
                    source.buffers.push((entry, piece.range));
                    continue;
                }
                PayloadKind::Space => {
                    source.spaces.push(piece.range);
                    continue;
                }
            };
            if let Some((side, entry)) = entry {
                source
                    .tensors
                    .push((side, piece.index, entry.clone(), piece.range));
            }
        }
        (source, header)
    }

    /// Gives each tensor the shape of the part that the file's FFTS+ thread worked on.
    ///
    /// The reference looks at the first attribute of every file, and stumbles over any other one.
    fn apply_attribute(&mut self, text: &str) -> Result<(), Failure> {
        let stumble = |error: FormatError| Failure::unexpected(error.to_string());
        let attribute = FftsPlus::parse(text).map_err(stumble)?;
        if !attribute.is_auto_threaded {
            return Ok(());
        }
        let thread = self
            .file_name
            .rsplit('.')
            .nth(1)
            .and_then(|field| field.parse().ok());
        let Some(thread) = thread else {
            let message = format!("There is no thread id in the name '{}'.", self.file_name);
            return Err(Failure::new(Code::InvalidPath, message));
        };
        for side in [Side::Input, Side::Output] {
            let shapes = attribute.shapes(side, thread).map_err(stumble)?;
            let Some(shapes) = shapes else {
                return Err(Failure::unexpected(format!(
                    "there is no slice of thread {thread}"
                )));
            };
            let tensors = self.tensors.iter_mut().filter(|(s, ..)| *s == side);
            let entries: Vec<&mut TensorEntry> = tensors.map(|(_, _, entry, _)| entry).collect();
            if entries.len() != shapes.len() {
                let (n, side) = (entries.len(), side.name());
                let message = format!("There are {n} {side}s, but slices of {}.", shapes.len());
                return Err(Failure::new(Code::InputMapping, message));
            }
            for (entry, shape) in entries.into_iter().zip(shapes) {
                entry.shape = Some(shape);
            }
        }
        Ok(())
    }
}

/// An array file counts as a dump with one output.
fn open_array(path: &Path, file_name: String) -> Result<Source, Failure> {
    let tensor = npy::read_file(path).map_err(|error| Failure::unexpected(text_of(&error)))?;
    let bytes = tensor.bytes().to_vec();
    let n_bytes = bytes.len();
    let entry = TensorEntry {
        data_type: dtype_code(tensor.dtype()),
        format: layout_code(Layout::Reserved),
        shape: Some(tensor.shape().iter().map(|&dim| dim as u64).collect()),
        size: n_bytes as u64,
        ..TensorEntry::default()
    };
    let mut source = Source::empty(path, file_name, bytes.into());
    source.tensors.push((Side::Output, 0, entry, 0..n_bytes));
    Ok(source)
}

fn open_nano(path: &Path, file_name: String, bytes: FileBytes) -> Result<Source, Failure> {
    let failure = |code, detail: String| {
        log::error(&detail);
        Failure::new(
            code,
            format!("Failed to parse dump file \"{}\".", path.display()),
        )
    };
    let fields: Vec<&str> = file_name.split('.').collect();
    let Some(op_name) = fields.get(NANO_OP_NAME_FIELD) else {
        let detail = format!("The name has fewer than {NANO_NAME_FIELDS_MIN} fields.");
        return Err(failure(Code::InvalidDumpData, detail));
    };
    let op_name = (*op_name).to_owned();
    let file = bytes.as_ref();
    let (header, n_header) =
        NanoHeader::decode(file).map_err(|error| failure(Code::Nano, error.to_string()))?;
    header
        .check_size(n_header, file.len())
        .map_err(|error| failure(Code::SizeMismatch, error.to_string()))?;
    let mut source = Source::empty(path, file_name, bytes);
    source.op_name = op_name;
    let mut start = nano::LENGTH_BYTES + n_header;
    for (side, tensors) in [
        (Side::Input, &header.inputs),
        (Side::Output, &header.outputs),
    ] {
        for (index, tensor) in tensors.iter().enumerate() {
            // The sizes add up to the size of the file, as checked above.
            let end = start.saturating_add(usize::try_from(tensor.size).unwrap_or(usize::MAX));
            source
                .tensors
                .push((side, index, tensor.to_entry(), start..end));
            start = end;
        }
    }
    Ok(source)
}

/// An error with its causes.
fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
