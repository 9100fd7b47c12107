//! Maximum, minimum and mean, rounded as numpy rounds them.

use half::f16;
use opscope_tensor::DType;

use super::super::array::{Array, Order};
use super::scalar::{complex, real};

/// numpy converts this many elements at a time before it adds them.
const CHUNK: usize = 8192;
/// Up to this many elements are added in one loop.
const PAIRWISE_MAX: usize = 128;
/// Sums that run side by side in that loop.
const LANES: usize = 8;

/// The texts of maximum, minimum and mean, or `None` if there are no elements.
pub(super) fn measure(array: &Array<'_>) -> Option<[String; 3]> {
    let bytes = array.bytes_in_order(Order::C);
    let bytes = &*bytes;
    if bytes.is_empty() {
        return None;
    }
    Some(match array.dtype() {
        DType::F16 => {
            let values: Vec<f32> = read(bytes, |b| f16::from_le_bytes(b).to_f32());
            let sum = chunked_sum(&values);
            let [max, min] = extremes(&values).map(|value| real(f16::from_f32(value)));
            [max, min, real(f16::from_f32(mean_f32(sum, values.len())))]
        }
        DType::F32 => {
            let values: Vec<f32> = read(bytes, f32::from_le_bytes);
            let sum = pairwise_sum(&values);
            let [max, min] = extremes(&values).map(real);
            [max, min, real(mean_f32(sum, values.len()))]
        }
        DType::F64 => {
            let values: Vec<f64> = read(bytes, f64::from_le_bytes);
            let sum = pairwise_sum(&values);
            let [max, min] = extremes(&values).map(real);
            [max, min, real(sum / values.len() as f64)]
        }
        DType::Bool => {
            let n_true = bytes.iter().filter(|&&b| b != 0).count();
            let name = |is_true: bool| if is_true { "True" } else { "False" }.to_owned();
            let mean = real(n_true as f64 / bytes.len() as f64);
            [name(n_true > 0), name(n_true == bytes.len()), mean]
        }
        DType::C64 => complex_f32(bytes),
        DType::C128 => complex_f64(bytes),
        DType::I8 => integers(&read(bytes, i8::from_le_bytes)),
        DType::U8 => integers(bytes),
        DType::I16 => integers(&read(bytes, i16::from_le_bytes)),
        DType::U16 => integers(&read(bytes, u16::from_le_bytes)),
        DType::I32 => integers(&read(bytes, i32::from_le_bytes)),
        DType::U32 => integers(&read(bytes, u32::from_le_bytes)),
        DType::I64 => integers(&read(bytes, i64::from_le_bytes)),
        DType::U64 => integers(&read(bytes, u64::from_le_bytes)),
        _ => return None,
    })
}

fn read<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|&chunk| value(chunk))
        .collect()
}

fn integers<T: Copy + Ord + ToString + Into<i128>>(values: &[T]) -> [String; 3] {
    let text = |value: Option<&T>| value.map(T::to_string).unwrap_or_default();
    let doubles: Vec<f64> = values.iter().map(|&value| value.into() as f64).collect();
    let mean = chunked_sum(&doubles) / values.len() as f64;
    [
        text(values.iter().max()),
        text(values.iter().min()),
        real(mean),
    ]
}

/// Divides as numpy does: in double precision, then rounded.
fn mean_f32(sum: f32, n: usize) -> f32 {
    (f64::from(sum) / n as f64) as f32
}

/// Maximum and minimum; NaN if there is one. Of equal numbers the last one counts.
fn extremes<T: Copy + PartialOrd>(values: &[T]) -> [T; 2] {
    let first = values[0];
    let is_nan = |value: T| value.partial_cmp(&value).is_none();
    let pick = |keeps: fn(&T, &T) -> bool| {
        values.iter().fold(first, |best, &value| {
            if is_nan(best) || keeps(&best, &value) {
                best
            } else {
                value
            }
        })
    };
    [pick(T::gt), pick(T::lt)]
}

/// What sums need.
trait Sum: Copy + std::ops::Add<Output = Self> {
    const NEGATIVE_ZERO: Self;
    const ZERO: Self;
}

impl Sum for f32 {
    const NEGATIVE_ZERO: f32 = -0.0;
    const ZERO: f32 = 0.0;
}

impl Sum for f64 {
    const NEGATIVE_ZERO: f64 = -0.0;
    const ZERO: f64 = 0.0;
}

/// numpy's sum of elements that it converts first.
fn chunked_sum<T: Sum>(values: &[T]) -> T {
    values
        .chunks(CHUNK)
        .fold(T::ZERO, |sum, chunk| sum + pairs(chunk))
}

/// numpy's sum of elements that it takes as they are.
fn pairwise_sum<T: Sum>(values: &[T]) -> T {
    T::ZERO + pairs(values)
}

/// Halves are added apart, down to short runs.
fn pairs<T: Sum>(values: &[T]) -> T {
    let n = values.len();
    if n < LANES {
        return values
            .iter()
            .fold(T::NEGATIVE_ZERO, |sum, &value| sum + value);
    }
    if n > PAIRWISE_MAX {
        let half = n / 2 - n / 2 % LANES;
        return pairs(&values[..half]) + pairs(&values[half..]);
    }
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = rows[0];
    for row in &rows[1..] {
        for (lane, &value) in lanes.iter_mut().zip(row) {
            *lane = *lane + value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(sum, |sum, &value| sum + value)
}

fn complex_f32(bytes: &[u8]) -> [String; 3] {
    let values: Vec<f32> = read(bytes, f32::from_le_bytes);
    let (pairs, _) = values.as_chunks::<2>();
    let [max, min] = complex_extremes(pairs).map(|[re, im]| complex(re, im));
    let mean = complex_mean(complex_sum(pairs).map(f64::from), pairs.len()).map(|m| m as f32);
    [max, min, complex(mean[0], mean[1])]
}

fn complex_f64(bytes: &[u8]) -> [String; 3] {
    let values: Vec<f64> = read(bytes, f64::from_le_bytes);
    let (pairs, _) = values.as_chunks::<2>();
    let [max, min] = complex_extremes(pairs).map(|[re, im]| complex(re, im));
    let mean = complex_mean(complex_sum(pairs), pairs.len());
    [max, min, complex(mean[0], mean[1])]
}

/// numpy divides by the complex number `n + 0j`, so an infinite part makes the other one NaN.
fn complex_mean([re, im]: [f64; 2], n: usize) -> [f64; 2] {
    let n = n as f64;
    let (ratio, scale) = (0.0 / n, 1.0 / n);
    [(re + im * ratio) * scale, (im - re * ratio) * scale]
}

/// By real part, then by imaginary part; the first one that is NaN if there is one.
fn complex_extremes<T: Copy + PartialOrd>(values: &[[T; 2]]) -> [[T; 2]; 2] {
    let is_nan = |[re, im]: [T; 2]| re.partial_cmp(&re).is_none() || im.partial_cmp(&im).is_none();
    let pick = |keeps: fn(&[T; 2], &[T; 2]) -> bool| {
        values.iter().fold(values[0], |best, &value| {
            let stays = is_nan(best) || (!is_nan(value) && keeps(&best, &value));
            if stays { best } else { value }
        })
    };
    [pick(<[T; 2]>::ge), pick(<[T; 2]>::le)]
}

/// The sums of the real and of the imaginary parts. numpy's loop over complex numbers has half as
/// many lanes for each, which moves the boundaries between the halves.
fn complex_sum<T: Sum>(values: &[[T; 2]]) -> [T; 2] {
    let [re, im] = complex_pairs(values);
    [T::ZERO + re, T::ZERO + im]
}

fn complex_pairs<T: Sum>(values: &[[T; 2]]) -> [T; 2] {
    const PAIR_LANES: usize = LANES / 2;
    let n = values.len();
    let add = |a: [T; 2], b: [T; 2]| [a[0] + b[0], a[1] + b[1]];
    if n < PAIR_LANES {
        return values
            .iter()
            .fold([T::NEGATIVE_ZERO; 2], |sum, &value| add(sum, value));
    }
    if n > PAIRWISE_MAX / 2 {
        let half = n / 2 - n / 2 % PAIR_LANES;
        return add(
            complex_pairs(&values[..half]),
            complex_pairs(&values[half..]),
        );
    }
    let (rows, rest) = values.as_chunks::<PAIR_LANES>();
    let mut lanes = rows[0];
    for row in &rows[1..] {
        for (lane, &value) in lanes.iter_mut().zip(row) {
            *lane = add(*lane, value);
        }
    }
    let [a, b, c, d] = lanes;
    rest.iter()
        .fold(add(add(a, b), add(c, d)), |sum, &value| add(sum, value))
}

#[cfg(test)]
mod tests;
