//! Distances of tensors that a mask hides.
//!
//! Attention adds a large negative number to the scores that must not count: -1e4, -1e9 or the
//! lowest number of the dtype. Next to it the scores themselves vanish in every norm, and two tensors
//! of which all scores differ would agree.

use opscope_tensor::difference::{self, DifferenceError, DifferenceOptions, TensorDifference};
use opscope_tensor::{DType, TensorView};

use crate::element::float;

/// The largest number that is taken for one that a mask made.
const LARGEST: f64 = -9e3;
/// Numbers below this are the lowest of a dtype: float32's and bfloat16's differ.
const LOWEST: f64 = -1e30;
/// The lowest number of float16.
const LOWEST_F16: f64 = -65504.0;
/// How many times larger than all others masked numbers are.
const TIMES: f64 = 20.0;

/// Whether extremes are those of a mask and of scores that vanish next to it.
pub(crate) fn is_masked(min: f64, max: f64) -> bool {
    min <= LARGEST && max.abs() * TIMES <= -min
}

/// Whether extremes of two tensors are those of masks, one of them made of the lowest number of a
/// dtype, so that their size means nothing.
pub(crate) fn are_masks(extremes: [[f64; 2]; 2]) -> bool {
    extremes.iter().all(|[min, max]| is_masked(*min, *max))
        && extremes.iter().any(|[min, _]| is_lowest(*min))
}

/// The difference of two tensors, with relative distances of what a mask leaves.
///
/// # Errors
/// As [`difference::difference`].
pub(crate) fn difference(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    options: DifferenceOptions,
) -> Result<TensorDifference, DifferenceError> {
    let mut found = difference::difference(target, golden, options)?;
    look_behind(&mut found, [target, golden]);
    Ok(found)
}

/// Whether a mask may hide differences of two tensors, by their difference alone.
pub(super) fn may_be_masked(found: &TensorDifference, dtypes: [DType; 2]) -> bool {
    let lowest = [found.target.min, found.golden.min];
    let is_whole = found.n_finite == found.n && found.n_equal < found.n;
    let is_any = lowest.iter().all(|lowest| *lowest <= LARGEST);
    is_any && is_whole && dtypes.into_iter().all(is_float)
}

/// Measures what the mask leaves, and takes over the relative distances where they are larger.
fn look_behind(found: &mut TensorDifference, [a, b]: [TensorView<'_>; 2]) {
    if !may_be_masked(found, [a.dtype, b.dtype]) {
        return;
    }
    let lowest = [found.target.min, found.golden.min];
    let [is_own, is_other] = lowest.map(|lowest| move |value: f64| value <= lowest / 2.0);
    // A mask on one side alone is a separate difference.
    let mut largest = 0.0_f64;
    for (own, other) in numbers(a).zip(numbers(b)) {
        if is_own(own) != is_other(other) {
            return;
        }
        if !is_other(other) {
            largest = largest.max(own.abs()).max(other.abs());
        }
    }
    // Numbers of all sizes are not a mask.
    if lowest.iter().any(|lowest| largest * TIMES > -lowest) {
        return;
    }
    let bytes = [without(a, is_own), without(b, is_other)];
    let views = [a, b].into_iter().zip(&bytes);
    let views = views.map(|(view, bytes)| TensorView { bytes, ..view });
    let [own, other] = &views.collect::<Vec<_>>()[..] else {
        return;
    };
    let Ok(behind) = difference::difference(*own, *other, DifferenceOptions::default()) else {
        return;
    };
    if lowest.iter().any(|lowest| is_lowest(*lowest)) {
        // The distance of two masks is none, though they are not the same.
        *found = TensorDifference {
            n_equal: found.n_equal,
            is_identical: found.is_identical,
            target: found.target,
            golden: found.golden,
            ..behind
        };
    } else if behind.rel_l2 > found.rel_l2 {
        found.rel_l2 = behind.rel_l2;
        found.cosine = behind.cosine;
        found.snr_db = behind.snr_db;
        found.psnr_db = behind.psnr_db;
    }
}

/// Whether a number is the lowest of a dtype, and means no quantity.
fn is_lowest(number: f64) -> bool {
    number <= LOWEST || number == LOWEST_F16
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

fn numbers(view: TensorView<'_>) -> impl Iterator<Item = f64> {
    let elements = view.bytes.chunks_exact(view.dtype.bytes().unwrap_or(1));
    elements.map(move |bytes| float(view.dtype, bytes))
}

/// The bytes with zeros in place of masked elements.
fn without(view: TensorView<'_>, is_masked: impl Fn(f64) -> bool) -> Vec<u8> {
    let mut bytes = view.bytes.to_vec();
    let width = view.dtype.bytes().unwrap_or(1);
    for (element, value) in bytes.chunks_exact_mut(width).zip(numbers(view)) {
        if is_masked(value) {
            element.fill(0);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Shape;

    use super::*;

    fn distance(target: &[f32], golden: &[f32]) -> f64 {
        let bytes = [target, golden].map(|values| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            bytes.collect::<Vec<u8>>()
        });
        let shape = Shape::new(vec![target.len()]).expect("a small shape");
        let [a, b] = [0, 1].map(|i| TensorView::new(DType::F32, &shape, &bytes[i]));
        let found = difference(a, b, DifferenceOptions::default());
        found.expect("equal lengths").rel_l2
    }

    #[test]
    fn scores_next_to_a_mask_are_measured_by_themselves() {
        for mask in [-1e4, -1e9, f32::MIN] {
            let golden = [1.0, 2.0, mask, mask];
            assert!(distance(&[3.0, 2.0, mask, mask], &golden) > 0.5, "{mask}");
            // A mask on one side alone, or a number among large ones, is measured as it is.
            assert!(distance(&[mask, 2.0, mask, mask], &golden) > 0.1, "{mask}");
            assert_eq!(distance(&golden, &golden), 0.0);
        }
        // The lowest number of a dtype hides what any other mask does.
        assert_eq!(distance(&[1.0, 2.0, -65504.0], &[1.0, 2.0, f32::MIN]), 0.0);
        assert_eq!(distance(&[1.0, 2.0, -1e4], &[1.0, 2.0, f32::MIN]), 0.0);
        assert!(distance(&[1.0, 2.0, -2e4], &[1.0, 2.0, -1e4]) > 0.1);
        let golden = [-700.0, -8e3, -1e4];
        assert!(distance(&[-701.0, -8e3, -1e4], &golden) < 1e-3);
    }
}
