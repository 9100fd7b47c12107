//! numpy's sums.
//!
//! Up to 128 elements are added in eight running sums; longer arrays are split in two at a multiple
//! of eight. The order is fixed, so results do not depend on the processor.

use std::ops::Add;

pub(super) const LANES: usize = 8;
const BLOCK: usize = 128;
/// Number of elements that are converted to another type at a time before the addition.
const BUFFER: usize = 8192;

/// The sum of `n` values.
pub(super) fn pairwise(n: usize, value: impl Fn(usize) -> f32) -> f32 {
    0.0 + part(0, n, &value)
}

/// The sum of `n` values, available eight at a time.
pub(super) fn pairwise_lanes(
    n: usize,
    value: impl Fn(usize) -> f32,
    values: impl Fn(usize) -> [f32; LANES],
) -> f32 {
    0.0 + parts(0, n, &value, &values)
}

/// The sum of `n` values.
pub(super) fn pairwise_f64(n: usize, value: impl Fn(usize) -> f64) -> f64 {
    0.0 + part(0, n, &value)
}

/// The sum of `float32` elements that are added as `float64`.
pub(super) fn sum_of_f32_as_f64(elements: &[f32]) -> f64 {
    let buffers = elements.chunks(BUFFER);
    buffers.fold(0.0, |sum, buffer| {
        sum + part(0, buffer.len(), &|i| f64::from(buffer[i]))
    })
}

fn part<T, F>(start: usize, n: usize, value: &F) -> T
where
    T: Copy + Add<Output = T> + Default,
    F: Fn(usize) -> T,
{
    parts(start, n, value, &|start| {
        std::array::from_fn(|lane| value(start + lane))
    })
}

fn parts<T, F, G>(start: usize, n: usize, value: &F, values: &G) -> T
where
    T: Copy + Add<Output = T> + Default,
    F: Fn(usize) -> T,
    G: Fn(usize) -> [T; LANES],
{
    if n < LANES {
        return (start..start + n).fold(T::default(), |sum, i| sum + value(i));
    }
    if n > BLOCK {
        let half = n / 2 - n / 2 % LANES;
        return parts(start, half, value, values) + parts(start + half, n - half, value, values);
    }
    let mut lanes = values(start);
    let n_whole = n - n % LANES;
    for i in (LANES..n_whole).step_by(LANES) {
        for (sum, value) in lanes.iter_mut().zip(values(start + i)) {
            *sum = *sum + value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    (start + n_whole..start + n).fold(sum, |sum, i| sum + value(i))
}
