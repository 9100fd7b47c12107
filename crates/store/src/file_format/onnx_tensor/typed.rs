//! Elements that are written one by one, in a field for several dtypes.

use opscope_tensor::DType;
use opscope_tensor::text::{HEAD_BYTES, TextBuilder};

use super::fields::{DOUBLE_DATA, FLOAT_DATA, INT32_DATA, INT64_DATA, STRING_DATA, UINT64_DATA};
use crate::file_format::protobuf::{FieldValue, MessageReader};
use crate::{FormatError, check_memory};

/// Expectation in an error message.
const EXPECTED_TEXTS: &str = "as many texts as the shape has elements (field 6)";

/// The elements in a field, as bytes of a dtype; they have to be `n_bytes` together.
pub(super) fn numbers(
    file: &[u8],
    field: u32,
    dtype: DType,
    n_bytes: usize,
) -> Result<Vec<u8>, FormatError> {
    let expected = field_of(dtype);
    // An empty tensor has no field at all.
    if field != expected && (field != 0 || n_bytes > 0) {
        let found = format!("field {field}");
        let expected = format!("{dtype} in field {expected}, or raw bytes");
        return Err(FormatError::new(0, expected, found));
    }
    let mut elements = ElementBytes {
        dtype,
        n_bytes,
        bytes: Vec::with_capacity(n_bytes),
    };
    let mut reader = MessageReader::new(file, 0);
    while let Some((number, value)) = reader.field()? {
        if number != field {
            continue;
        }
        let at = reader.offset();
        match value {
            // Packed floats are little-endian elements already; packed integers are varints.
            FieldValue::Bytes(bytes, _) if matches!(field, FLOAT_DATA | DOUBLE_DATA) => {
                elements.add(bytes, at)?;
            }
            FieldValue::Bytes(bytes, base) => {
                let mut numbers = MessageReader::new(bytes, base);
                while let Some(number) = numbers.packed()? {
                    elements.add_number(number, numbers.offset())?;
                }
            }
            FieldValue::Varint(number) => elements.add_number(number, at)?,
            FieldValue::Fixed32(bits) => elements.add(&bits.to_le_bytes(), at)?,
            FieldValue::Fixed64(bits) => elements.add(&bits.to_le_bytes(), at)?,
            FieldValue::Group => {}
        }
    }
    if elements.bytes.len() < n_bytes {
        let expected = format!("{n_bytes} bytes of {dtype}");
        return Err(FormatError::new(
            0,
            expected,
            elements.bytes.len().to_string(),
        ));
    }
    Ok(elements.bytes)
}

/// The field that has elements of a dtype.
fn field_of(dtype: DType) -> u32 {
    match dtype {
        DType::F32 | DType::C64 => FLOAT_DATA,
        DType::F64 | DType::C128 => DOUBLE_DATA,
        DType::I64 => INT64_DATA,
        DType::U32 | DType::U64 => UINT64_DATA,
        _ => INT32_DATA,
    }
}

/// Elements as far as they were read.
struct ElementBytes {
    dtype: DType,
    n_bytes: usize,
    bytes: Vec<u8>,
}

impl ElementBytes {
    fn add(&mut self, bytes: &[u8], at: u64) -> Result<(), FormatError> {
        if bytes.len() > self.n_bytes - self.bytes.len() {
            let expected = format!("{} bytes of {}", self.n_bytes, self.dtype);
            return Err(FormatError::new(at, expected, "more"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds a number of a field for integers: of narrow dtypes the bits, of those below a byte one
    /// byte with several elements.
    fn add_number(&mut self, number: u64, at: u64) -> Result<(), FormatError> {
        let bytes = number.to_le_bytes();
        // A negative number has all ten bytes on the wire, whatever its width.
        let signed = number.cast_signed();
        let is_within = match self.dtype {
            DType::I64 | DType::U64 => true,
            DType::I32 => i32::try_from(signed).is_ok(),
            DType::I16 => i16::try_from(signed).is_ok(),
            DType::I8 => i8::try_from(signed).is_ok(),
            DType::Bool => number <= 1,
            dtype => number.unbounded_shr(8 * width(dtype) as u32) == 0,
        };
        if !is_within {
            let expected = format!("an element of {}", self.dtype);
            return Err(FormatError::new(at, expected, signed.to_string()));
        }
        self.add(bytes.get(..width(self.dtype)).unwrap_or(&bytes), at)
    }
}

/// Bytes of a number.
fn width(dtype: DType) -> usize {
    dtype.bytes().unwrap_or(1)
}

/// The tensor of the texts in a file, which have to be `n_texts`.
pub(super) fn texts(file: &[u8], n_texts: usize) -> Result<Vec<u8>, FormatError> {
    let (mut n_found, mut n_text_bytes) = (0_usize, 0_usize);
    let mut reader = MessageReader::new(file, 0);
    while let Some((number, value)) = reader.field()? {
        if let (STRING_DATA, FieldValue::Bytes(bytes, _)) = (number, value) {
            n_found += 1;
            n_text_bytes += bytes.len();
        }
    }
    if n_found != n_texts {
        return Err(FormatError::new(
            0,
            EXPECTED_TEXTS,
            format!("{n_found} of {n_texts}"),
        ));
    }
    let n_bytes = n_texts
        .saturating_mul(HEAD_BYTES)
        .saturating_add(n_text_bytes);
    check_memory(n_bytes as u64)
        .map_err(|error| FormatError::new(0, "as much memory", error.to_string()))?;
    let mut texts = TextBuilder::new(n_texts, n_text_bytes);
    let mut reader = MessageReader::new(file, 0);
    while let Some((number, value)) = reader.field()? {
        if let (STRING_DATA, FieldValue::Bytes(bytes, _)) = (number, value) {
            texts.push(bytes);
        }
    }
    Ok(texts.into_bytes())
}
