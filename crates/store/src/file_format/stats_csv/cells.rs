//! The numbers of one row.
//!
//! Maximum and minimum begin with the first element and give way to what is greater or smaller, so
//! a NaN in first place stays and elsewhere never counts, and of zeros of both signs the first one
//! stays. The average is the one of [`mean`].

mod element;
mod mean;
mod side_by_side;

use std::fmt;
use std::sync::Arc;

use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{
    DType, NonFinite, NumpyType, StatsAndWeight, TensorObserver, TensorView, non_finite,
    weighed_stats,
};

use self::element::CellElement;
use self::mean::MeanSums;
use self::side_by_side::running_means;
use super::number::general;

/// Elements that are decoded at once.
const BLOCK: usize = 1024;
/// Partial results side by side, so that a vector unit can carry them.
const LANES: usize = 8;
/// Magnitudes whose squares, added up, neither overflow nor lose bits that show.
const SQUARES: std::ops::Range<f64> = 1e-140..1e140;

/// Statistics of a tensor's elements in a row.
pub(super) struct StatsCells {
    pub(super) max: PrintedNumber,
    pub(super) min: PrintedNumber,
    /// A number that prints as the average does.
    pub(super) average: f64,
    pub(super) l2: f64,
    pub(super) n_elements: u64,
    pub(super) n_nan: u64,
    pub(super) n_neg_inf: u64,
    pub(super) n_pos_inf: u64,
}

/// [`StatsCells`] of a table of chosen columns.
pub(super) struct AnyCells(pub(super) Option<StatsCells>);

/// An element, as it is printed.
#[derive(Clone, Copy)]
pub(super) enum PrintedNumber {
    Float(f64),
    Signed(i64),
    Unsigned(u64),
}

impl fmt::Display for PrintedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrintedNumber::Float(value) => f.write_str(&general(*value)),
            PrintedNumber::Signed(value) => value.fmt(f),
            PrintedNumber::Unsigned(value) => value.fmt(f),
        }
    }
}

/// The order of a tensor's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementOrder {
    /// The order in which the rules of the cells go through them.
    RowMajor,
    /// Another one, with the same element first.
    Permuted,
}

/// Longest tensor, in elements, whose average is computed by its rule while the model waits.
const N_RULE_AT_ONCE_MAX: usize = 1024;

/// Leaves the cells of the plain table in the tensor's memo if one pass over the elements is
/// enough, and returns whether it was.
pub(super) fn reduce_plain(tensor: TensorObserver<'_>, order: ElementOrder) -> bool {
    if tensor.has_kept::<Option<StatsCells>>() {
        return true;
    }
    match tell(tensor, order) {
        Some(cells) => {
            tensor.keep(|_| cells);
            true
        }
        None => false,
    }
}

/// [`reduce_plain`] for a table of chosen columns.
pub(super) fn reduce_any(tensor: TensorObserver<'_>, order: ElementOrder) -> bool {
    if tensor.has_kept::<AnyCells>() {
        return true;
    }
    let is_float = matches!(tensor.dtype(), DType::F16 | DType::F32 | DType::F64);
    let told = match (is_float, order) {
        (true, _) => tell(tensor, order).map(AnyCells),
        (false, ElementOrder::RowMajor) => Some(AnyCells(of_any(tensor))),
        (false, ElementOrder::Permuted) => None,
    };
    match told {
        Some(cells) => {
            tensor.keep(|_| cells);
            true
        }
        None => false,
    }
}

/// Leaves the cells of floats in their memos, where the average can only be had by its rule. Those
/// of several tensors are computed in the time of one. `is_any` says that the table has chosen
/// columns.
pub(super) fn reduce_together(tensors: &[TensorObserver<'_>], is_any: bool) {
    let by_rule = tensors.iter().filter(|tensor| {
        let is_float = matches!(tensor.dtype(), DType::F16 | DType::F32 | DType::F64);
        let is_kept = if is_any {
            tensor.has_kept::<AnyCells>()
        } else {
            tensor.has_kept::<Option<StatsCells>>()
        };
        is_float
            && !is_kept
            && (tensor.weighed_stats())
                .is_ok_and(|known| has_squares(known) && !is_average_told(known))
    });
    let (tensors, views): (Vec<_>, Vec<TensorView<'_>>) = by_rule
        .filter_map(|&tensor| Some((tensor, tensor.view().ok()?)))
        .unzip();
    let means = running_means(&views);
    for ((tensor, view), mean) in tensors.iter().zip(&views).zip(means) {
        let Ok(known) = tensor.weighed_stats() else {
            continue;
        };
        let cells = of_floats_with(*view, known, Some(mean));
        if is_any {
            drop(tensor.keep(|_| AnyCells(cells)));
        } else {
            drop(tensor.keep(|_| cells));
        }
    }
}

/// The cells, if they are known without the rule of the average; types other than floats are quick.
fn tell(tensor: TensorObserver<'_>, order: ElementOrder) -> Option<Option<StatsCells>> {
    let view = tensor.view().ok()?;
    let known = match (tensor.dtype(), order) {
        (DType::F16 | DType::F32 | DType::F64, _) => match tensor.weighed_stats() {
            Ok(known) => known,
            Err(_) => return Some(None),
        },
        (_, ElementOrder::RowMajor) => return Some(of_tensor(tensor)),
        (_, ElementOrder::Permuted) => return None,
    };
    let is_short = view.shape.n_elements() <= N_RULE_AT_ONCE_MAX;
    match order {
        ElementOrder::RowMajor if is_short || is_average_told(known) => {
            Some(of_floats(view, known))
        }
        ElementOrder::RowMajor => None,
        ElementOrder::Permuted => {
            let stats = &known.stats;
            // A sum in another order can be off by what all magnitudes together can lose.
            let known = StatsAndWeight {
                prefix_weight: stats.counts.n_elements as f64 * stats.l1,
                ..*known
            };
            // With zeros of both signs the first one counts, which the memo does not know.
            let has_zero_extreme = stats.max == 0.0 || stats.min == 0.0;
            (!has_zero_extreme && is_average_told(&known)).then(|| of_floats(view, &known))
        }
    }
}

/// Whether [`of_floats`] does without the rule of the average.
fn is_average_told(known: &StatsAndWeight) -> bool {
    let counts = counts(known);
    let is_finite = counts.n_nan + counts.n_neg_inf + counts.n_pos_inf == 0;
    has_squares(known) && (!is_finite || MeanSums::of_stats(known).mean(magnitude(known)).is_some())
}

/// Whether squares of the elements neither overflow nor lose bits, so that the sum in the
/// statistics is of use.
fn has_squares(known: &StatsAndWeight) -> bool {
    let magnitude = magnitude(known);
    magnitude == 0.0 || SQUARES.contains(&magnitude)
}

/// The cells of the plain table; `None` for types that it leaves empty and for tensors without
/// elements.
pub(super) fn plain(tensor: TensorObserver<'_>) -> Arc<Option<StatsCells>> {
    tensor.keep(of_tensor)
}

fn of_tensor(tensor: TensorObserver<'_>) -> Option<StatsCells> {
    let view = tensor.view().ok()?;
    match tensor.dtype() {
        DType::F16 | DType::F32 | DType::F64 => of_floats(view, tensor.weighed_stats().ok()?),
        dtype => of_bytes(dtype, view.bytes, tensor.non_finite()),
    }
}

/// The cells of a table of chosen columns, for every type whose elements are numbers.
pub(super) fn any(tensor: TensorObserver<'_>) -> Arc<AnyCells> {
    tensor.keep(|tensor| AnyCells(of_any(tensor)))
}

fn of_any(tensor: TensorObserver<'_>) -> Option<StatsCells> {
    let dtype = tensor.dtype();
    // Opaque bytes decode to themselves, but they are not numbers.
    if matches!(
        dtype,
        DType::Undefined | DType::Dual | DType::Variant | DType::HiF4Scale
    ) {
        return None;
    }
    let view = tensor.view().ok()?;
    let decoded = decode(dtype, view.shape, view.bytes).ok()?;
    // Where decoding changes nothing, the tensor's memo may have its statistics already.
    if decoded.dtype == dtype {
        return of_tensor(tensor);
    }
    let view = TensorView::new(decoded.dtype, view.shape, &decoded.bytes);
    match decoded.dtype {
        DType::F16 | DType::F32 | DType::F64 => of_floats(view, &weighed_stats(view).ok()?),
        dtype => of_bytes(dtype, view.bytes, non_finite(view)),
    }
}

/// The cells of floats, by their statistics.
fn of_floats(view: TensorView<'_>, known: &StatsAndWeight) -> Option<StatsCells> {
    of_floats_with(view, known, None)
}

/// [`of_floats`] where the average by its rule is known.
fn of_floats_with(
    view: TensorView<'_>,
    known: &StatsAndWeight,
    mean: Option<f64>,
) -> Option<StatsCells> {
    let bytes = view.bytes;
    match view.dtype {
        DType::F16 => by_stats::<half::f16>(bytes, known, mean),
        DType::F32 => by_stats::<f32>(bytes, known, mean),
        DType::F64 if has_squares(known) => by_stats::<f64>(bytes, known, mean),
        // Only doubles can be so large, or so small, that their squares are of no use.
        DType::F64 => over::<f64>(bytes, counts(known)),
        _ => None,
    }
}

fn counts(known: &StatsAndWeight) -> NonFinite {
    NonFinite {
        n_nan: known.stats.counts.n_nan,
        n_pos_inf: known.stats.counts.n_pos_inf,
        n_neg_inf: known.stats.counts.n_neg_inf,
    }
}

fn magnitude(known: &StatsAndWeight) -> f64 {
    known.stats.max.abs().max(known.stats.min.abs())
}

/// Makes a second pass only for results that statistics lack: which one comes first, and the rule's
/// rounding of a mean that is nearly a tie, unless `mean` is that.
fn by_stats<E: CellElement<Value: Into<f64>>>(
    bytes: &[u8],
    known: &StatsAndWeight,
    mean: Option<f64>,
) -> Option<StatsCells> {
    let first = *E::blocks(bytes).next()?.as_slice().first()?;
    let (counts, stats) = (counts(known), &known.stats);
    // Statistics pass over NaN, which by the vendor's rule stays if it comes first, and they do not
    // say which of two zeros came first.
    let extreme = |found: f64| match (first.into().is_nan(), found == 0.0) {
        (true, _) => PrintedNumber::Float(f64::NAN),
        (false, true) => E::number(first_zero::<E>(bytes, E::Value::default())),
        (false, false) => PrintedNumber::Float(found),
    };
    let average = average(counts, || {
        let told = MeanSums::of_stats(known).mean(magnitude(known));
        told.or(mean).unwrap_or_else(|| running_mean::<E>(bytes))
    });
    Some(StatsCells {
        max: extreme(stats.max),
        min: extreme(stats.min),
        average,
        // Statistics pass over NaN, while the vendor's sum of squares does not.
        l2: if counts.n_nan > 0 { f64::NAN } else { stats.l2 },
        n_elements: (bytes.len() / E::WIDTH) as u64,
        n_nan: counts.n_nan,
        n_neg_inf: counts.n_neg_inf,
        n_pos_inf: counts.n_pos_inf,
    })
}

/// The average, of finite elements `of_finite`.
fn average(counts: NonFinite, of_finite: impl FnOnce() -> f64) -> f64 {
    match (counts.n_neg_inf > 0, counts.n_pos_inf > 0) {
        // Infinities of one sign make the mean NaN on the way; the table says what it tends to.
        (true, false) => f64::NEG_INFINITY,
        (false, true) => f64::INFINITY,
        (true, true) => f64::NAN,
        (false, false) if counts.n_nan > 0 => f64::NAN,
        (false, false) => of_finite(),
    }
}

fn of_bytes(dtype: DType, bytes: &[u8], counts: NonFinite) -> Option<StatsCells> {
    match dtype.as_numpy()? {
        NumpyType::I8 => over::<i8>(bytes, counts),
        NumpyType::U8 => over::<u8>(bytes, counts),
        NumpyType::Bool => over::<bool>(bytes, counts),
        NumpyType::I16 => over::<i16>(bytes, counts),
        NumpyType::U16 => over::<u16>(bytes, counts),
        NumpyType::I32 => over::<i32>(bytes, counts),
        NumpyType::U32 => over::<u32>(bytes, counts),
        NumpyType::I64 => over::<i64>(bytes, counts),
        NumpyType::U64 => over::<u64>(bytes, counts),
        NumpyType::F16 | NumpyType::F32 | NumpyType::F64 | NumpyType::C64 | NumpyType::C128 => None,
    }
}

/// Bytes after the last whole element are ignored.
fn over<E: CellElement>(bytes: &[u8], counts: NonFinite) -> Option<StatsCells> {
    let first = *E::blocks(bytes).next()?.as_slice().first()?;
    // Each lane begins with element 0, so a NaN in first place stays in all of them.
    let mut max = [first; LANES];
    let mut min = [first; LANES];
    let mut sums = MeanSums::default();
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
    // Lanes lose which zero came first, and that decides between `0` and `-0`.
    let max = first_zero::<E>(bytes, max.into_iter().reduce(greater)?);
    let min = first_zero::<E>(bytes, min.into_iter().reduce(smaller)?);
    let average = average(counts, || {
        let magnitude = E::value(max).abs().max(E::value(min).abs());
        let told = sums.mean(magnitude);
        told.unwrap_or_else(|| running_mean::<E>(bytes))
    });
    Some(StatsCells {
        max: E::number(max),
        min: E::number(min),
        average,
        l2: sums.of_squares().sqrt(),
        n_elements: (bytes.len() / E::WIDTH) as u64,
        n_nan: counts.n_nan,
        n_neg_inf: counts.n_neg_inf,
        n_pos_inf: counts.n_pos_inf,
    })
}

/// The average by its rule, element after element.
fn running_mean<E: CellElement>(bytes: &[u8]) -> f64 {
    let (mut mean, mut n) = (0.0_f64, 0.0_f64);
    for block in E::blocks(bytes) {
        for &x in block.as_slice() {
            n += 1.0;
            // This is the vendor's rule, operation by operation; any other form rounds differently.
            mean += (E::value(x) - mean) / n;
        }
    }
    mean
}

fn greater<T: PartialOrd>(kept: T, x: T) -> T {
    // `f64::max` would drop a NaN in first place.
    if x > kept { x } else { kept }
}

fn smaller<T: PartialOrd>(kept: T, x: T) -> T {
    if x < kept { x } else { kept }
}

/// The first of the elements that are zero, if `extreme` is one of them: they may differ in sign.
fn first_zero<E: CellElement>(bytes: &[u8], extreme: E::Value) -> E::Value {
    if E::value(extreme) != 0.0 {
        return extreme;
    }
    let zero = E::blocks(bytes).find_map(|block| {
        let mut values = block.as_slice().iter().copied();
        values.find(|x| E::value(*x) == 0.0)
    });
    zero.unwrap_or(extreme)
}
