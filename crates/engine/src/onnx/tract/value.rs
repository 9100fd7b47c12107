//! tract's tensors as ours, and back.

use std::sync::Arc;

use opscope_tensor::{DType, NumpyType, Shape, Tensor, TensorIdentity};
use tract_onnx::prelude::DatumType as TractType;
use tract_onnx::prelude::Tensor as TractTensor;
use tract_onnx::prelude::*;

/// A tract tensor whose bytes are shared by reference count.
struct TractBytes(Arc<TractTensor>);

impl AsRef<[u8]> for TractBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The value with integers in place of symbols.
///
/// Dimensions are symbols inside tract, and its operators calculate differently with them than with
/// the integers that they are in ONNX. So no operator ever receives one.
pub(super) fn without_symbols(value: TValue) -> TractResult<TValue> {
    if value.datum_type() != TractType::TDim {
        return Ok(value);
    }
    Ok(value.cast_to::<i64>()?.into_owned().into_tvalue())
}

/// The value as our tensor, without copying its data; `None` if it has no plain bytes (text).
pub(super) fn to_tensor(value: &TValue) -> Option<Tensor> {
    // A second reference and no copy: a writer on another thread may hold it for longer than the
    // run.
    let tensor = value.clone().into_arc_tensor();
    // tract keeps texts as a list of strings.
    if !tensor.is_plain_ram() {
        return None;
    }
    let dtype = dtype(tensor.datum_type())?;
    let shape = Shape::new(tensor.shape()).ok()?;
    // tract changes a tensor in place only if it has the only reference, and then moves it to
    // another count.
    let identity = TensorIdentity::from_owner(&tensor);
    let tensor = Tensor::new(dtype, shape, Arc::new(TractBytes(tensor))).ok()?;
    Some(tensor.with_identity(identity))
}

/// Type of the elements of a value; `None` if it has no plain bytes (text), or of a type that we
/// lack.
pub(super) fn dtype_of(value: &TValue) -> Option<DType> {
    value
        .is_plain_ram()
        .then(|| dtype(value.datum_type()))
        .flatten()
}

/// Our tensor as a value for tract; the data are copied once.
pub(super) fn from_tensor(tensor: &Tensor) -> Result<TractTensor, String> {
    let shape = tensor.shape().dims();
    let bytes = tensor.host_bytes().map_err(|error| error.to_string())?;
    macro_rules! from {
        ($type:ty) => {
            TractTensor::from_shape(shape, &decode(bytes, <$type>::from_le_bytes))
        };
    }
    let result = match tensor.dtype().as_numpy() {
        Some(NumpyType::F32) => from!(f32),
        Some(NumpyType::F64) => from!(f64),
        Some(NumpyType::F16) => from!(f16),
        Some(NumpyType::I8) => from!(i8),
        Some(NumpyType::I16) => from!(i16),
        Some(NumpyType::I32) => from!(i32),
        Some(NumpyType::I64) => from!(i64),
        Some(NumpyType::U8) => from!(u8),
        Some(NumpyType::U16) => from!(u16),
        Some(NumpyType::U32) => from!(u32),
        Some(NumpyType::U64) => from!(u64),
        Some(NumpyType::Bool) => {
            TractTensor::from_shape(shape, &decode(bytes, |[byte]: [u8; 1]| byte != 0))
        }
        None | Some(NumpyType::C64 | NumpyType::C128) => {
            let dtype = tensor.dtype();
            return Err(format!("inputs of type {dtype} are not supported by tract"));
        }
    };
    result.map_err(|error| error.to_string())
}

fn decode<T, const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|&element| decode(element))
        .collect()
}

fn dtype(datum_type: TractType) -> Option<DType> {
    Some(match datum_type {
        TractType::Bool => DType::Bool,
        TractType::U8 | TractType::QU8(_) => DType::U8,
        TractType::U16 => DType::U16,
        TractType::U32 => DType::U32,
        TractType::U64 => DType::U64,
        TractType::I8 | TractType::QI8(_) => DType::I8,
        TractType::I16 => DType::I16,
        TractType::I32 | TractType::QI32(_) => DType::I32,
        TractType::I64 => DType::I64,
        TractType::F16 => DType::F16,
        TractType::F32 => DType::F32,
        TractType::F64 => DType::F64,
        _ => return None,
    })
}
