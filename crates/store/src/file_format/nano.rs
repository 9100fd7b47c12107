//! The dump file of the nano runtime: a length, a header of tagged pieces, the tensors' bytes.
//!
//! `docs/formats/nano.md` draws the bytes. Numbers are little-endian. Dtypes have the numbers of
//! the graph engine, not those of `DumpData`; layouts have the same. Source: msaccucmp's reader.

mod decode;
mod encode;

use opscope_tensor::DType;

use super::ascend_codes::{dtype_code, dtype_from_graph_engine};
use super::dump_data::{CheckedHead, DumpFile, DumpHeader, PayloadKind, PayloadPiece, TensorEntry};
use crate::FormatError;
use crate::file_bytes::FileBytes;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "nano dump";
/// First four bytes of the header.
pub const MAGIC: u32 = 0x5a5a_5a5a;
/// Bytes of the length that precedes the header.
pub const LENGTH_BYTES: usize = 8;
/// Maximum number of axes that are accepted in one shape.
pub const AXES_MAX: usize = 1 << 10;

/// Content of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NanoHeader {
    /// Version of the format.
    pub version: u32,
    /// The inputs, in file order.
    pub inputs: Vec<NanoTensor>,
    /// The outputs, in file order, after the inputs.
    pub outputs: Vec<NanoTensor>,
}

/// One input or output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NanoTensor {
    /// The graph engine's number of the dtype.
    pub data_type: i32,
    /// Number of the layout.
    pub format: i32,
    /// Kind of address.
    pub address_type: i32,
    /// The output of the operator before fusion (outputs only).
    pub original: Option<NanoOriginal>,
    /// Device address.
    pub address: u64,
    /// Offset on the device.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Dimensions before the layout was changed for the device.
    pub original_shape: Vec<u64>,
}

/// The output of an operator before fusion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NanoOriginal {
    /// Which output.
    pub index: i32,
    /// The graph engine's number of its dtype.
    pub data_type: i32,
    /// Number of its layout.
    pub format: i32,
    /// Name of the operator.
    pub name: String,
}

/// Whether a file's first bytes are those of a nano dump.
pub fn is_nano(bytes: &[u8]) -> bool {
    let magic = bytes.get(LENGTH_BYTES..).unwrap_or_default();
    // The vendor's reader asks for more than 12 bytes, too. No tensor file is mistaken for one of
    // these: as protobuf, 0x5a begins field 11, which `DumpData` does not have.
    magic.len() > 4 && magic.starts_with(&MAGIC.to_le_bytes())
}

impl NanoHeader {
    /// The tensors in file order.
    pub fn tensors(&self) -> impl Iterator<Item = &NanoTensor> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// Checks that a file of `n_file` bytes is exactly as long as a header of `n_header` bytes and
    /// the tensors ask for.
    ///
    /// # Errors
    /// [`FormatError`] if it is not.
    pub fn check_size(&self, n_header: usize, n_file: usize) -> Result<(), FormatError> {
        let start = (LENGTH_BYTES as u64).saturating_add(n_header as u64);
        let size = self
            .tensors()
            .try_fold(start, |sum, t| sum.checked_add(t.size));
        // Bytes after the tensors are refused, unlike in a tensor file, because the vendor's reader
        // refuses them.
        if size == Some(n_file as u64) {
            return Ok(());
        }
        let expected = match size {
            Some(size) => format!("a file of {size} bytes"),
            None => "sizes that fit 64 bits".to_owned(),
        };
        Err(FormatError::new(start, expected, format!("{n_file} bytes")))
    }
}

impl NanoHeader {
    /// The file in terms of `DumpData`. `bytes` are the whole file, whose size was
    /// [checked](NanoHeader::check_size), and `n_header` the length of its header.
    pub fn to_dump_file(&self, n_header: usize, bytes: FileBytes) -> DumpFile {
        let head = self.to_dump_head(n_header);
        DumpFile::from_parts(bytes, head.header, head.pieces, head.n_header_bytes)
    }

    /// The head of [`NanoHeader::to_dump_file`].
    pub fn to_dump_head(&self, n_header: usize) -> CheckedHead {
        let mut start = LENGTH_BYTES.saturating_add(n_header);
        let mut pieces = Vec::new();
        for (kind, tensors) in [
            (PayloadKind::Input, &self.inputs),
            (PayloadKind::Output, &self.outputs),
        ] {
            for (index, tensor) in tensors.iter().enumerate() {
                // After `check_size` nothing saturates. Without it, a piece that is out of range
                // reads as empty.
                let size = usize::try_from(tensor.size).unwrap_or(usize::MAX);
                let end = start.saturating_add(size);
                let range = start..end;
                pieces.push(PayloadPiece { kind, index, range });
                start = end;
            }
        }
        let header = DumpHeader {
            version: self.version.to_string(),
            inputs: self.inputs.iter().map(NanoTensor::to_entry).collect(),
            outputs: self.outputs.iter().map(NanoTensor::to_entry).collect(),
            ..DumpHeader::default()
        };
        CheckedHead {
            header,
            pieces,
            n_header_bytes: n_header as u64,
        }
    }
}

impl NanoTensor {
    /// The dtype, if it is known.
    pub fn dtype(&self) -> Option<DType> {
        dtype_from_code(self.data_type)
    }

    /// The same description in terms of `DumpData`; an unknown dtype or layout gets a number that
    /// is unknown there too.
    pub fn to_entry(&self) -> TensorEntry {
        TensorEntry {
            data_type: self.dtype().and_then(dtype_code).unwrap_or(u32::MAX),
            format: u32::try_from(self.format).unwrap_or(u32::MAX),
            shape: Some(self.shape.clone()),
            original_shape: Some(self.original_shape.clone()),
            size: self.size,
            address: self.address,
            offset: self.offset,
            ..TensorEntry::default()
        }
    }
}

/// The dtype that the graph engine's number means, if a nano dump can hold it.
pub fn dtype_from_code(code: i32) -> Option<DType> {
    use DType::{BF16, Resource, U1};
    // The graph engine numbers more dtypes than the vendor's reader takes from these files.
    dtype_from_graph_engine(code)
        .filter(|dtype| dtype.as_numpy().is_some() || [Resource, BF16, U1].contains(dtype))
}

#[cfg(test)]
mod tests;
