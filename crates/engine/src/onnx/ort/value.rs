//! ONNX Runtime's values as our tensors, and back.

use std::ops::Range;
use std::sync::Arc;

use opscope_tensor::{DType, Shape, Tensor, text};
use ort::session::SessionInputValue;
use ort::value::{DynTensor, DynTensorValueType, DynValue, TensorElementType};

use super::error;
use super::native::{self, BorrowedValue, OwnedBytes};
use crate::onnx::proto;

/// The alignment that memory must have for the library to read it where it is. Arrays of numpy are
/// aligned so, and some of the library's sums depend on it in the last digit.
const ALIGNMENT: usize = 16;

/// An input of a run.
pub(super) enum RunInput<'a> {
    /// In the memory of a tensor of ours.
    Lent(BorrowedValue<'a>, Range<usize>),
    /// In the library's own.
    Copied(DynTensor),
}

impl RunInput<'_> {
    /// Our tensor as a value for the library, without copying its elements where they lie well.
    pub(super) fn new(tensor: &Tensor) -> Result<RunInput<'_>, String> {
        let element = element_type(tensor.dtype())
            .ok_or_else(|| format!("inputs of type {} are not supported", tensor.dtype()))?;
        let dims = tensor
            .shape()
            .dims()
            .iter()
            .map(|&n| i64::try_from(n).map_err(|_| format!("an axis of {n} elements")));
        let dims = dims.collect::<Result<Vec<i64>, String>>()?;
        let view = tensor.host_view().map_err(|error| error.to_string())?;
        if view.dtype == DType::String {
            let texts = text::iter(view).map_err(|error| error.to_string())?;
            let texts: Vec<&[u8]> = texts.collect();
            return error::quietly(|| native::of_texts(&dims, &texts)).map(RunInput::Copied);
        }
        let bytes = view.bytes;
        // An address that is not aligned is slower at best, and changes the last digit of some
        // sums.
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(ALIGNMENT);
        error::quietly(|| {
            Ok(if is_aligned {
                let start = bytes.as_ptr().addr();
                RunInput::Lent(
                    BorrowedValue::new(element, &dims, bytes)?,
                    start..start + bytes.len(),
                )
            } else {
                RunInput::Copied(native::copied(element, &dims, bytes)?)
            })
        })
    }

    /// The value, for a run.
    pub(super) fn view(&self) -> SessionInputValue<'_> {
        match self {
            RunInput::Lent(lent, _) => lent.view(),
            RunInput::Copied(tensor) => tensor.into(),
        }
    }

    /// Whether these bytes lie in our memory.
    fn holds(&self, bytes: &[u8]) -> bool {
        match self {
            RunInput::Lent(_, range) => !bytes.is_empty() && range.contains(&bytes.as_ptr().addr()),
            RunInput::Copied(_) => false,
        }
    }
}

/// A result as our tensor, without copying its elements. An input that is also a result stays in
/// our memory, which lives no longer than the run; it is copied.
pub(super) fn to_tensor(value: DynValue, inputs: &[RunInput<'_>]) -> Result<Tensor, String> {
    let value = error::quietly(|| value.downcast::<DynTensorValueType>())?;
    let element = *value.data_type();
    let dtype = dtype(element).ok_or_else(|| format!("a result of type {element}"))?;
    let dims = value
        .shape()
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| format!("an axis of {n} elements")));
    let dims = dims.collect::<Result<Vec<usize>, String>>()?;
    let shape = Shape::new(dims).map_err(|error| error.to_string())?;
    if dtype == DType::String {
        let bytes = texts(&value, shape.n_elements())?;
        return Tensor::from_vec(dtype, shape, bytes).map_err(|error| error.to_string());
    }
    let bytes = OwnedBytes::new(value).ok_or("a result is not in the CPU's memory")?;
    // A graph may pass an input on as a result. Then the library returns our own address.
    let is_ours = inputs.iter().any(|input| input.holds(bytes.as_ref()));
    let tensor = if is_ours {
        Tensor::from_vec(dtype, shape, bytes.as_ref().to_vec())
    } else {
        Tensor::new(dtype, shape, Arc::new(bytes))
    };
    tensor.map_err(|error| error.to_string())
}

/// The texts of a tensor, in our form.
fn texts(value: &DynTensor, n_texts: usize) -> Result<Vec<u8>, String> {
    let (bytes, starts) = error::quietly(|| native::texts(value, n_texts))?;
    let mut builder = text::TextBuilder::new(n_texts, bytes.len());
    // The library returns the offset of each text and their total length.
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    for (&start, end) in starts.iter().zip(ends) {
        let text = bytes.get(start..end);
        builder.push(text.ok_or("the texts of a result lie outside of it")?);
    }
    Ok(builder.into_bytes())
}

/// The dtype of the library's element type.
pub(super) fn dtype(element: TensorElementType) -> Option<DType> {
    PAIRS
        .iter()
        .find(|(_, has)| *has == element)
        .map(|(dtype, _)| *dtype)
}

/// The dtype of the library's number for it. Up to 23 the numbers are those of ONNX.
pub(super) fn dtype_of_code(code: i32) -> Option<DType> {
    match code {
        ..=23 => proto::dtype(code),
        24 => Some(DType::U2),
        25 => Some(DType::I2),
        26 => Some(DType::F8E8M0),
        _ => None,
    }
}

fn element_type(dtype: DType) -> Option<TensorElementType> {
    PAIRS
        .iter()
        .find(|(has, _)| *has == dtype)
        .map(|(_, element)| *element)
}

/// Element types that the two sides know.
pub(super) const PAIRS: &[(DType, TensorElementType)] = &[
    (DType::F32, TensorElementType::Float32),
    (DType::F64, TensorElementType::Float64),
    (DType::F16, TensorElementType::Float16),
    (DType::BF16, TensorElementType::Bfloat16),
    (DType::I8, TensorElementType::Int8),
    (DType::I16, TensorElementType::Int16),
    (DType::I32, TensorElementType::Int32),
    (DType::I64, TensorElementType::Int64),
    (DType::U8, TensorElementType::Uint8),
    (DType::U16, TensorElementType::Uint16),
    (DType::U32, TensorElementType::Uint32),
    (DType::U64, TensorElementType::Uint64),
    (DType::Bool, TensorElementType::Bool),
    (DType::C64, TensorElementType::Complex64),
    (DType::C128, TensorElementType::Complex128),
    (DType::F8E4M3FN, TensorElementType::Float8E4M3FN),
    (DType::F8E5M2, TensorElementType::Float8E5M2),
    (DType::F8E4M3FNUZ, TensorElementType::Float8E4M3FNUZ),
    (DType::F8E5M2FNUZ, TensorElementType::Float8E5M2FNUZ),
    (DType::F8E8M0, TensorElementType::Float8E8M0),
    (DType::F4E2M1, TensorElementType::Float4E2M1),
    (DType::I4, TensorElementType::Int4),
    (DType::U4, TensorElementType::Uint4),
    (DType::I2, TensorElementType::Int2),
    (DType::U2, TensorElementType::Uint2),
    (DType::String, TensorElementType::String),
];
