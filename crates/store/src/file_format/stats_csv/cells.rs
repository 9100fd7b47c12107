//! The numbers of one row.
//!
//! Maximum and minimum begin with the first element and give way to what is greater or smaller, so a
//! NaN in first place stays and elsewhere never counts, and of zeros of both signs the first one
//! stays. The average is the one of [`mean`].

mod element;
mod mean;

use std::fmt;
use std::sync::Arc;

use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, Layout, NonFinite, Observed, TensorView, non_finite};

use self::element::Element;
use self::mean::Sums;
use super::number::general;

/// Elements that are decoded at once.
const BLOCK: usize = 1024;
/// Partial results side by side, so that a vector unit can carry them.
const LANES: usize = 8;

/// What a row says about the elements of a tensor.
pub(super) struct Cells {
    pub(super) max: Number,
    pub(super) min: Number,
    /// As it is printed.
    pub(super) average: String,
    pub(super) sum_of_squares: f64,
    pub(super) n_elements: u64,
    pub(super) n_nan: u64,
    pub(super) n_neg_inf: u64,
    pub(super) n_pos_inf: u64,
}

/// [`Cells`] of a table of chosen columns.
pub(super) struct AnyCells(pub(super) Option<Cells>);

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
pub(super) fn plain(tensor: Observed<'_>) -> Arc<Option<Cells>> {
    tensor.keep(|tensor| of_bytes(tensor.dtype(), tensor.view().bytes, tensor.non_finite()))
}

/// The cells of a table of chosen columns, for every type whose elements are numbers.
pub(super) fn any(tensor: Observed<'_>) -> Arc<AnyCells> {
    tensor.keep(|tensor| AnyCells(of_any(tensor)))
}

fn of_any(tensor: Observed<'_>) -> Option<Cells> {
    let dtype = tensor.dtype();
    // Opaque bytes decode to themselves, but they are no numbers.
    if matches!(
        dtype,
        DType::Undefined | DType::Dual | DType::Variant | DType::HiF4Scale
    ) {
        return None;
    }
    let view = tensor.view();
    let decoded = decode(dtype, view.shape, view.bytes).ok()?;
    let counts = match decoded.dtype == dtype {
        true => tensor.non_finite(),
        false => non_finite(TensorView {
            dtype: decoded.dtype,
            shape: view.shape,
            layout: Layout::Nd,
            bytes: &decoded.bytes,
        }),
    };
    of_bytes(decoded.dtype, &decoded.bytes, counts)
}

fn of_bytes(dtype: DType, bytes: &[u8], counts: NonFinite) -> Option<Cells> {
    match dtype {
        DType::F32 => over::<f32>(bytes, counts),
        DType::F64 => over::<f64>(bytes, counts),
        DType::F16 => over::<half::f16>(bytes, counts),
        DType::I8 => over::<i8>(bytes, counts),
        DType::U8 => over::<u8>(bytes, counts),
        DType::Bool => over::<bool>(bytes, counts),
        DType::I16 => over::<i16>(bytes, counts),
        DType::U16 => over::<u16>(bytes, counts),
        DType::I32 => over::<i32>(bytes, counts),
        DType::U32 => over::<u32>(bytes, counts),
        DType::I64 => over::<i64>(bytes, counts),
        DType::U64 => over::<u64>(bytes, counts),
        _ => None,
    }
}

/// Bytes after the last whole element are passed over.
fn over<E: Element>(bytes: &[u8], counts: NonFinite) -> Option<Cells> {
    let first = *E::blocks(bytes).next()?.as_slice().first()?;
    let mut max = [first; LANES];
    let mut min = [first; LANES];
    let mut sums = Sums::default();
    for block in E::blocks(bytes) {
        let (groups, rest) = block.as_slice().as_chunks::<LANES>();
        for group in groups {
            for lane in 0..LANES {
                max[lane] = greater(max[lane], group[lane]);
                min[lane] = smaller(min[lane], group[lane]);
            }
        }
        for &x in rest {
            max[0] = greater(max[0], x);
            min[0] = smaller(min[0], x);
        }
        sums.add(block.as_slice(), E::value);
    }
    let max = first_zero::<E>(bytes, max.into_iter().reduce(greater)?);
    let min = first_zero::<E>(bytes, min.into_iter().reduce(smaller)?);
    let average = match (counts.n_neg_inf > 0, counts.n_pos_inf > 0) {
        // Infinities of one sign make the mean NaN on the way; the table says what it tends to.
        (true, false) => general(f64::NEG_INFINITY),
        (false, true) => general(f64::INFINITY),
        (true, true) => general(f64::NAN),
        (false, false) if counts.n_nan > 0 => general(f64::NAN),
        (false, false) => {
            let magnitude = E::value(max).abs().max(E::value(min).abs());
            sums.mean_text(magnitude)
                .unwrap_or_else(|| general(running_mean::<E>(bytes)))
        }
    };
    Some(Cells {
        max: E::number(max),
        min: E::number(min),
        average,
        sum_of_squares: sums.of_squares(),
        n_elements: (bytes.len() / E::WIDTH) as u64,
        n_nan: counts.n_nan,
        n_neg_inf: counts.n_neg_inf,
        n_pos_inf: counts.n_pos_inf,
    })
}

/// The average by its rule, element after element.
fn running_mean<E: Element>(bytes: &[u8]) -> f64 {
    let (mut mean, mut n) = (0.0_f64, 0.0_f64);
    for block in E::blocks(bytes) {
        for &x in block.as_slice() {
            n += 1.0;
            mean += (E::value(x) - mean) / n;
        }
    }
    mean
}

fn greater<T: PartialOrd>(kept: T, x: T) -> T {
    if x > kept { x } else { kept }
}

fn smaller<T: PartialOrd>(kept: T, x: T) -> T {
    if x < kept { x } else { kept }
}

/// The first of the elements that are zero, if `extreme` is one of them: they may differ in sign.
fn first_zero<E: Element>(bytes: &[u8], extreme: E::Value) -> E::Value {
    if E::value(extreme) != 0.0 {
        return extreme;
    }
    let is_zero = |x: &E::Value| E::value(*x) == 0.0;
    let found = E::blocks(bytes).find_map(|block| block.as_slice().iter().copied().find(is_zero));
    found.unwrap_or(extreme)
}
