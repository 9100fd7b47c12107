//! One tensor as ONNX writes it: the protobuf message `onnx.TensorProto`.
//!
//! `docs/formats/onnx_tensor.md` lists the fields. Source: `onnx.proto` of ONNX 1.23, and files of
//! its Python package. A message has no magic, so that a file counts as one only if all of it is
//! fields of the message.

mod fields;
mod typed;

use std::ops::Range;
use std::path::Path;

use opscope_tensor::{DType, Shape};

use self::fields::TensorFields;
use crate::file_bytes::FileBytes;
use crate::{FormatError, check_memory};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "ONNX tensor";
/// How names of files end that ONNX Runtime writes of nodes.
pub const DEBUG_SUFFIX: &str = ".tensorproto";
/// How names of other files end: ONNX's test data, but also graphs and dump files.
pub const PLAIN_SUFFIX: &str = ".pb";

/// The numbers of the dtypes.
const DTYPES: [(u64, DType); 26] = [
    (1, DType::F32),
    (2, DType::U8),
    (3, DType::I8),
    (4, DType::U16),
    (5, DType::I16),
    (6, DType::I32),
    (7, DType::I64),
    (8, DType::String),
    (9, DType::Bool),
    (10, DType::F16),
    (11, DType::F64),
    (12, DType::U32),
    (13, DType::U64),
    (14, DType::C64),
    (15, DType::C128),
    (16, DType::BF16),
    (17, DType::F8E4M3FN),
    (18, DType::F8E4M3FNUZ),
    (19, DType::F8E5M2),
    (20, DType::F8E5M2FNUZ),
    (21, DType::U4),
    (22, DType::I4),
    (23, DType::F4E2M1),
    (24, DType::F8E8M0),
    (25, DType::U2),
    (26, DType::I2),
];

/// A tensor of a file.
#[derive(Debug)]
pub struct OnnxTensor {
    /// The name of the value; empty if it has none.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// The elements.
    pub elements: OnnxElements,
}

/// Elements in row-major order and little-endian.
#[derive(Debug, PartialEq, Eq)]
pub enum OnnxElements {
    /// A part of the file.
    InFile(Range<usize>),
    /// Numbers or texts that were written one by one.
    Decoded(Vec<u8>),
}

/// Whether a file is such a message, judging by its fields and their types.
pub fn is_tensor(file: &[u8]) -> bool {
    TensorFields::read(file).is_ok_and(|fields| dtype_of(fields.data_type).is_some())
}

/// Whether the name allows such a message.
pub fn may_be_file(file_name: &str) -> bool {
    let mut suffixes = [DEBUG_SUFFIX, PLAIN_SUFFIX].iter();
    suffixes.any(|suffix| file_name.ends_with(suffix))
}

/// Whether a file is such a message by its name, or by its name and content.
pub fn is_file(file_name: &str, file: &[u8]) -> bool {
    file_name.ends_with(DEBUG_SUFFIX) || (file_name.ends_with(PLAIN_SUFFIX) && is_tensor(file))
}

/// [`is_file`] of a file that is not open; not if it cannot be read.
pub fn is_file_at(path: &Path, file_name: &str) -> bool {
    may_be_file(file_name)
        && FileBytes::open(path).is_ok_and(|file| is_file(file_name, file.as_ref()))
}

/// The name of a file without its suffix.
pub fn stem_of(file_name: &str) -> Option<&str> {
    let mut suffixes = [DEBUG_SUFFIX, PLAIN_SUFFIX].iter();
    suffixes.find_map(|suffix| file_name.strip_suffix(suffix))
}

/// The rank that ONNX Runtime appends to the name of a value to form a file name; `None` without a
/// rank, or if the file is not named after the value.
pub fn rank_in_stem(stem: &str, value_name: &str) -> Option<u32> {
    // Each byte but letters and digits was replaced, so that a character of several bytes became
    // several.
    let bytes = value_name.bytes();
    let replaced: Vec<u8> = bytes
        .map(|byte| Some(byte).filter(u8::is_ascii_alphanumeric).unwrap_or(b'_'))
        .collect();
    let rest = stem.strip_prefix(str::from_utf8(&replaced).ok()?)?;
    // A value may be called `x_rank_0` too; its name in the file decides.
    let digits = rest.strip_prefix("_rank_")?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The tensor of a file.
///
/// # Errors
/// [`FormatError`] if the file is damaged or no such message, if the elements are in another file
/// or only a part of a tensor's, and if their number does not match the shape.
pub fn decode(file: &[u8]) -> Result<OnnxTensor, FormatError> {
    let fields = TensorFields::read(file)?;
    let Some(dtype) = dtype_of(fields.data_type) else {
        let found = fields.data_type.to_string();
        return Err(FormatError::new(
            0,
            "a dtype that is known (field 2)",
            found,
        ));
    };
    fields.check_is_whole()?;
    let shape = shape_of(&fields.dims, dtype)?;
    let n_bytes = shape.n_bytes(dtype).unwrap_or(0);
    let elements = match &fields.raw {
        // Texts have no raw form: their ends would be unknown.
        Some(range) if dtype == DType::String => {
            let expected = "texts one by one (field 6)";
            return Err(FormatError::new(range.start as u64, expected, "raw bytes"));
        }
        Some(range) if range.len() != n_bytes => {
            let expected = format!("{n_bytes} bytes of {dtype} {shape}");
            return Err(FormatError::new(
                range.start as u64,
                expected,
                range.len().to_string(),
            ));
        }
        Some(range) => OnnxElements::InFile(range.clone()),
        None if dtype == DType::String => {
            OnnxElements::Decoded(typed::texts(file, shape.n_elements())?)
        }
        None => {
            // Every byte encodes at least one number, and the widest number has eight.
            if n_bytes / 8 > file.len() {
                let expected = format!("{n_bytes} bytes of {dtype} {shape}");
                return Err(FormatError::new(
                    0,
                    expected,
                    format!("{} in all", file.len()),
                ));
            }
            check_memory(n_bytes as u64)
                .map_err(|error| FormatError::new(0, "as much memory", error.to_string()))?;
            OnnxElements::Decoded(typed::numbers(file, fields.typed, dtype, n_bytes)?)
        }
    };
    Ok(OnnxTensor {
        name: fields.name,
        dtype,
        shape,
        elements,
    })
}

fn dtype_of(number: u64) -> Option<DType> {
    let known = DTYPES.iter().find(|(known, _)| *known == number);
    known.map(|(_, dtype)| *dtype)
}

fn shape_of(dims: &[u64], dtype: DType) -> Result<Shape, FormatError> {
    let wrong = |found: String| FormatError::new(0, "a shape that fits memory (field 1)", found);
    // A negative dimension is one of the largest numbers here.
    let extents = dims.iter().map(|&dim| usize::try_from(dim).ok());
    let extents = extents.map(|dim| dim.filter(|&dim| isize::try_from(dim).is_ok()));
    let extents: Option<Vec<usize>> = extents.collect();
    let extents = extents.ok_or_else(|| wrong(format!("{dims:?}")))?;
    let shape = Shape::new(extents).map_err(|error| wrong(error.to_string()))?;
    // Texts have no width.
    if dtype != DType::String {
        shape
            .n_bytes(dtype)
            .map_err(|error| wrong(error.to_string()))?;
    }
    Ok(shape)
}

#[cfg(test)]
mod tests;
