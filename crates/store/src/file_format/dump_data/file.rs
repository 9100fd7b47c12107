//! A whole tensor file, opened for reading or laid out for writing.

use std::ops::Range;
use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Layout, Tensor};

use super::{
    DumpHeader, FORMAT_NAME, HEADER_BYTES_MAX, OriginalOp, TensorEntry, dtype_code,
    dtype_from_code, layout_code, layout_from_code,
};
use crate::file_bytes::FileBytes;
use crate::record::Record;
use crate::{FormatError, StoreError};

/// Bytes of the length that precedes the header.
pub const LENGTH_BYTES: u64 = 8;
/// Value of the version field in every file.
pub const VERSION: &str = "2.0";

/// The number of opaque bytes.
const UNDEFINED: u32 = 0;

/// Kind of a piece of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PayloadKind {
    /// An input tensor.
    Input,
    /// An output tensor.
    Output,
    /// An on-chip buffer.
    Buffer,
    /// A workspace.
    Space,
}

impl PayloadKind {
    /// `input`, `output`, `buffer` or `space`.
    pub fn name(self) -> &'static str {
        match self {
            PayloadKind::Input => "input",
            PayloadKind::Output => "output",
            PayloadKind::Buffer => "buffer",
            PayloadKind::Space => "space",
        }
    }
}

/// A piece of the payload and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPiece {
    /// Its kind.
    pub kind: PayloadKind,
    /// Position among the pieces of its kind.
    pub index: usize,
    /// Bytes in the file.
    pub range: Range<usize>,
}

/// A tensor file that has been checked: every piece that the header promises is there.
pub struct DumpFile {
    path: PathBuf,
    bytes: FileBytes,
    checked: CheckedHead,
}

/// An input or output of a [`DumpFile`].
#[derive(Clone, Copy)]
pub struct DumpTensor<'a> {
    /// [`PayloadKind::Input`] or [`PayloadKind::Output`].
    pub kind: PayloadKind,
    /// Position among the inputs or outputs of the file.
    pub index: usize,
    /// Its entry in the header.
    pub entry: &'a TensorEntry,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A file's header, checked against the file's size.
pub struct CheckedHead {
    /// The header.
    pub header: DumpHeader,
    /// The pieces of the payload in file order.
    pub pieces: Vec<PayloadPiece>,
    /// Length of the header in bytes.
    pub n_header_bytes: u64,
}

impl DumpFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be read, [`StoreError::Corrupt`] if the length, the header
    /// or the payload do not fit together. Bytes after the payload are tolerated.
    pub fn open(path: &Path) -> Result<DumpFile, StoreError> {
        let bytes = FileBytes::open(path).map_err(StoreError::io("read", path))?;
        let checked = CheckedHead::read(bytes.as_ref(), bytes.as_ref().len())
            .map_err(StoreError::corrupt(FORMAT_NAME, path))?;
        Ok(DumpFile {
            path: path.to_owned(),
            bytes,
            checked,
        })
    }

    /// Checks bytes that are already in memory.
    ///
    /// # Errors
    /// [`FormatError`] as for [`DumpFile::open`].
    pub fn from_bytes(bytes: impl Into<FileBytes>) -> Result<DumpFile, FormatError> {
        let bytes = bytes.into();
        let checked = CheckedHead::read(bytes.as_ref(), bytes.as_ref().len())?;
        Ok(DumpFile {
            path: PathBuf::new(),
            bytes,
            checked,
        })
    }

    /// A file of another format in terms of this one: `header` describes the pieces of `bytes`, and
    /// takes `n_header_bytes` there.
    pub fn from_parts(
        bytes: impl Into<FileBytes>,
        header: DumpHeader,
        pieces: Vec<PayloadPiece>,
        n_header_bytes: u64,
    ) -> DumpFile {
        DumpFile {
            path: PathBuf::new(),
            bytes: bytes.into(),
            checked: CheckedHead {
                header,
                pieces,
                n_header_bytes,
            },
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's header, which describes its tensors.
    pub fn header(&self) -> &DumpHeader {
        &self.checked.header
    }

    /// The header, for corrections of its tensors' descriptions.
    pub fn header_mut(&mut self) -> &mut DumpHeader {
        &mut self.checked.header
    }

    /// Length of the header in bytes.
    pub fn n_header_bytes(&self) -> u64 {
        self.checked.n_header_bytes
    }

    /// Size of the whole file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// The pieces of the payload in file order.
    pub fn pieces(&self) -> &[PayloadPiece] {
        &self.checked.pieces
    }

    /// The bytes of one piece.
    pub fn bytes_of(&self, piece: &PayloadPiece) -> &[u8] {
        self.bytes
            .as_ref()
            .get(piece.range.clone())
            .unwrap_or_default()
    }

    /// The input and output tensors in file order.
    pub fn tensors(&self) -> impl Iterator<Item = DumpTensor<'_>> {
        self.checked.pieces.iter().filter_map(|piece| {
            let entries = match piece.kind {
                PayloadKind::Input => &self.checked.header.inputs,
                PayloadKind::Output => &self.checked.header.outputs,
                // The header has a size for these, but neither a dtype nor a shape.
                PayloadKind::Buffer | PayloadKind::Space => return None,
            };
            let entry = entries.get(piece.index)?;
            let PayloadPiece { kind, index, .. } = *piece;
            Some(DumpTensor {
                kind,
                index,
                entry,
                bytes: self.bytes_of(piece),
            })
        })
    }
}

impl TensorEntry {
    /// The layout that the entry names, if it is known.
    pub fn layout(&self) -> Option<Layout> {
        // Only the low 8 bits name the layout; Ascend keeps groups and C0 above them.
        layout_from_code(self.format & 0xff)
    }

    /// The dtype that the entry names, if it is known.
    pub fn dtype(&self) -> Option<DType> {
        dtype_from_code(self.data_type)
    }
}

impl OriginalOp {
    /// The layout that the output had, if it is known.
    pub fn layout(&self) -> Option<Layout> {
        layout_from_code(self.format & 0xff)
    }
}

/// The bytes that precede the tensors of `record` in its file: length and header. A tensor whose
/// dtype has no number ([`dtype_code`]) becomes an `undefined` one.
pub fn prelude(record: &Record) -> Vec<u8> {
    let header = DumpHeader {
        version: VERSION.to_owned(),
        dump_time: record.timestamp_us,
        outputs: in_slots(&record.outputs, |position, tensor| TensorEntry {
            original_op: original_op(record, position),
            ..entry(tensor)
        }),
        inputs: in_slots(&record.inputs, |_, tensor| entry(tensor)),
        op_name: record.operator.op_name.clone(),
        ..DumpHeader::default()
    };
    with_length(&header)
}

/// The entries of a side of a record. Its tensors keep their numbers where some before them were
/// left out.
fn in_slots(
    tensors: &[(usize, Tensor)],
    describe: impl Fn(usize, &Tensor) -> TensorEntry,
) -> Vec<TensorEntry> {
    let entries = tensors.iter().enumerate();
    let entries = entries.map(|(in_file, (position, tensor))| TensorEntry {
        slot: u32::try_from(*position)
            .ok()
            .filter(|_| in_file != *position),
        ..describe(*position, tensor)
    });
    entries.collect()
}

/// The bytes of a header, which follow their length.
pub fn with_length(header: &DumpHeader) -> Vec<u8> {
    let header = header.encode();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], &header].concat()
}

/// The operator before fusion that made an output, if that is known. Its dtype is not.
fn original_op(record: &Record, position: usize) -> Option<OriginalOp> {
    let known = record.operator.original_outputs.get(position)?.as_ref();
    known.map(|(name, output_index)| OriginalOp {
        name: name.clone(),
        output_index: *output_index,
        // Left at its default, 0, the layout would read as NCHW.
        format: layout_code(Layout::Nd),
        ..OriginalOp::default()
    })
}

pub(super) fn entry(tensor: &Tensor) -> TensorEntry {
    let dims: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
    TensorEntry {
        // Readers hand the bytes of an undefined tensor on as they are, so only the name is lost.
        data_type: dtype_code(tensor.dtype()).unwrap_or(UNDEFINED),
        format: layout_code(tensor.layout()),
        shape: Some(dims.clone()),
        // ONNX tensors are not re-arranged for a device, so both shapes are the same. Devices write
        // both even for a scalar, whose shape is a message without dimensions.
        original_shape: Some(dims),
        size: tensor.n_bytes() as u64,
        ..TensorEntry::default()
    }
}

impl CheckedHead {
    /// Reads the head of a file of `n_file` bytes from its `start`, which includes the header unless
    /// the header is too long.
    ///
    /// # Errors
    /// [`FormatError`] as for [`DumpFile::open`].
    pub fn read(start: &[u8], n_file: usize) -> Result<CheckedHead, FormatError> {
        check(start, n_file as u64)
    }
}

fn check(bytes: &[u8], n_file: u64) -> Result<CheckedHead, FormatError> {
    // A length and nothing after it is what is left of a file that was never filled.
    let Some(length) = bytes
        .first_chunk::<{ LENGTH_BYTES as usize }>()
        .filter(|_| n_file > LENGTH_BYTES)
    else {
        return Err(FormatError::new(
            0,
            "an 8-byte header length and a header",
            format!("{n_file} bytes"),
        ));
    };
    let n_header_bytes = u64::from_le_bytes(*length);
    // A damaged file may have any 64-bit number here; the bound keeps the sum below from
    // overflowing.
    let n_header_max = (n_file - LENGTH_BYTES).min(HEADER_BYTES_MAX);
    if n_header_bytes > n_header_max {
        let expected = format!("a header length of at most {n_header_max}");
        return Err(FormatError::new(0, expected, n_header_bytes.to_string()));
    }
    let payload_start = LENGTH_BYTES + n_header_bytes;
    let Some(header_bytes) = bytes.get(LENGTH_BYTES as usize..payload_start as usize) else {
        let expected = format!("{n_header_bytes} bytes of header");
        let found = bytes.len().to_string();
        return Err(FormatError::new(LENGTH_BYTES, expected, found));
    };
    let header = DumpHeader::decode(header_bytes, LENGTH_BYTES)?;
    let mut pos = payload_start;
    let mut pieces = Vec::new();
    for (kind, index, size) in sizes(&header) {
        // Sizes are only a claim of the header. They are checked once, here, so that no later
        // access to a piece can fail.
        let Some(end) = pos.checked_add(size).filter(|&end| end <= n_file) else {
            let expected = format!("{size} bytes of {} {index}", kind.name());
            return Err(FormatError::new(pos, expected, (n_file - pos).to_string()));
        };
        pieces.push(PayloadPiece {
            kind,
            index,
            range: pos as usize..end as usize,
        });
        pos = end;
    }
    // `pos` need not have reached the end: the vendor's reader tolerates bytes after the payload.
    Ok(CheckedHead {
        header,
        pieces,
        n_header_bytes,
    })
}

/// The pieces that the header promises, in the order of the payload.
fn sizes(header: &DumpHeader) -> impl Iterator<Item = (PayloadKind, usize, u64)> {
    let inputs = header.inputs.iter().map(|e| (PayloadKind::Input, e.size));
    let outputs = header.outputs.iter().map(|e| (PayloadKind::Output, e.size));
    let buffers = header.buffers.iter().map(|e| (PayloadKind::Buffer, e.size));
    let spaces = header.spaces.iter().map(|e| (PayloadKind::Space, e.size));
    // The payload begins with the inputs, although outputs have the lower field number.
    inputs
        .enumerate()
        .chain(outputs.enumerate())
        .chain(buffers.enumerate())
        .chain(spaces.enumerate())
        .map(|(i, (kind, size))| (kind, i, size))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opscope_tensor::Shape;

    use super::*;
    use crate::record::{ModelId, Operator};

    fn record() -> Record {
        let model = ModelId::first_load("m", "g");
        let operator = Operator {
            task_id: 3,
            op_type: "Add".into(),
            op_name: "a/b".into(),
            inputs: vec!["x".into(), "y".into()],
            outputs: vec!["z".into()],
            ..Operator::default()
        };
        let tensor = |value: u8| {
            Tensor::from_vec(DType::U8, Shape::new([2]).unwrap(), vec![value, value]).unwrap()
        };
        let scalar = Tensor::from_vec(DType::I64, Shape::scalar(), vec![9; 8]).unwrap();
        Record {
            model: Arc::new(model),
            operator: Arc::new(operator),
            step: 0,
            timestamp_us: 17,
            inputs: vec![(0, tensor(1)), (1, tensor(2))],
            outputs: vec![(0, scalar)],
        }
    }

    fn file_of(record: &Record) -> Vec<u8> {
        let mut bytes = prelude(record);
        record
            .slots()
            .for_each(|(_, _, tensor)| bytes.extend_from_slice(tensor.host_bytes().unwrap()));
        bytes
    }

    #[test]
    fn outputs_name_the_operator_before_fusion() {
        let mut record = record();
        let plain = prelude(&record);
        let second = record.outputs[0].1.clone();
        record.outputs.push((2, second));
        let operator = Operator {
            original_outputs: vec![Some(("relu".into(), 0)), None, Some(("split".into(), 1))],
            ..(*record.operator).clone()
        };
        record.operator = Arc::new(operator);
        let header = DumpFile::from_bytes(file_of(&record))
            .unwrap()
            .header()
            .clone();
        let found = header.outputs.iter().map(|output| {
            let op = output.original_op.as_ref().unwrap();
            (op.name.as_str(), op.output_index, op.format)
        });
        assert_eq!(found.collect::<Vec<_>>(), [("relu", 0, 2), ("split", 1, 2)]);
        // Fields without information are written as usual.
        assert!(!plain.windows(4).any(|bytes| bytes == b"relu"));
    }

    #[test]
    fn a_tensor_keeps_its_number_behind_one_that_is_left_out() {
        let mut record = record();
        let slots = |record: &Record| -> Vec<Option<u32>> {
            let file = DumpFile::from_bytes(file_of(record)).unwrap();
            file.tensors().map(|tensor| tensor.entry.slot).collect()
        };
        assert_eq!(slots(&record), [None, None, None]);
        record.inputs.remove(0);
        assert_eq!(slots(&record), [Some(1), None]);
    }

    #[test]
    fn a_record_comes_back() {
        let file = DumpFile::from_bytes(file_of(&record())).unwrap();
        assert_eq!(file.header().op_name, "a/b");
        assert_eq!(file.header().version, "2.0");
        let tensors: Vec<_> = file
            .tensors()
            .map(|t| (t.kind, t.index, t.entry.dtype(), t.bytes.to_vec()))
            .collect();
        assert_eq!(
            tensors,
            [
                (PayloadKind::Input, 0, Some(DType::U8), vec![1, 1]),
                (PayloadKind::Input, 1, Some(DType::U8), vec![2, 2]),
                (PayloadKind::Output, 0, Some(DType::I64), vec![9; 8]),
            ]
        );
        assert_eq!(file.header().outputs[0].shape, Some(vec![]));
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = file_of(&record());
        for n in 0..bytes.len() {
            assert!(DumpFile::from_bytes(bytes[..n].to_vec()).is_err(), "{n}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(DumpFile::from_bytes(longer).is_ok());
    }

    #[test]
    fn errors_name_offset_and_expectation() {
        let bytes = file_of(&record());
        let n = bytes.len();
        let error = DumpFile::from_bytes(bytes[..n - 3].to_vec()).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("byte {}: expected 8 bytes of output 0, found 5", n - 8)
        );
        let error = DumpFile::from_bytes(vec![2, 0, 0, 0, 0, 0, 0, 0, 0])
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "byte 0: expected a header length of at most 1, found 2"
        );
    }
}
