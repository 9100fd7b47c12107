//! Elements that are lost: clipped, masked, cut off, or no numbers.

use half::f16;
use opscope_tensor::{DType, largest_finite};

use super::TensorChange;
use super::elements::{ComparedElements, ElementPair, precision};

/// With fewer elements before a cut, equality may be chance.
const N_BEFORE_CUT_MIN: usize = 8;
/// Roundings by which elements may differ next to those that overflow.
const N_ROUNDINGS: f64 = 16.0;
/// Fewer clipped elements are not enough for a rule.
const N_CLIPPED_MIN: usize = 3;

/// Elements that are NaN or infinite and finite on the golden side; all others agree.
pub(super) fn non_finite(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let (mut n_nan, mut n_inf) = (0, 0);
    let differing = (0..pair.len()).filter(|&i| !pair.is_same(i, i));
    for i in differing {
        let (t, g) = (pair.target.at(i), pair.golden.at(i));
        if t.is_finite() || !g.is_finite() {
            return None;
        }
        n_nan += u64::from(t.is_nan());
        n_inf += u64::from(t.is_infinite());
    }
    (n_nan + n_inf > 0).then_some(TensorChange::NonFinite { n_nan, n_inf })
}

/// Infinite where golden's elements are beyond the largest number of the target's dtype, which ends
/// before golden's. All others agree up to `tolerance` or some roundings.
pub(super) fn overflow(
    target: &ComparedElements<'_>,
    golden: &ComparedElements<'_>,
    tolerance: f64,
) -> Option<TensorChange> {
    let [largest, reach] = [target, golden].map(|side| largest_finite(side.dtype()));
    let (largest, reach) = (largest?, reach?);
    let (rounding, _) = precision(target.dtype(), golden.dtype());
    if reach <= largest {
        return None;
    }
    let mut n = 0;
    let mut needed: f64 = 0.0;
    for i in 0..target.len() {
        let (t, g) = (target.at(i), golden.at(i));
        let slack = tolerance.max(N_ROUNDINGS * rounding * g.abs());
        if t.is_infinite() && g.is_finite() {
            // Computation in shorter steps may end just before the limit.
            if t.signum() != g.signum() || g.abs() + slack < largest {
                return None;
            }
            n += 1;
            needed = needed.max(g.abs());
        } else if (t - g).abs() > slack || t.is_nan() != g.is_nan() {
            return None;
        }
    }
    (n > 0 && needed > largest).then(|| TensorChange::Overflow {
        dtype: target.dtype().name().to_owned(),
        largest,
        needed,
        n,
    })
}

/// Limited to a range. Bounds that change nothing are none.
pub(super) fn clipped(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let [low, high] = pair.sums.t_ends;
    if low >= high {
        return None;
    }
    let is_clipped = pair.is_each(|t, g| {
        let e = g.clamp(low, high);
        pair.same.allows(t, e, e.abs())
    });
    if !is_clipped {
        return None;
    }
    let slack = pair.same.absolute;
    let elements = (0..pair.len()).map(|i| pair.golden.at(i));
    let [n_low, n_high] = elements.fold([0, 0], |[n_low, n_high], g| {
        let is_low = usize::from(g < low - slack);
        [n_low + is_low, n_high + usize::from(g > high + slack)]
    });
    (n_low + n_high >= N_CLIPPED_MIN).then(|| TensorChange::Clipped {
        low: (n_low > 0).then_some(low),
        high: (n_high > 0).then_some(high),
    })
}

/// One value above or below a diagonal of the last two axes, and nothing else differs.
pub(super) fn triangle(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let &[.., n_rows, n_columns] = pair.dims() else {
        return None;
    };
    let value = pair.target.at(pair.first_differing);
    if n_rows < 3 || n_columns < 3 || value.is_nan() {
        return None;
    }
    let distance = |i: usize| {
        let (row, column) = (i / n_columns % n_rows, i % n_columns);
        column as i64 - row as i64
    };
    let mut ends = [i64::MAX, i64::MIN];
    for i in 0..pair.len() {
        if !pair.is_same(i, i) {
            if pair.target.at(i) != value {
                return None;
            }
            ends = [ends[0].min(distance(i)), ends[1].max(distance(i))];
        }
    }
    let is_filled = |is_inside: &dyn Fn(i64) -> bool| {
        let mut inside = (0..pair.len()).filter(|&i| is_inside(distance(i)));
        inside.all(|i| pair.target.at(i) == value)
    };
    // The last element of a triangle is in a corner. Two diagonals at least, or it is none.
    let upper = ends[0] >= 0 && ends[1] == n_columns as i64 - 1 && ends[0] < ends[1];
    let lower = ends[1] <= 0 && ends[0] == 1 - n_rows as i64 && ends[0] < ends[1];
    let (is_upper, diagonal) = if upper && is_filled(&|d| d >= ends[0]) {
        (true, ends[0])
    } else if lower && is_filled(&|d| d <= ends[1]) {
        (false, ends[1])
    } else {
        return None;
    };
    Some(TensorChange::Triangle {
        is_upper,
        diagonal,
        value,
    })
}

/// Elements from one on, in memory order, are one value, or all others.
pub(super) fn cut_off(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let (n, n_equal) = (pair.len(), pair.first_differing);
    let row = pair.dims().last().copied().unwrap_or(1);
    let value = pair.target.at(n_equal);
    let is_filled = value.is_finite() && (n_equal..n).all(|i| pair.target.at(i) == value);
    // At the beginning of a row it is a part of the tensor.
    let is_within_row = pair.dims().len() > 1 && !n_equal.is_multiple_of(row.max(1));
    let is_apart = (n_equal..n).all(|i| !pair.is_same(i, i));
    if n_equal == 0 || n - n_equal < 2 || !(is_within_row || is_filled) {
        return None;
    }
    // Rows that are all zeros are better described as rows.
    let is_rest = is_filled && (is_within_row || pair.dims().len() == 1);
    (is_rest || (is_apart && is_within_row && n_equal.min(n - n_equal) >= N_BEFORE_CUT_MIN)).then(
        || TensorChange::CutOff {
            n_equal,
            value: is_filled.then_some(value),
        },
    )
}

/// The bytes of each float in the opposite order.
pub(super) fn byte_order(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dtype = pair.golden.dtype();
    // Where most are NaN nothing was compared.
    let n_finite = pair.sums.n as usize;
    let is_float = matches!(dtype, DType::F64 | DType::F32 | DType::F16);
    (is_float && dtype == pair.target.dtype() && n_finite > pair.len() / 2)
        .then_some(TensorChange::ByteOrder)
        .filter(|_| {
            pair.is_each(|t, g| {
                let e = swapped(g, dtype);
                t == e || (t.is_nan() && e.is_nan())
            })
        })
}

/// A float of this dtype with its bytes in the opposite order.
fn swapped(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(x.to_bits().swap_bytes()),
        DType::F32 => f64::from(f32::from_bits((x as f32).to_bits().swap_bytes())),
        DType::F16 => f16::from_bits(f16::from_f64(x).to_bits().swap_bytes()).to_f64(),
        _ => f64::NAN,
    }
}
