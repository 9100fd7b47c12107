//! One dump file as the comparison sees it.

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
use super::stop::Stop;
use crate::array::{Array, count};
use crate::dtype;
use crate::failure::Code;
use crate::log;
use crate::numpy::{self, LoadFailure};
use crate::source::{self, Source, SourceTensor, packed};

/// The contents of a file.
#[derive(Clone)]
pub(super) struct Dump {
    /// The name in the header.
    pub(super) op_name: String,
    /// The header's first attribute, unless it says nothing.
    pub(super) attribute: Option<Value>,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Tensor>,
    /// Whether all slices are there.
    pub(super) is_complete: bool,
}

/// One tensor. Its elements are decoded when they are needed.
#[derive(Clone)]
pub(super) struct Tensor {
    /// The header's numbers of dtype and layout.
    pub(super) data_type: u32,
    pub(super) format: u32,
    pub(super) dims: Vec<usize>,
    pub(super) original: Vec<usize>,
    /// As the result shows it.
    pub(super) address: String,
    pub(super) groups: i32,
    /// Whether the file carries an FFTS+ attribute.
    pub(super) is_ffts: bool,
    pub(super) content: Content,
}

/// Where the elements are.
#[derive(Clone)]
pub(super) enum Content {
    /// In a file.
    File(Arc<Source>, SlotSide, usize),
    /// Here, as a dump file would have them.
    Bytes(Box<TensorEntry>, Vec<u8>),
    /// Here, decoded.
    Elements(DType, Vec<u8>),
}

impl Dump {
    /// Reads a file and checks what it takes to decode its tensors.
    pub(super) fn open(path: &Path) -> Result<Dump, Stop> {
        if path.to_string_lossy().ends_with(".npy") {
            return array_dump(path);
        }
        if path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let message = format!(
                "Failed to parse dump file '{}'. The file size is zero. Please check the dump file.",
                path.display()
            );
            log::error(&message);
            return Err(Stop::coded(Code::InvalidDumpData, message));
        }
        let source = match Source::open_whole(path) {
            Ok(source) => Arc::new(source),
            Err(failure) => {
                return Err(match Stop::from(failure.logged()) {
                    Stop::Coded(code, _) if source::lacks_nano_fields(path) => {
                        Stop::coded(code, "The file name has no dump time")
                    }
                    Stop::Coded(code, _) => Stop::bare(code),
                    other => other,
                });
            }
        };
        let attribute = attribute(&source)?;
        let is_ffts = match &attribute {
            None => false,
            // The reference takes any attribute for one of FFTS+ and stumbles over what is missing.
            Some(Value::Object(map)) if map.contains_key("threadMode") => true,
            Some(_) => return Err(Stop::Fatal("'threadMode'".to_owned())),
        };
        // Outputs first: with two bad tensors that decides which of them is named.
        for side in [SlotSide::Output, SlotSide::Input] {
            source
                .side(side)
                .try_for_each(|tensor| dtype::check(&tensor))?;
        }
        let is_nano = source.is_nano();
        let side = |side| -> Vec<Tensor> {
            let tensors = source.side(side).map(|tensor| {
                let content = Content::File(Arc::clone(&source), side, tensor.index);
                let address = match tensor.entry.address {
                    // Headers of the nano runtime have no addresses.
                    0 if is_nano => NAN.to_owned(),
                    address => address.to_string(),
                };
                Tensor::new(tensor.entry, tensor.bytes.len(), address, is_ffts, content)
            });
            tensors.collect()
        };
        Ok(Dump {
            op_name: source.op_name.clone(),
            attribute,
            inputs: side(SlotSide::Input),
            outputs: side(SlotSide::Output),
            is_complete: !is_nano,
        })
    }

    /// The tensors of one side.
    pub(super) fn side(&self, side: SlotSide) -> &[Tensor] {
        match side {
            SlotSide::Input => &self.inputs,
            SlotSide::Output => &self.outputs,
        }
    }
}

/// The first attribute, which has to be JSON.
fn attribute(source: &Source) -> Result<Option<Value>, Stop> {
    let Some(text) = source.first_attribute() else {
        return Ok(None);
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| Stop::Exception(error.to_string()))?;
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

/// An array counts as a dump with one output. Complex elements become booleans on the way, of which
/// the bytes are then read as complex ones.
fn array_dump(path: &Path) -> Result<Dump, Stop> {
    let unreadable = |reason: String| {
        log::error(&format!(
            "Failed to parse dump file {}. Only data of the numpy format is supported. {reason}",
            log::quoted(path)
        ));
        Stop::bare(Code::InvalidDumpData)
    };
    let loaded = numpy::load(path).map_err(|error| match error {
        LoadFailure::Refused(reason) => unreadable(reason),
        LoadFailure::OtherType(reason, _) => Stop::coded(
            Code::DataType,
            format!("The dtype({reason}) does not support."),
        ),
        LoadFailure::Exception(reason) => Stop::Fatal(reason),
    })?;
    let array = loaded.tensor;
    if loaded.is_big_endian || npy::descr(array.dtype()).is_none() {
        let message = format!("The dtype({}) does not support.", array.dtype());
        return Err(Stop::coded(Code::DataType, message));
    }
    let dims: Vec<u64> = array.shape().dims().iter().map(|&d| d as u64).collect();
    let entry = TensorEntry {
        data_type: dtype_code(array.dtype()).unwrap_or(u32::MAX),
        format: layout_code(Layout::Reserved),
        shape: Some(dims),
        ..TensorEntry::default()
    };
    let view = array.host_view();
    let bytes = packed(view.map_err(|error| Stop::Fatal(error.to_string()))?);
    let content = Content::Bytes(Box::new(entry.clone()), bytes);
    let tensor = Tensor::new(&entry, 0, NAN.to_owned(), false, content);
    if let Content::Bytes(entry, bytes) = &tensor.content {
        dtype::check(&source_tensor(entry, bytes))?;
    }
    Ok(Dump {
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

impl Tensor {
    fn new(
        entry: &TensorEntry,
        n_bytes: usize,
        address: String,
        is_ffts: bool,
        content: Content,
    ) -> Tensor {
        let extents = |dims: &Option<Vec<u64>>| -> Vec<usize> {
            let dims = dims.iter().flatten();
            dims.map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
                .collect()
        };
        let dims = match dtype_from_code(entry.data_type) {
            Some(DType::Undefined) => vec![n_bytes],
            _ => extents(&entry.shape),
        };
        Tensor {
            data_type: entry.data_type,
            format: entry.format,
            dims,
            original: extents(&entry.original_shape),
            address,
            groups: entry.sub_format,
            is_ffts,
            content,
        }
    }

    /// The elements along one axis, or a shape without elements.
    pub(super) fn decode(&self) -> Result<Array<'_>, Stop> {
        let decoded = match &self.content {
            Content::File(source, side, index) => {
                let tensor = source.side(*side).nth(*index).ok_or_else(Stop::index)?;
                dtype::decode(&tensor)?
            }
            Content::Bytes(entry, bytes) => dtype::decode(&source_tensor(entry, bytes))?,
            Content::Elements(dtype, bytes) => {
                return Ok(Array::flat(*dtype, Cow::Borrowed(bytes)));
            }
        };
        if count(&decoded.dims) == Some(0) {
            return decoded
                .array
                .reshape(&decoded.dims)
                .map_err(Stop::Exception);
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

    /// Whether no axis has more than one entry, as the reference counts it.
    pub(super) fn is_scalar(&self) -> bool {
        is_scalar(&self.dims)
    }
}

/// Whether the extents add up to their number.
pub(super) fn is_scalar(dims: &[usize]) -> bool {
    dims.iter()
        .fold(0_usize, |sum, &dim| sum.saturating_add(dim))
        == dims.len()
}
