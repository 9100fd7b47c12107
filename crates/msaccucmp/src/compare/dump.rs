//! One dump file for the comparison.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use opscope_store::file_format::dump_data::{
    TensorEntry, dtype_code, dtype_from_code, layout_code,
};
use opscope_store::file_format::npy;
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Layout};
use serde_json::Value;

use super::metrics::NAN;
use super::stop::CompareStop;
use crate::array::{ElementArray, count};
use crate::failure::ErrorCode;
use crate::numpy::{self, LoadFailure};
use crate::source::{self, DumpSource, SourceTensor, packed};
use crate::{dtype, log};

/// The contents of a file.
#[derive(Clone)]
pub(super) struct ComparedFile {
    /// The name in the header.
    pub(super) op_name: String,
    /// The header's first attribute, unless it is empty.
    pub(super) attribute: Option<Value>,
    pub(super) inputs: Vec<FileTensor>,
    pub(super) outputs: Vec<FileTensor>,
    /// Whether all slices are present.
    pub(super) is_complete: bool,
}

/// One tensor. Its elements are decoded on demand.
#[derive(Clone)]
pub(super) struct FileTensor {
    /// The dtype and layout numbers of the header.
    pub(super) data_type: u32,
    pub(super) format: u32,
    pub(super) dims: Vec<usize>,
    pub(super) original: Vec<usize>,
    /// In the form of the result.
    pub(super) address: String,
    pub(super) groups: i32,
    /// Whether the file has an FFTS+ attribute.
    pub(super) is_ffts: bool,
    pub(super) content: TensorContent,
}

/// The location of the elements.
#[derive(Clone)]
pub(super) enum TensorContent {
    /// In a file.
    File(Arc<DumpSource>, SlotSide, usize),
    /// In memory, encoded as in a dump file.
    Bytes(Box<TensorEntry>, Vec<u8>),
    /// In memory, decoded.
    Elements(DType, Vec<u8>),
}

impl ComparedFile {
    /// Reads a file and checks that its tensors can be decoded.
    pub(super) fn open(path: &Path) -> Result<ComparedFile, CompareStop> {
        if path.to_string_lossy().ends_with(".npy") {
            return array_dump(path);
        }
        if path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let message = format!(
                "Failed to parse dump file '{}'. The file size is zero. Please check the dump file.",
                path.display()
            );
            log::error(&message);
            return Err(CompareStop::coded(ErrorCode::InvalidDumpData, message));
        }
        let source = match DumpSource::open_whole(path) {
            Ok(source) => Arc::new(source),
            Err(failure) => {
                return Err(match CompareStop::from(failure.logged()) {
                    CompareStop::Coded(code, _) if source::lacks_nano_fields(path) => {
                        CompareStop::coded(code, "The file name has no dump time")
                    }
                    CompareStop::Coded(code, _) => CompareStop::bare(code),
                    other => other,
                });
            }
        };
        let attribute = attribute(&source)?;
        let is_ffts = match &attribute {
            None => false,
            // The reference treats any attribute as FFTS+ and fails on missing keys.
            Some(Value::Object(map)) if map.contains_key("threadMode") => true,
            Some(_) => return Err(CompareStop::Fatal("'threadMode'".to_owned())),
        };
        // Outputs first: with two bad tensors the order decides which one is reported.
        for side in [SlotSide::Output, SlotSide::Input] {
            source
                .side(side)
                .try_for_each(|tensor| dtype::check(&tensor))?;
        }
        let is_nano = source.is_nano();
        let [inputs, outputs] = [SlotSide::Input, SlotSide::Output].map(|side| {
            let tensors = source.side(side).map(|tensor| {
                let content = TensorContent::File(Arc::clone(&source), side, tensor.index);
                let address = match tensor.entry.address {
                    // Headers of the nano runtime have no addresses.
                    0 if is_nano => NAN.to_owned(),
                    address => address.to_string(),
                };
                FileTensor::new(tensor.entry, tensor.bytes.len(), address, is_ffts, content)
            });
            tensors.collect()
        });
        Ok(ComparedFile {
            op_name: source.op_name.clone(),
            attribute,
            inputs,
            outputs,
            is_complete: !is_nano,
        })
    }

    /// The tensors of one side.
    pub(super) fn side(&self, side: SlotSide) -> &[FileTensor] {
        match side {
            SlotSide::Input => &self.inputs,
            SlotSide::Output => &self.outputs,
        }
    }
}

/// The first attribute, which must be JSON.
fn attribute(source: &DumpSource) -> Result<Option<Value>, CompareStop> {
    let Some(text) = source.first_attribute() else {
        return Ok(None);
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| CompareStop::Exception(error.to_string()))?;
    let is_empty = match &value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    Ok((!is_empty).then_some(value))
}

/// An array counts as a dump with one output. Complex elements first become booleans, whose bytes
/// are then read as complex elements.
fn array_dump(path: &Path) -> Result<ComparedFile, CompareStop> {
    let loaded = numpy::load(path).map_err(|error| match error {
        LoadFailure::Refused(reason) => CompareStop::not_numpy(path, &reason),
        LoadFailure::OtherType(reason, _) => CompareStop::coded(
            ErrorCode::DataType,
            format!("The dtype({reason}) does not support."),
        ),
        LoadFailure::Exception(reason) => CompareStop::Fatal(reason),
    })?;
    let array = loaded.tensor;
    if loaded.is_big_endian || npy::descr(array.dtype()).is_none() {
        let message = format!("The dtype({}) does not support.", array.dtype());
        return Err(CompareStop::coded(ErrorCode::DataType, message));
    }
    let dims: Vec<u64> = array.shape().dims().iter().map(|&d| d as u64).collect();
    let entry = TensorEntry {
        data_type: dtype_code(array.dtype()).unwrap_or(u32::MAX),
        format: layout_code(Layout::Reserved),
        shape: Some(dims),
        ..TensorEntry::default()
    };
    let view = array.host_view();
    let bytes = packed(view.map_err(|error| CompareStop::Fatal(error.to_string()))?);
    let content = TensorContent::Bytes(Box::new(entry.clone()), bytes);
    let tensor = FileTensor::new(&entry, 0, NAN.to_owned(), false, content);
    if let TensorContent::Bytes(entry, bytes) = &tensor.content {
        dtype::check(&source_tensor(entry, bytes))?;
    }
    Ok(ComparedFile {
        op_name: String::new(),
        attribute: None,
        inputs: Vec::new(),
        outputs: vec![tensor],
        is_complete: true,
    })
}

fn source_tensor<'a>(entry: &'a TensorEntry, bytes: &'a [u8]) -> SourceTensor<'a> {
    SourceTensor {
        side: SlotSide::Output,
        index: 0,
        entry,
        bytes,
    }
}

impl FileTensor {
    fn new(
        entry: &TensorEntry,
        n_bytes: usize,
        address: String,
        is_ffts: bool,
        content: TensorContent,
    ) -> FileTensor {
        let dims = match dtype_from_code(entry.data_type) {
            Some(DType::Undefined) => vec![n_bytes],
            _ => shape_of(&entry.shape),
        };
        FileTensor {
            data_type: entry.data_type,
            format: entry.format,
            dims,
            original: shape_of(&entry.original_shape),
            address,
            groups: entry.sub_format,
            is_ffts,
            content,
        }
    }

    /// The elements along one axis, or a shape without elements.
    pub(super) fn decode(&self) -> Result<ElementArray<'_>, CompareStop> {
        let decoded = match &self.content {
            TensorContent::File(source, side, index) => {
                let tensor = source
                    .side(*side)
                    .nth(*index)
                    .ok_or_else(CompareStop::index)?;
                dtype::decode(&tensor)?
            }
            TensorContent::Bytes(entry, bytes) => dtype::decode(&source_tensor(entry, bytes))?,
            TensorContent::Elements(dtype, bytes) => {
                return Ok(ElementArray::flat(*dtype, Cow::Borrowed(bytes)));
            }
        };
        if count(&decoded.dims) == Some(0) {
            return decoded
                .array
                .reshape(&decoded.dims)
                .map_err(CompareStop::Exception);
        }
        Ok(decoded.array)
    }

    /// The name of the dtype in the header.
    pub(super) fn dtype_name(&self) -> &'static str {
        match dtype_from_code(self.data_type) {
            Some(DType::Undefined) => "int8",
            Some(DType::Resource) => "int64",
            Some(dtype) => dtype.name(),
            None => NAN,
        }
    }

    /// Whether no axis is larger than 1, as the reference computes it.
    pub(super) fn is_scalar(&self) -> bool {
        is_scalar(&self.dims)
    }
}

/// A shape of the header, empty if there is none.
fn shape_of(dims: &Option<Vec<u64>>) -> Vec<usize> {
    let dims = dims.iter().flatten();
    dims.map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
        .collect()
}

/// Whether the sum of the sizes equals their number.
pub(super) fn is_scalar(dims: &[usize]) -> bool {
    dims.iter()
        .fold(0_usize, |sum, &dim| sum.saturating_add(dim))
        == dims.len()
}
