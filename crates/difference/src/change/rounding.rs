//! Rounded to a format, to integers, or to steps.

use std::collections::HashSet;

use super::elements::ElementPair;
use super::{RoundedFormat, RoundingMode, TensorChange};

/// Maximum number of values of a quantised tensor.
const N_LEVELS_MAX: usize = 1 << 12;
/// Fewer values have a common step by chance.
const N_LEVELS_MIN: usize = 4;
/// Elements of smaller tensors have one by chance.
const N_MIN: usize = 16;
/// Number of elements that are searched for steps.
const N_STEP_ELEMENTS: usize = 1 << 16;
/// The distance from a multiple of the step, in steps.
const STEP_TOLERANCE: f64 = 1e-3;
/// Fewer rounded elements are not enough for a rule.
const N_ROUNDED_MIN: usize = 4;

/// A float format: stored bits of the mantissa, the exponent of its smallest normal number, and its
/// largest number.
type FloatFormat = (RoundedFormat, i32, i32, f64);

/// Those with more precision first.
const FLOAT_FORMATS: [FloatFormat; 5] = [
    (RoundedFormat::Float16, 10, -14, 65504.0),
    (RoundedFormat::Tf32, 10, -126, f32::MAX as f64),
    (RoundedFormat::Bfloat16, 7, -126, 3.389_531_389_251_535_5e38),
    (RoundedFormat::Float8E4m3, 3, -6, 448.0),
    (RoundedFormat::Float8E5m2, 2, -14, 57344.0),
];

/// Rounds a number to another one.
type RoundToWhole = fn(f64) -> f64;

const MODES: [(RoundingMode, RoundToWhole); 2] = [
    (RoundingMode::Nearest, f64::round_ties_even),
    (RoundingMode::TowardsZero, f64::trunc),
];

const WHOLE_MODES: [(RoundingMode, RoundToWhole); 5] = [
    (RoundingMode::Nearest, f64::round_ties_even),
    (RoundingMode::Nearest, f64::round),
    (RoundingMode::TowardsZero, f64::trunc),
    (RoundingMode::Down, f64::floor),
    (RoundingMode::Up, f64::ceil),
];

/// Rounded to integers or to a float format.
pub(super) fn to_format(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.n_differing < N_ROUNDED_MIN {
        return None;
    }
    let whole = WHOLE_MODES.iter().find_map(|&(mode, round)| {
        let format = RoundedFormat::Integers;
        is_rounded(pair, round).then_some(TensorChange::Rounded { format, mode })
    });
    whole.or_else(|| {
        FLOAT_FORMATS
            .iter()
            .find_map(|&(format, digits, least, largest)| {
                let (mode, _) = MODES.into_iter().find(|(_, round)| {
                    is_rounded(pair, |x| {
                        let rounded = to_float(x, digits, least, *round);
                        // Overflow becomes infinite or the largest value.
                        if rounded.abs() > largest {
                            f64::INFINITY.copysign(x)
                        } else {
                            rounded
                        }
                    }) || is_rounded(pair, |x| {
                        to_float(x, digits, least, *round).clamp(-largest, largest)
                    })
                })?;
                Some(TensorChange::Rounded { format, mode })
            })
    })
}

fn is_rounded(pair: &ElementPair<'_>, round: impl Fn(f64) -> f64) -> bool {
    pair.is_each(|t, g| t == round(g) || (t.is_nan() && g.is_nan()))
}

/// A number with this many binary digits after the first one.
fn to_float(x: f64, n_digits: i32, min_exponent: i32, round: RoundToWhole) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    // A double that is subnormal has an exponent field of 0, which is below every limit here.
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2_f64.powi(exponent.max(min_exponent) - n_digits);
    // A power of two changes no digit, so that this is the only rounding.
    round(x / unit) * unit
}

/// Rounded to multiples of a step, as by a quantiser, perhaps limited at both ends.
pub(super) fn to_steps(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.len() < N_MIN || pair.n_differing < N_ROUNDED_MIN {
        return None;
    }
    let mut levels: HashSet<u64> = HashSet::new();
    for i in 0..pair.len().min(N_STEP_ELEMENTS) {
        levels.insert(pair.target.at(i).to_bits());
        if levels.len() > N_LEVELS_MAX {
            return None;
        }
    }
    let mut levels: Vec<f64> = levels.into_iter().map(f64::from_bits).collect();
    levels.retain(|level| level.is_finite());
    levels.sort_by(f64::total_cmp);
    // Zeros of both signs are one.
    levels.dedup();
    if levels.len() < N_LEVELS_MIN {
        return None;
    }
    let gaps = levels.windows(2).map(|pair| pair[1] - pair[0]);
    let least = gaps.fold(f64::INFINITY, f64::min);
    // Of a small tensor neighbours may be a few steps apart.
    let steps = (1..=4).map(|n| refined(&levels, least / f64::from(n)));
    let step = steps.into_iter().find(|&step| are_multiples(pair, step))?;
    let step = super::map::rounded(step, pair.computed.relative);
    Some(TensorChange::Steps { step })
}

/// The step by which the levels are apart, from an estimate: the farther a level is from the first,
/// the less its rounding matters.
fn refined(levels: &[f64], estimate: f64) -> f64 {
    levels.iter().fold(estimate, |step, level| {
        let distance = level - levels[0];
        let n_steps = (distance / step).round();
        if n_steps >= 1.0 {
            distance / n_steps
        } else {
            step
        }
    })
}

fn are_multiples(pair: &ElementPair<'_>, step: f64) -> bool {
    let [low, high] = pair.sums.t_ends;
    let unit = pair.computed.relative;
    // The step must be beyond what the dtype rounds away.
    let is_coarse = step > 0.0 && unit * low.abs().max(high.abs()) < 0.1 * step;
    is_coarse
        && pair.is_each(|t, g| {
            let n_steps = (t - low) / step;
            let slack = STEP_TOLERANCE + unit * t.abs().max(low.abs()) / step;
            let is_multiple = (n_steps - n_steps.round()).abs() <= slack;
            let is_near = (t - g).abs() <= (0.5 + slack) * step;
            let is_clipped = (t == low && g < t) || (t == high && g > t);
            (is_multiple && (is_near || is_clipped)) || t.is_nan() && g.is_nan()
        })
}
