//! The array file as `MindSpore` writes it.
//!
//! The same content as numpy's in other spacing: no blanks between dimensions, a comma after each,
//! and between 1 and 64 blanks at the end. Source: recorded headers.

use std::borrow::Cow;

use opscope_tensor::convert::dtype::{DecodeError, decode};
use opscope_tensor::{DType, Shape, TensorView};
use thiserror::Error;

use super::descr;
use super::header::{BFLOAT16_DESCR, MAGIC};

const ALIGN: usize = 64;

/// Header and elements of an array file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeArray<'a> {
    /// Bytes that precede the elements.
    pub header: Vec<u8>,
    /// The elements: those of the tensor, or wider ones.
    pub payload: Cow<'a, [u8]>,
}

/// Why a tensor has no file.
#[derive(Debug, Error)]
pub enum ArrayRefusal {
    /// Nothing is in it.
    #[error("a tensor without elements has no file")]
    Empty,
    /// The format has no such type.
    #[error("array files of MindSpore cannot hold {0}")]
    DType(DType),
    /// The tensor's bytes do not fit its dtype and shape.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// The header of an array, or `None` for a dtype that the format lacks. bfloat16 gets the name of
/// `MindSpore`'s CPU writer, which numpy does not read; [`mindspore_array`] avoids it.
pub fn mindspore_header(dtype: DType, shape: &Shape) -> Option<Vec<u8>> {
    let descr = if dtype == DType::BF16 {
        BFLOAT16_DESCR
    } else {
        descr(dtype)?
    };
    let dims: String = shape.iter().map(|dim| format!("{dim},")).collect();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let n_fixed = MAGIC.len() + 4;
    let n_used = n_fixed + text.len() + 1;
    // A header that fits exactly gets 64 more blanks, where numpy adds none.
    let padding = " ".repeat(ALIGN - n_used % ALIGN);
    let text = text + &padding + "\n";
    // `Shape` allows at most 64 axes, so the text is far below the limit of version 1.0.
    let length = u16::try_from(text.len()).ok()?;
    Some([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

/// The file of a tensor.
///
/// bfloat16 becomes float32, int4 (low half of a byte first) int8, uint1 (most significant bit
/// first) uint8; the other dtypes of numpy stay as they are.
///
/// # Errors
/// [`ArrayRefusal`] if the tensor is empty, has another dtype, or its bytes do not fit.
pub fn mindspore_array<'a>(tensor: TensorView<'a>) -> Result<MindSporeArray<'a>, ArrayRefusal> {
    let TensorView { dtype, shape, .. } = tensor;
    // numpy has none of the three, and MindSpore widens them rather than refusing the tensor.
    let is_converted = matches!(dtype, DType::BF16 | DType::I4 | DType::U1);
    if !is_converted && descr(dtype).is_none() {
        return Err(ArrayRefusal::DType(dtype));
    }
    // MindSpore warns of an empty tensor and makes no file, so readers of its dumps expect none.
    if shape.n_elements() == 0 {
        return Err(ArrayRefusal::Empty);
    }
    let decoded = decode(dtype, shape, tensor.bytes)?;
    let header = mindspore_header(decoded.dtype, shape).ok_or(ArrayRefusal::DType(dtype))?;
    Ok(MindSporeArray {
        header,
        payload: decoded.bytes,
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    fn array(
        dtype: DType,
        dims: &[usize],
        bytes: &[u8],
    ) -> Result<(Vec<u8>, String), ArrayRefusal> {
        let shape = Shape::new(dims).unwrap();
        let view = TensorView::new(dtype, &shape, bytes);
        let array = mindspore_array(view)?;
        let text = String::from_utf8_lossy(&array.header[10..]).into_owned();
        Ok((array.payload.into_owned(), text.trim_end().to_owned()))
    }

    #[test]
    fn narrow_types_are_widened() {
        let (payload, text) = array(DType::BF16, &[2], &[0x80, 0x3f, 0x80, 0xbf]).unwrap();
        assert_eq!(
            payload,
            [1_f32.to_le_bytes(), (-1_f32).to_le_bytes()].concat()
        );
        assert_eq!(
            text,
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
        );
        let (payload, text) = array(DType::I4, &[2, 4], &[0x18, 0x7f, 0x80, 0x36]).unwrap();
        assert_eq!(payload, [0xf8, 1, 0xff, 7, 0, 0xf8, 6, 3]);
        assert!(text.contains("'|i1'") && text.contains("(2,4,)"), "{text}");
        let (payload, _) = array(DType::U1, &[10], &[0b1010_0001, 0b0100_0000]).unwrap();
        assert_eq!(payload, [1, 0, 1, 0, 0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn what_is_refused() {
        for dtype in [
            DType::F8E4M3FN,
            DType::F8E5M2,
            DType::HiF8,
            DType::String,
            DType::I2,
        ] {
            assert!(
                matches!(array(dtype, &[1], &[0]), Err(ArrayRefusal::DType(_))),
                "{dtype}"
            );
        }
        assert!(matches!(
            array(DType::F32, &[0, 3], &[]),
            Err(ArrayRefusal::Empty)
        ));
        assert!(matches!(
            array(DType::F32, &[3], &[0]),
            Err(ArrayRefusal::Decode(_))
        ));
    }
}
