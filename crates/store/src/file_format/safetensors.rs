//! safetensors: several named tensors in one file.
//!
//! `docs/formats/safetensors.md` draws the bytes. Source: the public description of
//! the format (`huggingface/safetensors`, README) and its dtype names.

mod growing;
mod read;

use opscope_tensor::{DType, Shape, ShapeError};
use serde_json::{Map, Value, json};
use thiserror::Error;

pub use growing::{GrowingHeader, PADDING_PREFIX};
pub use read::{FoundTensor, decode, decode_head};

/// The name used in messages.
pub const FORMAT_NAME: &str = "safetensors";
/// How names of such files end.
pub const SUFFIX: &str = ".safetensors";
/// Longest header that is read; the format's own limit.
pub const HEADER_BYTES_MAX: usize = 100_000_000;
/// Bytes of the length that precedes the header.
const LENGTH_BYTES: usize = 8;
/// The key under which free text is kept.
const METADATA_KEY: &str = "__metadata__";
/// Headers are padded with blanks to a multiple of this, so that the data can be mapped.
const ALIGN: usize = 8;

/// A tensor to be written: dense, row-major, little-endian.
#[derive(Clone, Debug)]
pub struct NamedTensor<'a> {
    /// Its name; unique in the file.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// The elements.
    pub bytes: &'a [u8],
}

/// A tensor that the format cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SafetensorsError {
    /// A dtype that the format lacks, a wrong number of bytes, or a name that is taken.
    #[error("{0}")]
    Unfit(String),
    /// The shape describes more data than memory can hold.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The dtype's name in a header, or `None` where the format has none.
///
/// Packed types are left out, although newer versions name some: their readers disagree on the
/// order within a byte.
pub fn dtype_name(dtype: DType) -> Option<&'static str> {
    use DType::*;
    Some(match dtype {
        Bool => "BOOL",
        U8 => "U8",
        I8 => "I8",
        U16 => "U16",
        I16 => "I16",
        U32 => "U32",
        I32 => "I32",
        U64 => "U64",
        I64 => "I64",
        F16 => "F16",
        BF16 => "BF16",
        F32 => "F32",
        F64 => "F64",
        C64 => "C64",
        F8E5M2 => "F8_E5M2",
        // The format's name has no suffix, but it means the variant without infinities.
        F8E4M3FN => "F8_E4M3",
        F8E8M0 => "F8_E8M0",
        Undefined | String | DualSubI8 | DualSubU8 | C128 | QI8 | QI16 | QI32 | QU8 | QU16
        | Resource | StringRef | Dual | Variant | I4 | U1 | I2 | U2 | C32 | HiF8 | F6E3M2
        | F6E2M3 | F4E2M1 | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => {
            return None;
        }
    })
}

/// The bytes of a file, in the pieces in which they lie in memory: length and header, then tensors.
///
/// Tensors with wide elements come first, so that every element is aligned; otherwise they keep
/// their order.
///
/// # Errors
/// [`SafetensorsError`], which names the tensor.
pub fn encode<'a>(
    metadata: &[(String, String)],
    tensors: &[NamedTensor<'a>],
) -> Result<(Vec<u8>, Vec<&'a [u8]>), SafetensorsError> {
    let mut header = Map::new();
    if !metadata.is_empty() {
        let texts = metadata
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        header.insert(METADATA_KEY.to_owned(), Value::Object(texts.collect()));
    }
    let mut in_order: Vec<&NamedTensor<'a>> = tensors.iter().collect();
    in_order.sort_by_key(|tensor| std::cmp::Reverse(tensor.dtype.bytes()));
    let mut start = 0_usize;
    let mut parts = Vec::with_capacity(tensors.len());
    for tensor in in_order {
        let name = &tensor.name;
        let dtype = dtype_name(tensor.dtype).ok_or_else(|| {
            let dtype = tensor.dtype;
            SafetensorsError::Unfit(format!("`{name}`: safetensors has no dtype for `{dtype}`"))
        })?;
        let (expected, found) = (tensor.shape.n_bytes(tensor.dtype)?, tensor.bytes.len());
        if expected != found {
            return Err(SafetensorsError::Unfit(format!(
                "`{name}`: dtype and shape take {expected} bytes, found {found}"
            )));
        }
        // The bytes are in memory, so their sum fits.
        let end = start.saturating_add(found);
        let entry = json!({
            "dtype": dtype,
            "shape": tensor.shape.dims(),
            "data_offsets": [start, end],
        });
        if name == METADATA_KEY || header.insert(name.clone(), entry).is_some() {
            return Err(SafetensorsError::Unfit(format!(
                "the name `{name}` is taken"
            )));
        }
        parts.push(tensor.bytes);
        start = end;
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    // The format allows blanks after the object, and nothing else.
    text.resize(text.len().next_multiple_of(ALIGN), b' ');
    let length: [u8; LENGTH_BYTES] = (text.len() as u64).to_le_bytes();
    Ok(([&length[..], &text].concat(), parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor<'a>(name: &str, dtype: DType, dims: &[usize], bytes: &'a [u8]) -> NamedTensor<'a> {
        NamedTensor {
            name: name.to_owned(),
            dtype,
            shape: Shape::new(dims).unwrap(),
            bytes,
        }
    }

    /// Written by hand from the description of the format.
    #[test]
    fn bytes_of_a_small_file() {
        let tensors = [
            tensor("input.0", DType::F8E4M3FN, &[3], &[1, 2, 3]),
            tensor(
                "output.0",
                DType::F32,
                &[1, 2],
                &[0, 0, 128, 63, 0, 0, 0, 64],
            ),
        ];
        let metadata = [("op_name".to_owned(), "a\"b".to_owned())];
        let (mut file, parts) = encode(&metadata, &tensors).unwrap();
        file.extend(parts.concat());
        let header = concat!(
            r#"{"__metadata__":{"op_name":"a\"b"},"#,
            r#""output.0":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"#,
            r#""input.0":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[8,11]}}"#,
            "       ",
        );
        assert_eq!(header.len(), 168);
        let mut expected = vec![168, 0, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(header.as_bytes());
        expected.extend_from_slice(&[0, 0, 128, 63, 0, 0, 0, 64, 1, 2, 3]);
        assert_eq!(
            String::from_utf8_lossy(&file),
            String::from_utf8_lossy(&expected)
        );
        assert_eq!(file, expected);
    }

    #[test]
    fn empty_files_and_tensors_are_allowed() {
        let (file, parts) = encode(&[], &[]).unwrap();
        assert_eq!(file, b"\x08\0\0\0\0\0\0\0{}      ");
        assert!(parts.is_empty());
        let none = [tensor("a", DType::I64, &[0, 4], &[])];
        let (file, _) = encode(&[], &none).unwrap();
        let text = String::from_utf8_lossy(&file[8..]).into_owned();
        assert_eq!(
            text.trim_end(),
            r#"{"a":{"dtype":"I64","shape":[0,4],"data_offsets":[0,0]}}"#
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases = [
            (tensor("a", DType::I4, &[2], &[1]), "no dtype for `int4`"),
            (tensor("a", DType::F32, &[2], &[1]), "take 8 bytes, found 1"),
            (tensor(METADATA_KEY, DType::U8, &[1], &[1]), "is taken"),
        ];
        for (tensor, expected) in cases {
            let error = encode(&[], &[tensor]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let twice = tensor("a", DType::U8, &[1], &[1]);
        assert!(encode(&[], &[twice.clone(), twice]).is_err());
    }
}
