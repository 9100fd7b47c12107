//! The numbers of one row.
//!
//! Maximum and minimum begin with the first element and give way to what is greater or smaller, so a
//! NaN in first place stays and elsewhere never counts. The average is the running mean
//! `mean += (x - mean) / n` in double precision, element after element: files are compared by their
//! digits, and another order of summation would print others. Each element waits for the one before
//! it there; everything else in the loop is done while it waits.

use std::fmt;

use half::f16;
use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, Tensor};

use super::number::general;

/// What a row says about the elements of a tensor.
pub(super) struct Cells {
    pub(super) max: Number,
    pub(super) min: Number,
    pub(super) average: f64,
    pub(super) sum_of_squares: f64,
    pub(super) n_elements: u64,
    pub(super) n_nan: u64,
    pub(super) n_neg_inf: u64,
    pub(super) n_pos_inf: u64,
}

/// An element, as it is printed.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Float(f64),
    Signed(i64),
    Unsigned(u64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(value) => f.write_str(&general(*value)),
            Number::Signed(value) => value.fmt(f),
            Number::Unsigned(value) => value.fmt(f),
        }
    }
}

/// The cells of the plain table; `None` for types that it leaves empty and for tensors without
/// elements.
pub(super) fn plain(tensor: &Tensor) -> Option<Cells> {
    of_bytes::<true>(tensor.dtype(), tensor.bytes())
}

/// The cells of a table of chosen columns, for every type whose elements are numbers. The average
/// is left at 0 unless it is needed.
pub(super) fn any(tensor: &Tensor, needs_mean: bool) -> Option<Cells> {
    let dtype = tensor.dtype();
    // Opaque bytes decode to themselves, but they are no numbers.
    if matches!(
        dtype,
        DType::Undefined | DType::Dual | DType::Variant | DType::HiF4Scale
    ) {
        return None;
    }
    let decoded = decode(dtype, tensor.shape(), tensor.bytes()).ok()?;
    if needs_mean {
        of_bytes::<true>(decoded.dtype, &decoded.bytes)
    } else {
        of_bytes::<false>(decoded.dtype, &decoded.bytes)
    }
}

fn of_bytes<const MEAN: bool>(dtype: DType, bytes: &[u8]) -> Option<Cells> {
    match dtype {
        DType::F32 => over::<4, _, MEAN>(bytes, f32::from_le_bytes),
        DType::F64 => over::<8, _, MEAN>(bytes, f64::from_le_bytes),
        DType::F16 => over::<2, _, MEAN>(bytes, |b| f16::from_le_bytes(b).to_f32()),
        DType::I8 => over::<1, _, MEAN>(bytes, i8::from_le_bytes),
        DType::U8 => over::<1, _, MEAN>(bytes, u8::from_le_bytes),
        DType::Bool => over::<1, _, MEAN>(bytes, |b| u8::from(b[0] != 0)),
        DType::I16 => over::<2, _, MEAN>(bytes, i16::from_le_bytes),
        DType::U16 => over::<2, _, MEAN>(bytes, u16::from_le_bytes),
        DType::I32 => over::<4, _, MEAN>(bytes, i32::from_le_bytes),
        DType::U32 => over::<4, _, MEAN>(bytes, u32::from_le_bytes),
        DType::I64 => over::<8, _, MEAN>(bytes, i64::from_le_bytes),
        DType::U64 => over::<8, _, MEAN>(bytes, u64::from_le_bytes),
        _ => None,
    }
}

/// The loop. Bytes after the last whole element are passed over.
#[inline(always)]
fn over<const WIDTH: usize, T: Element, const MEAN: bool>(
    bytes: &[u8],
    element: impl Fn([u8; WIDTH]) -> T,
) -> Option<Cells> {
    let elements = bytes.as_chunks::<WIDTH>().0;
    let first = element(*elements.first()?);
    let (mut max, mut min) = (first, first);
    let (mut mean, mut sum_of_squares) = (0.0_f64, 0.0_f64);
    let (mut n_nan, mut n_neg_inf, mut n_pos_inf) = (0, 0, 0);
    let mut n = 0.0_f64;
    for &bytes in elements {
        let x = element(bytes);
        max = if x > max { x } else { max };
        min = if x < min { x } else { min };
        let value = x.to_f64();
        if T::IS_FLOAT {
            n_nan += u64::from(value.is_nan());
            n_pos_inf += u64::from(value == f64::INFINITY);
            n_neg_inf += u64::from(value == f64::NEG_INFINITY);
        }
        if MEAN {
            n += 1.0;
            mean += (value - mean) / n;
        }
        sum_of_squares += value * value;
    }
    // Infinities of one sign make the mean NaN on the way; the table says what it tends to.
    let average = match (n_neg_inf > 0, n_pos_inf > 0) {
        (true, false) => f64::NEG_INFINITY,
        (false, true) => f64::INFINITY,
        _ => mean,
    };
    Some(Cells {
        max: max.number(),
        min: min.number(),
        average,
        sum_of_squares,
        n_elements: elements.len() as u64,
        n_nan,
        n_neg_inf,
        n_pos_inf,
    })
}

/// An element that can be compared, added and printed.
trait Element: Copy + PartialOrd {
    /// Whether it can be NaN or infinite.
    const IS_FLOAT: bool;

    fn to_f64(self) -> f64;

    fn number(self) -> Number;
}

macro_rules! elements {
    ($($type:ty: $is_float:literal, $variant:ident($wide:ty);)*) => {
        $(impl Element for $type {
            const IS_FLOAT: bool = $is_float;

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn number(self) -> Number {
                Number::$variant(self as $wide)
            }
        })*
    };
}

elements! {
    f32: true, Float(f64);
    f64: true, Float(f64);
    i8: false, Signed(i64);
    u8: false, Unsigned(u64);
    i16: false, Signed(i64);
    u16: false, Unsigned(u64);
    i32: false, Signed(i64);
    u32: false, Unsigned(u64);
    i64: false, Signed(i64);
    u64: false, Unsigned(u64);
}
