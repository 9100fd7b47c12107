//! A function of each element.

use super::elements::ElementPair;
use super::{ElementFunction, TensorChange};

/// A function and how it is computed.
type ComputedFunction = (ElementFunction, fn(f64) -> f64);

const FUNCTIONS: [ComputedFunction; 7] = [
    (ElementFunction::Absolute, f64::abs),
    (ElementFunction::Reciprocal, f64::recip),
    (ElementFunction::Square, |x| x * x),
    (ElementFunction::SquareRoot, f64::sqrt),
    (ElementFunction::ReciprocalSquareRoot, |x| x.sqrt().recip()),
    (ElementFunction::Exponential, f64::exp),
    (ElementFunction::Logarithm, f64::ln),
];

/// All of the target's elements are one value. A single element is not enough for this statement.
pub(super) fn constant(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let (t, g) = (pair.target, pair.golden);
    // NaN does not count as a value.
    let is_constant = pair.len() > 1 && (0..t.len()).all(|i| t.at(i) == t.at(0));
    is_constant.then(|| TensorChange::Constant {
        value: t.at(0),
        golden: (pair.n_distinct == 1 && g.at(0).is_finite()).then(|| g.at(0)),
    })
}

/// Golden's times a factor, or plus an offset, unless both are true.
pub(super) fn scaled_or_shifted(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.n_distinct < 2 {
        return None;
    }
    match (scaled(pair), shifted(pair)) {
        (Some(factor), None) => Some(TensorChange::Affine {
            factor,
            offset: 0.0,
        }),
        (None, Some(offset)) => Some(TensorChange::Affine {
            factor: 1.0,
            offset,
        }),
        _ => None,
    }
}

fn scaled(pair: &ElementPair<'_>) -> Option<f64> {
    let factor = rounded(pair.sums.tg / pair.sums.gg, pair.computed.relative);
    let is_usable = factor.is_finite() && factor != 0.0;
    if !is_usable || !pair.is_computed_by(|_, g| (factor * g, (factor * g).abs())) {
        return None;
    }
    // One number that is not zero has a factor, whatever was done to it.
    let golden = (0..pair.len()).map(|i| pair.golden.at(i));
    let mut nonzero = golden.filter(|g| *g != 0.0 && g.is_finite());
    let first = nonzero.next();
    nonzero.any(|g| Some(g) != first).then_some(factor)
}

fn shifted(pair: &ElementPair<'_>) -> Option<f64> {
    let offset = (pair.sums.t - pair.sums.g) / pair.sums.n;
    let offset = rounded(offset, pair.computed.relative);
    let is_usable = offset.is_finite() && offset != 0.0;
    let holds = is_usable && pair.is_computed_by(|_, g| (g + offset, g.abs().max(offset.abs())));
    holds.then_some(offset)
}

/// Golden's times a factor plus an offset.
pub(super) fn affine(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let sums = pair.sums;
    let spread = sums.gg - sums.g * sums.g / sums.n;
    let factor = (sums.tg - sums.t * sums.g / sums.n) / spread;
    let factor = rounded(factor, pair.computed.relative);
    let offset = (sums.t - factor * sums.g) / sums.n;
    let offset = rounded(offset, pair.computed.relative);
    let is_usable = factor.is_finite() && offset.is_finite() && factor != 0.0;
    let holds = is_usable
        && pair.is_computed_by(|_, g| {
            let scaled = factor * g;
            (scaled + offset, scaled.abs().max(offset.abs()).max(g.abs()))
        });
    holds.then_some(TensorChange::Affine { factor, offset })
}

/// Another function of golden's.
pub(super) fn function(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let mut functions = FUNCTIONS.into_iter();
    let (function, _) = functions.find(|(_, compute)| {
        pair.is_computed_by(|_, g| {
            let expected = compute(g);
            // Errors of the argument grow with the slope of the exponential.
            let magnitude = expected.abs().max(1.0_f64.min(g.abs()) * expected.abs());
            (expected, magnitude)
        })
    })?;
    Some(TensorChange::Function { function })
}

/// The number with three digits, or the half, third, … that is meant, if it is within a rounding of
/// it.
pub(super) fn rounded(value: f64, relative: f64) -> f64 {
    let near = relative.max(1e-9) * value.abs();
    let short = format!("{value:.2e}").parse().unwrap_or(value);
    let part = value.recip().round().recip();
    let nearest = if (part - value).abs() < (short - value).abs() {
        part
    } else {
        short
    };
    if nearest.is_finite() && (nearest - value).abs() <= near {
        nearest
    } else {
        value
    }
}
