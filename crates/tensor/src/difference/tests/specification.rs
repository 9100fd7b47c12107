//! The specification of every metric: plain code, one element after the other.

use half::{bf16, f16};

use crate::convert::dtype::{DecodedElements, decode};
use crate::difference::{
    DifferenceError, DifferenceOptions, N_BINS, SideSummary, TensorDifference, WorstElement,
};
use crate::{DType, NumpyType, TensorView};

/// The smallest share of a distribution, so that its logarithm exists.
const KL_MIN: f64 = f32::EPSILON as f64;
/// Relative differences that count as small.
const SMALL: [f64; 2] = [1e-3, 5e-3];
/// Where the bins of the histogram begin, apart from the first.
const DECADES: [f64; N_BINS - 1] = [
    1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3,
];

/// A pair of finite elements.
#[derive(Clone, Copy)]
struct ElementPair {
    index: usize,
    a: f64,
    b: f64,
    distance: f64,
}

pub(super) fn difference(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    options: DifferenceOptions,
) -> Result<TensorDifference, DifferenceError> {
    let (a, b) = (values(target)?, values(golden)?);
    if a.len() != b.len() {
        return Err(DifferenceError::Size {
            target: a.len(),
            golden: b.len(),
        });
    }
    let distances: Vec<f64> = match (integers(target), integers(golden)) {
        (Some(a), Some(b)) => {
            let pairs = a.iter().zip(&b);
            pairs.map(|(a, b)| a.abs_diff(*b) as f64).collect()
        }
        _ => a.iter().zip(&b).map(|(a, b)| (a - b).abs()).collect(),
    };
    let mut result = TensorDifference {
        n: a.len() as u64,
        is_identical: target.dtype == golden.dtype && target.bytes == golden.bytes,
        target: summary(&a),
        golden: summary(&b),
        ..TensorDifference::default()
    };
    count(&mut result, &a, &b, &distances);
    let pairs: Vec<ElementPair> = (0..a.len())
        .filter(|&i| a[i].is_finite() && b[i].is_finite())
        .map(|index| ElementPair {
            index,
            a: a[index],
            b: b[index],
            distance: distances[index],
        })
        .collect();
    result.n_finite = pairs.len() as u64;
    absolute(&mut result, &pairs);
    norms(&mut result, &pairs);
    relative(&mut result, &pairs);
    if let Some(dtype) = crate::difference::coarser(target.dtype, golden.dtype) {
        ulps(&mut result, &pairs, dtype);
    }
    if options.has_kl && !pairs.is_empty() {
        result.kl = Some(kl(&pairs));
    }
    Ok(result)
}

/// The elements of integer dtypes, with all their digits.
fn integers(tensor: TensorView<'_>) -> Option<Vec<i128>> {
    let DecodedElements { dtype, bytes, .. } =
        decode(tensor.dtype, tensor.shape, tensor.bytes).ok()?;
    macro_rules! read {
        ($type:ty) => {{
            let elements = bytes.as_chunks().0.iter();
            let element = |bytes: &[u8; size_of::<$type>()]| <$type>::from_le_bytes(*bytes).into();
            Some(elements.map(element).collect())
        }};
    }
    match dtype.as_numpy()? {
        NumpyType::I8 => read!(i8),
        NumpyType::I16 => read!(i16),
        NumpyType::I32 => read!(i32),
        NumpyType::I64 => read!(i64),
        NumpyType::U8 => read!(u8),
        NumpyType::U16 => read!(u16),
        NumpyType::U32 => read!(u32),
        NumpyType::U64 => read!(u64),
        NumpyType::Bool => Some(bytes.iter().map(|&byte| i128::from(byte != 0)).collect()),
        NumpyType::F16 | NumpyType::F32 | NumpyType::F64 | NumpyType::C64 | NumpyType::C128 => None,
    }
}

/// The elements as doubles; parts of complex numbers one after the other.
fn values(tensor: TensorView<'_>) -> Result<Vec<f64>, DifferenceError> {
    let DecodedElements { dtype, bytes, .. } = decode(tensor.dtype, tensor.shape, tensor.bytes)?;
    macro_rules! read {
        ($type:ty) => {{
            let elements = bytes.chunks_exact(size_of::<$type>());
            elements
                .map(|bytes| <$type>::from_le_bytes(bytes.try_into().expect("chunks of this size")))
                .map(|value| value as f64)
                .collect()
        }};
    }
    Ok(match dtype {
        DType::F16 => {
            let halves = bytes.as_chunks::<2>().0.iter();
            halves
                .map(|&half| f16::from_le_bytes(half).to_f64())
                .collect()
        }
        DType::F32 | DType::C64 => read!(f32),
        DType::F64 | DType::C128 => read!(f64),
        DType::I8 => read!(i8),
        DType::I16 => read!(i16),
        DType::I32 => read!(i32),
        DType::I64 => read!(i64),
        DType::U16 => read!(u16),
        DType::U32 => read!(u32),
        DType::U64 => read!(u64),
        DType::Bool => bytes.iter().map(|&byte| f64::from(byte != 0)).collect(),
        _ => bytes.iter().map(|&byte| f64::from(byte)).collect(),
    })
}

/// `value` times 2^`exponent`.
fn times_power(value: f64, exponent: i32) -> f64 {
    let (first, second) = (exponent / 2, exponent - exponent / 2);
    value * 2f64.powi(first) * 2f64.powi(second)
}

/// The binary exponent of the largest magnitude; 0 of zeros.
fn exponent(values: impl Iterator<Item = f64>) -> i32 {
    let largest = values.fold(0.0, |largest, value| value.abs().max(largest));
    if largest == 0.0 {
        return 0;
    }
    // Rounding at a power of two does no harm.
    largest.log2().floor() as i32
}

/// The sum with what rounding took away.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() {
            (sum - next) + value
        } else {
            (value - next) + sum
        };
        sum = next;
    }
    sum + lost
}

fn summary(values: &[f64]) -> SideSummary {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let n = finite.len() as f64;
    let power = exponent(finite.iter().copied());
    let scaled: Vec<f64> = finite.iter().map(|&v| times_power(v, -power)).collect();
    let mean = sum(scaled.iter().copied()) / n;
    let std = (sum(scaled.iter().map(|v| (v - mean) * (v - mean))) / n).sqrt();
    SideSummary {
        min: finite.iter().copied().fold(f64::NAN, f64::min),
        max: finite.iter().copied().fold(f64::NAN, f64::max),
        mean: times_power(mean, power),
        std: times_power(std, power),
        l2_norm: times_power(sum(scaled.iter().map(|v| v * v)).sqrt(), power),
        n_nan: values.iter().filter(|v| v.is_nan()).count() as u64,
        n_positive_inf: values.iter().filter(|v| **v == f64::INFINITY).count() as u64,
        n_negative_inf: values.iter().filter(|v| **v == f64::NEG_INFINITY).count() as u64,
        n_zero: values.iter().filter(|v| **v == 0.0).count() as u64,
    }
}

fn count(result: &mut TensorDifference, a: &[f64], b: &[f64], distances: &[f64]) {
    let mut has_mismatch = false;
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        let is_finite = a.is_finite() && b.is_finite();
        let is_equal = if is_finite {
            distances[i] == 0.0
        } else {
            a == b || (a.is_nan() && b.is_nan())
        };
        result.n_equal += u64::from(is_equal);
        result.n_nan_mismatches += u64::from(a.is_nan() != b.is_nan());
        let has_inf = a.is_infinite() || b.is_infinite();
        result.n_inf_mismatches += u64::from(has_inf && !is_equal && !a.is_nan() && !b.is_nan());
        result.n_sign_flips += u64::from((a < 0.0 && b > 0.0) || (a > 0.0 && b < 0.0));
        if !a.is_finite() && !is_equal && result.first_bad.is_none() {
            result.first_bad = Some(i as u64);
        }
        if !is_finite && !is_equal && !has_mismatch {
            has_mismatch = true;
            result.worst = Some(WorstElement {
                index: i as u64,
                target: a,
                golden: b,
            });
        }
    }
}

fn absolute(result: &mut TensorDifference, pairs: &[ElementPair]) {
    // An element that is NaN or infinite on one side alone is the worst in any case.
    let mismatch = result.worst.take();
    for pair in pairs {
        if pair.distance > result.max_abs || result.worst.is_none() {
            result.max_abs = pair.distance;
            result.worst = Some(WorstElement {
                index: pair.index as u64,
                target: pair.a,
                golden: pair.b,
            });
        }
    }
    result.worst = mismatch.or(result.worst);
}

fn norms(result: &mut TensorDifference, pairs: &[ElementPair]) {
    let n = pairs.len() as f64;
    let is_far = result.max_abs == f64::INFINITY;
    let distances = pairs.iter().map(|pair| match pair.distance {
        distance if !is_far => distance,
        f64::INFINITY => (pair.a / 4.0 - pair.b / 4.0).abs(),
        distance => distance / 4.0,
    });
    // Each side, and the distances, without the exponent of its largest element.
    let (a, _) = without_exponent(pairs.iter().map(|pair| pair.a));
    let (b, b_power) = without_exponent(pairs.iter().map(|pair| pair.b));
    let (distances, mut power) = without_exponent(distances);
    if is_far {
        power += 2;
    }
    let [a_norm, b_norm, norm] =
        [&a, &b, &distances].map(|values| sum(values.iter().map(|x| x * x)).sqrt());
    let largest = b.iter().fold(0.0, |largest: f64, b| largest.max(b.abs()));
    (result.snr_db, result.psnr_db) = (f64::INFINITY, f64::INFINITY);
    if pairs.is_empty() {
        return;
    }
    result.mean_abs = times_power(sum(distances.iter().copied()) / n, power);
    result.rmse = times_power(norm / n.sqrt(), power);
    result.rel_l2 = times_power(ratio(norm, b_norm), power - b_power);
    result.cosine = match (a_norm > 0.0, b_norm > 0.0) {
        (true, true) => {
            let dot = sum(a.iter().zip(&b).map(|(a, b)| a * b));
            Some((dot / (a_norm * b_norm)).clamp(-1.0, 1.0))
        }
        (false, false) => Some(1.0),
        _ => None,
    };
    if norm > 0.0 {
        // Not from `rel_l2`, which may be out of range.
        let powers = f64::from(power - b_power) * 2f64.log10();
        result.snr_db = -20.0 * (ratio(norm, b_norm).log10() + powers);
        result.psnr_db = -20.0 * (ratio(norm / n.sqrt(), largest).log10() + powers);
    }
}

/// Values divided by the power of two of the largest of them, and its exponent.
fn without_exponent(values: impl Iterator<Item = f64> + Clone) -> (Vec<f64>, i32) {
    let power = exponent(values.clone());
    (values.map(|v| times_power(v, -power)).collect(), power)
}

/// A distance over what it is measured by; none over nothing is 0.
fn ratio(distance: f64, by: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / by }
}

fn relative(result: &mut TensorDifference, pairs: &[ElementPair]) {
    let mut measured = Vec::new();
    for pair in pairs {
        let r = match pair.distance {
            f64::INFINITY => (pair.a / 4.0 - pair.b / 4.0).abs() / (pair.b / 4.0).abs(),
            distance => ratio(distance, pair.b.abs()),
        };
        result.histogram[bin(r)] += 1;
        // Infinitely far: it has no part in the sums, and is small by no measure.
        if r < f64::INFINITY {
            measured.push(r);
        }
    }
    let n = measured.len() as f64;
    result.max_rel = measured.iter().copied().fold(0.0, f64::max);
    // In parts, because sums may be out of range where means are not.
    result.accumulated_rel = sum(measured.iter().map(|r| r / n.max(1.0))) * n;
    result.mean_rel = sum(measured.iter().map(|r| r / n.max(1.0)));
    [result.share_1_1000, result.share_5_1000] = SMALL.map(|limit| {
        if pairs.is_empty() {
            return 1.0;
        }
        let n_small = measured.iter().filter(|&&r| r < limit).count();
        n_small as f64 / pairs.len() as f64
    });
}

/// How many of the powers of ten from 1e-12 to 1e3 a relative difference reaches.
fn bin(r: f64) -> usize {
    DECADES.iter().filter(|&&limit| r >= limit).count()
}

fn ulps(result: &mut TensorDifference, pairs: &[ElementPair], dtype: DType) {
    let distances = pairs.iter().map(|pair| {
        let [a, b] = [pair.a, pair.b].map(|value| match dtype {
            DType::F64 => order(value.to_bits().into(), 63),
            DType::F32 => order((value as f32).to_bits().into(), 31),
            DType::F16 => order(
                nearest(value, 0x7c00, |bits| f16::from_bits(bits).to_f64()),
                15,
            ),
            _ => order(
                nearest(value, 0x7f80, |bits| bf16::from_bits(bits).to_f64()),
                15,
            ),
        });
        a.abs_diff(b) as u64
    });
    let mut distances: Vec<u64> = distances.collect();
    distances.sort_unstable();
    let nth = (distances.len() * 99).div_ceil(100);
    result.max_ulp = Some(distances.last().copied().unwrap_or(0));
    result.p99_ulp = Some(nth.checked_sub(1).map_or(0, |i| rounded_up(distances[i])));
}

/// Bits of the nearest float of 16 bits, the even one of two; `infinity` where the next float would
/// be.
fn nearest(value: f64, infinity: u16, of_bits: fn(u16) -> f64) -> u128 {
    let magnitude = value.abs();
    let number = |bits: u16| {
        if bits == infinity {
            // As far above the largest float as that is above the one before it.
            2.0 * of_bits(infinity - 1) - of_bits(infinity - 2)
        } else {
            of_bits(bits)
        }
    };
    // The largest that is not above.
    let (mut below, mut above) = (0, infinity + 1);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if number(middle) <= magnitude {
            below = middle;
        } else {
            above = middle;
        }
    }
    let bits = if below == infinity {
        infinity
    } else {
        let (low, high) = (magnitude - number(below), number(below + 1) - magnitude);
        let is_up = high < low || (high == low && below % 2 == 1);
        below + u16::from(is_up)
    };
    u128::from(bits) | if value.is_sign_negative() { 0x8000 } else { 0 }
}

/// Bits of a float as a number that counts the floats from zero; zeros of both signs are 0.
fn order(bits: u128, sign: u32) -> i128 {
    let magnitude = (bits & !(1 << sign)) as i128;
    if bits >> sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// The distance, or the end of its sixteenth of a power of two from 256 on.
pub(in crate::difference) fn rounded_up(distance: u64) -> u64 {
    if distance < 256 {
        return distance;
    }
    let below = distance.ilog2() - 4;
    (((distance >> below) + 1) << below).wrapping_sub(1)
}

fn kl(pairs: &[ElementPair]) -> f64 {
    let p = shares(pairs.iter().map(|pair| pair.a));
    let q = shares(pairs.iter().map(|pair| pair.b));
    sum(p.iter().zip(&q).map(|(p, q)| p * (p / q).ln())).max(0.0)
}

/// Values scaled to 0 to 1, as shares of their sum.
fn shares(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let min = values.clone().fold(f64::INFINITY, f64::min);
    let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
    // If the range overflows a double, everything is halved.
    let by = if (max - min).is_finite() { 1.0 } else { 0.5 };
    let norms = values.map(|value| {
        let norm = if max > min {
            (value * by - min * by) / (max * by - min * by)
        } else {
            1.0
        };
        norm.max(KL_MIN)
    });
    let norms: Vec<f64> = norms.collect();
    let sum = sum(norms.iter().copied());
    norms.into_iter().map(|norm| norm / sum).collect()
}
