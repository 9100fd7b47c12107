//! What every metric is: plain code, one element after the other.

use half::{bf16, f16};

use super::{Difference, DifferenceError, N_BINS, Options, Summary, Worst};
use crate::convert::dtype::{Decoded, decode};
use crate::{DType, TensorView};

/// The smallest share of a distribution, so that its logarithm exists.
const KL_MIN: f64 = f32::EPSILON as f64;
/// Relative differences that count as small.
const SMALL: [f64; 2] = [1e-3, 5e-3];

pub(super) fn difference(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    options: Options,
) -> Result<Difference, DifferenceError> {
    let (a, b) = (values(target)?, values(golden)?);
    if a.len() != b.len() {
        return Err(DifferenceError::Size {
            target: a.len(),
            golden: b.len(),
        });
    }
    let mut result = Difference {
        n: a.len() as u64,
        is_identical: target.dtype == golden.dtype && target.bytes == golden.bytes,
        target: summary(&a),
        golden: summary(&b),
        ..Difference::default()
    };
    count(&mut result, &a, &b);
    let pairs: Vec<(usize, f64, f64)> = (0..a.len())
        .filter(|&i| a[i].is_finite() && b[i].is_finite())
        .map(|i| (i, a[i], b[i]))
        .collect();
    result.n_finite = pairs.len() as u64;
    absolute(&mut result, &pairs);
    relative(&mut result, &pairs);
    if let Some(dtype) = coarser(target.dtype, golden.dtype) {
        ulps(&mut result, &pairs, dtype);
    }
    if options.has_kl {
        result.kl = kl(&pairs);
    }
    Ok(result)
}

/// The elements as doubles; parts of complex numbers one after the other.
fn values(tensor: TensorView<'_>) -> Result<Vec<f64>, DifferenceError> {
    let Decoded { dtype, bytes, .. } = decode(tensor.dtype, tensor.shape, tensor.bytes)?;
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

fn summary(values: &[f64]) -> Summary {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let n = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / n;
    let square = |value: f64| value * value;
    let count = |is: fn(&f64) -> bool| values.iter().filter(|v| is(v)).count() as u64;
    Summary {
        min: finite.iter().copied().fold(f64::NAN, f64::min),
        max: finite.iter().copied().fold(f64::NAN, f64::max),
        mean,
        std: (finite.iter().map(|v| square(v - mean)).sum::<f64>() / n).sqrt(),
        l2_norm: finite.iter().map(|&v| square(v)).sum::<f64>().sqrt(),
        n_nan: count(|v| v.is_nan()),
        n_positive_inf: count(|v| *v == f64::INFINITY),
        n_negative_inf: count(|v| *v == f64::NEG_INFINITY),
        n_zero: count(|v| *v == 0.0),
    }
}

fn count(result: &mut Difference, a: &[f64], b: &[f64]) {
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        let is_equal = a == b || (a.is_nan() && b.is_nan());
        result.n_equal += u64::from(is_equal);
        result.n_nan_mismatches += u64::from(a.is_nan() != b.is_nan());
        let has_inf = a.is_infinite() || b.is_infinite();
        result.n_inf_mismatches += u64::from(has_inf && !is_equal && !a.is_nan() && !b.is_nan());
        result.n_sign_flips +=
            u64::from(a * b < 0.0 || (a < 0.0 && b > 0.0) || (a > 0.0 && b < 0.0));
        if !a.is_finite() && !is_equal && result.first_bad.is_none() {
            result.first_bad = Some(i as u64);
        }
    }
}

fn absolute(result: &mut Difference, pairs: &[(usize, f64, f64)]) {
    let n = pairs.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let (mut dot, mut a_squares, mut b_squares, mut largest) = (0.0, 0.0, 0.0, 0.0f64);
    for &(i, a, b) in pairs {
        let distance = (a - b).abs();
        sum += distance;
        squares += distance * distance;
        dot += a * b;
        a_squares += a * a;
        b_squares += b * b;
        largest = largest.max(b.abs());
        if distance > result.max_abs || result.worst.is_none() {
            result.max_abs = distance;
            result.worst = Some(Worst {
                index: i as u64,
                target: a,
                golden: b,
            });
        }
    }
    if pairs.is_empty() {
        return;
    }
    result.mean_abs = sum / n;
    result.rmse = (squares / n).sqrt();
    result.rel_l2 = ratio(squares.sqrt(), b_squares.sqrt());
    result.cosine = match (a_squares > 0.0, b_squares > 0.0) {
        (true, true) => Some((dot / (a_squares.sqrt() * b_squares.sqrt())).clamp(-1.0, 1.0)),
        (false, false) => Some(1.0),
        _ => None,
    };
    result.snr_db = -20.0 * result.rel_l2.log10();
    result.psnr_db = -20.0 * ratio(result.rmse, largest).log10();
}

/// A distance over what it is measured by; none over nothing is 0.
fn ratio(distance: f64, by: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / by }
}

fn relative(result: &mut Difference, pairs: &[(usize, f64, f64)]) {
    let mut n_measured = 0u64;
    let mut n_small = [0u64; 2];
    for &(_, a, b) in pairs {
        if b == 0.0 && a != 0.0 {
            // Infinitely far: it has no part in the sums, and is small by no measure.
            result.histogram[N_BINS - 1] += 1;
            continue;
        }
        let r = ratio((a - b).abs(), b.abs());
        n_measured += 1;
        result.accumulated_rel += r;
        result.max_rel = result.max_rel.max(r);
        for (n, limit) in n_small.iter_mut().zip(SMALL) {
            *n += u64::from(r < limit);
        }
        result.histogram[bin(r)] += 1;
    }
    if n_measured > 0 {
        result.mean_rel = result.accumulated_rel / n_measured as f64;
    }
    let share = |n: u64| {
        if pairs.is_empty() {
            1.0
        } else {
            n as f64 / pairs.len() as f64
        }
    };
    result.share_1_1000 = share(n_small[0]);
    result.share_5_1000 = share(n_small[1]);
}

/// How many of the powers of ten from 1e-12 to 1e3 a relative difference reaches.
fn bin(r: f64) -> usize {
    (-12..=3)
        .filter(|&exponent| r >= 10f64.powi(exponent))
        .count()
}

/// The float dtype with fewer digits of two, if both are floats.
pub(super) fn coarser(a: DType, b: DType) -> Option<DType> {
    let digits = |dtype: DType| {
        Some(match dtype {
            DType::F64 | DType::C128 => (52, DType::F64),
            DType::F32 | DType::C64 => (23, DType::F32),
            DType::F16 | DType::C32 => (10, DType::F16),
            DType::BF16 => (7, DType::BF16),
            // Their values are counted in steps of float16, which has them all.
            dtype if dtype.is_float() => (10, DType::F16),
            _ => return None,
        })
    };
    let (a, b) = (digits(a)?, digits(b)?);
    Some(if a.0 <= b.0 { a.1 } else { b.1 })
}

fn ulps(result: &mut Difference, pairs: &[(usize, f64, f64)], dtype: DType) {
    let step = |value: f64| -> i128 {
        match dtype {
            DType::F64 => order(value.to_bits().into(), 63),
            DType::F32 => order((value as f32).to_bits().into(), 31),
            DType::F16 => order(f16::from_f64(value).to_bits().into(), 15),
            _ => order(bf16::from_f64(value).to_bits().into(), 15),
        }
    };
    let distance = |&(_, a, b): &(usize, f64, f64)| step(a).abs_diff(step(b)) as u64;
    let mut distances: Vec<u64> = pairs.iter().map(distance).collect();
    distances.sort_unstable();
    let nth = (distances.len() as f64 * 0.99).ceil() as usize;
    result.max_ulp = Some(distances.last().copied().unwrap_or(0));
    result.p99_ulp = Some(nth.checked_sub(1).map_or(0, |i| rounded_up(distances[i])));
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
pub(super) fn rounded_up(distance: u64) -> u64 {
    if distance < 256 {
        return distance;
    }
    let below = distance.ilog2() - 4;
    (((distance >> below) + 1) << below).wrapping_sub(1)
}

fn kl(pairs: &[(usize, f64, f64)]) -> Option<f64> {
    let shares = |of: fn(&(usize, f64, f64)) -> f64| {
        let values = || pairs.iter().map(of);
        let min = values().fold(f64::INFINITY, f64::min);
        let max = values().fold(f64::NEG_INFINITY, f64::max);
        let norm = move |value: f64| {
            let value = if max > min {
                (value - min) / (max - min)
            } else {
                value
            };
            value.max(KL_MIN)
        };
        let norms: Vec<f64> = values().map(norm).collect();
        let sum: f64 = norms.iter().sum();
        norms
            .into_iter()
            .map(|norm| norm / sum)
            .collect::<Vec<f64>>()
    };
    if pairs.is_empty() {
        return None;
    }
    let (p, q) = (shares(|pair| pair.1), shares(|pair| pair.2));
    Some(p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum())
}
