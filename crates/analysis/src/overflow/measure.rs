//! Maximum, minimum and mean, rounded as NumPy rounds them.

use half::f16;
use opscope_tensor::{DType, NumpyType};

use super::scalar::{complex, real};

/// NumPy converts elements in chunks of this size before adding them.
const CHUNK: usize = 8192;
/// Up to this many elements are added in one loop.
const PAIRWISE_MAX: usize = 128;
/// Number of parallel partial sums in that loop.
const LANES: usize = 8;

/// Maximum, minimum and mean as text, for elements of a NumPy dtype; `None` if there are no
/// elements.
pub(crate) fn measure(dtype: DType, bytes: &[u8]) -> Option<[String; 3]> {
    if bytes.is_empty() {
        return None;
    }
    Some(match dtype.as_numpy()? {
        NumpyType::F16 => {
            let (halves, value) = (elements(bytes), |b| f16::from_le_bytes(b).to_f32());
            let [max, min] = extremes(halves, value).map(|value| real(f16::from_f32(value)));
            // NumPy adds float16 as float32, converted chunk by chunk.
            let mean = mean_f32(chunked_sum(halves, value), halves.len());
            [max, min, real(f16::from_f32(mean))]
        }
        NumpyType::F32 => {
            let (singles, value) = (elements(bytes), f32::from_le_bytes);
            let mean = mean_f32(pairwise_sum(singles, value), singles.len());
            let [max, min] = extremes(singles, value).map(real);
            [max, min, real(mean)]
        }
        NumpyType::F64 => {
            let (doubles, value) = (elements(bytes), f64::from_le_bytes);
            let mean = pairwise_sum(doubles, value) / doubles.len() as f64;
            let [max, min] = extremes(doubles, value).map(real);
            [max, min, real(mean)]
        }
        NumpyType::Bool => {
            let n_true = bytes.iter().filter(|&&b| b != 0).count();
            let [max, min] = [n_true > 0, n_true == bytes.len()]
                .map(|is_true| if is_true { "True" } else { "False" }.to_owned());
            [max, min, real(n_true as f64 / bytes.len() as f64)]
        }
        NumpyType::C64 => {
            let pairs: &[[u8; 8]] = elements(bytes);
            let [max, min] = complex_extremes(pairs, |b| parts(b, f32::from_le_bytes))
                .map(|[re, im]| complex(re, im));
            let sum = complex_sum(pairs, |b| parts(b, f32::from_le_bytes)).map(f64::from);
            let [re, im] = complex_mean(sum, pairs.len()).map(|part| part as f32);
            [max, min, complex(re, im)]
        }
        NumpyType::C128 => {
            let pairs: &[[u8; 16]] = elements(bytes);
            let value = |b: [u8; 16]| parts(b, f64::from_le_bytes);
            let [max, min] = complex_extremes(pairs, value).map(|[re, im]| complex(re, im));
            let [re, im] = complex_mean(complex_sum(pairs, value), pairs.len());
            [max, min, complex(re, im)]
        }
        NumpyType::I8 => integers(elements(bytes), i8::from_le_bytes),
        NumpyType::U8 => integers(elements(bytes), u8::from_le_bytes),
        NumpyType::I16 => integers(elements(bytes), i16::from_le_bytes),
        NumpyType::U16 => integers(elements(bytes), u16::from_le_bytes),
        NumpyType::I32 => integers(elements(bytes), i32::from_le_bytes),
        NumpyType::U32 => integers(elements(bytes), u32::from_le_bytes),
        NumpyType::I64 => integers(elements(bytes), i64::from_le_bytes),
        NumpyType::U64 => integers(elements(bytes), u64::from_le_bytes),
    })
}

fn elements<const N: usize>(bytes: &[u8]) -> &[[u8; N]] {
    bytes.as_chunks().0
}

/// Real and imaginary parts.
fn parts<const N: usize, const M: usize, T>(bytes: [u8; M], value: fn([u8; N]) -> T) -> [T; 2] {
    let mut re = [0; N];
    let mut im = [0; N];
    re.copy_from_slice(&bytes[..N]);
    im.copy_from_slice(&bytes[N..]);
    [value(re), value(im)]
}

fn integers<const N: usize, T: Copy + Ord + ToString + Into<i128>>(
    elements: &[[u8; N]],
    value: fn([u8; N]) -> T,
) -> [String; 3] {
    let values = elements.iter().map(|&element| value(element));
    let [max, min] = [values.clone().max(), values.min()]
        .map(|value| value.map(|value| value.to_string()).unwrap_or_default());
    // NumPy adds integers as float64, so large ones are rounded first.
    let sum: f64 = chunked_sum(elements, |element| value(element).into() as f64);
    [max, min, real(sum / elements.len() as f64)]
}

/// Divides as NumPy does: in double precision, then rounded.
fn mean_f32(sum: f32, n: usize) -> f32 {
    (f64::from(sum) / n as f64) as f32
}

/// Maximum and minimum; NaN if any element is NaN. The last of equal numbers wins.
fn extremes<const N: usize, T: Copy + PartialOrd>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> T,
) -> [T; 2] {
    let values = elements.iter().map(|&element| value(element));
    [T::gt, T::lt].map(|stays: fn(&T, &T) -> bool| {
        let values = values.clone();
        let extreme = values.reduce(|best, value| {
            let is_nan = best.partial_cmp(&best).is_none();
            if is_nan || stays(&best, &value) {
                best
            } else {
                value
            }
        });
        extreme.unwrap_or_else(|| value(elements[0]))
    })
}

/// A float type with addition and negative zero.
trait SummableFloat: Copy + std::ops::Add<Output = Self> {
    const NEGATIVE_ZERO: Self;
    const ZERO: Self;
}

impl SummableFloat for f32 {
    const NEGATIVE_ZERO: f32 = -0.0;
    const ZERO: f32 = 0.0;
}

impl SummableFloat for f64 {
    const NEGATIVE_ZERO: f64 = -0.0;
    const ZERO: f64 = 0.0;
}

/// NumPy's sum of elements that it converts first.
fn chunked_sum<const N: usize, T: SummableFloat>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> T + Copy,
) -> T {
    elements
        .chunks(CHUNK)
        .fold(T::ZERO, |sum, chunk| sum + pairs(chunk, value))
}

/// NumPy's sum of elements without conversion.
fn pairwise_sum<const N: usize, T: SummableFloat>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> T + Copy,
) -> T {
    T::ZERO + pairs(elements, value)
}

/// Splits into halves and adds their sums, down to short runs.
fn pairs<const N: usize, T: SummableFloat>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> T + Copy,
) -> T {
    let n = elements.len();
    let add = |sum: T, &element: &[u8; N]| sum + value(element);
    if n < LANES {
        // NumPy starts short runs with -0, which is neutral for every number.
        return elements.iter().fold(T::NEGATIVE_ZERO, add);
    }
    if n > PAIRWISE_MAX {
        // NumPy splits at a multiple of the lanes; any other split would round differently.
        let half = n / 2 - n / 2 % LANES;
        return pairs(&elements[..half], value) + pairs(&elements[half..], value);
    }
    let (rows, rest) = elements.as_chunks::<LANES>();
    let mut lanes = rows[0].map(value);
    for row in &rows[1..] {
        for (lane, element) in lanes.iter_mut().zip(row) {
            *lane = add(*lane, element);
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    // NumPy's order, which determines the last bits.
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(sum, add)
}

/// NumPy divides by the complex number `n + 0j`, so an infinite part makes the other part NaN.
fn complex_mean([re, im]: [f64; 2], n: usize) -> [f64; 2] {
    let n = n as f64;
    let (ratio, scale) = (0.0 / n, 1.0 / n);
    [(re + im * ratio) * scale, (im - re * ratio) * scale]
}

/// Ordered by real part, then by imaginary part; the first element with a NaN if there is one.
fn complex_extremes<const N: usize, T: Copy + PartialOrd>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> [T; 2],
) -> [[T; 2]; 2] {
    let first = value(elements[0]);
    [<[T; 2]>::ge, <[T; 2]>::le].map(|stays: fn(&[T; 2], &[T; 2]) -> bool| {
        let values = elements.iter().map(|&element| value(element));
        values.fold(first, |best, value| {
            let stays = is_nan(&best) || (!is_nan(&value) && stays(&best, &value));
            if stays { best } else { value }
        })
    })
}

fn is_nan<T: PartialOrd>(parts: &[T; 2]) -> bool {
    parts.iter().any(|part| part.partial_cmp(part).is_none())
}

/// The sums of the real and of the imaginary parts.
fn complex_sum<const N: usize, T: SummableFloat>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> [T; 2] + Copy,
) -> [T; 2] {
    let [re, im] = complex_pairs(elements, value);
    [T::ZERO + re, T::ZERO + im]
}

fn complex_add<T: SummableFloat>(a: [T; 2], b: [T; 2]) -> [T; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

/// [`pairs`] for complex numbers. Real and imaginary parts share the lanes.
fn complex_pairs<const N: usize, T: SummableFloat>(
    elements: &[[u8; N]],
    value: impl Fn([u8; N]) -> [T; 2] + Copy,
) -> [T; 2] {
    const PAIR_LANES: usize = LANES / 2;
    let n = elements.len();
    let add = |total: [T; 2], &element: &[u8; N]| complex_add(total, value(element));
    if n < PAIR_LANES {
        return elements.iter().fold([T::NEGATIVE_ZERO; 2], add);
    }
    if n > PAIRWISE_MAX / 2 {
        let half = n / 2 - n / 2 % PAIR_LANES;
        let (low, high) = elements.split_at(half);
        return complex_add(complex_pairs(low, value), complex_pairs(high, value));
    }
    let (rows, rest) = elements.as_chunks::<PAIR_LANES>();
    let mut lanes = rows[0].map(value);
    for row in &rows[1..] {
        for (lane, element) in lanes.iter_mut().zip(row) {
            *lane = add(*lane, element);
        }
    }
    let [a, b, c, d] = lanes;
    let sum = complex_add(complex_add(a, b), complex_add(c, d));
    rest.iter().fold(sum, add)
}

#[cfg(test)]
mod tests;
