//! Scaled or shifted by a number for each index of an axis.

use super::TensorChange;
use super::arrangement::strides;
use super::elements::ElementPair;

/// Fewer elements fit a separate factor by chance.
const N_IN_CHANNEL_MIN: usize = 4;

/// The first axis along which a factor, or an offset, for each index explains everything.
pub(super) fn scaled_or_shifted(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dims = pair.dims();
    let axes = 0..dims.len();
    let mut axes =
        axes.filter(|&axis| dims[axis] > 1 && pair.len() / dims[axis].max(1) >= N_IN_CHANNEL_MIN);
    axes.find_map(|axis| channels(pair, axis, true).or_else(|| channels(pair, axis, false)))
}

fn channels(pair: &ElementPair<'_>, axis: usize, is_factor: bool) -> Option<TensorChange> {
    let dims = pair.dims();
    let (dim, stride) = (dims[axis], strides(dims)[axis]);
    let n_in_channel = pair.len() / dim;
    let element = |channel: usize, k: usize| (k / stride * dim + channel) * stride + k % stride;
    // The middle channel first: nearly all axes fail there.
    let tried = [dim / 2, 0, dim - 1];
    let fits = tried.iter().all(|&channel| {
        let number = number(pair, is_factor, n_in_channel, |k| element(channel, k));
        (0..n_in_channel).all(|k| {
            let i = element(channel, k);
            let (e, magnitude) = expected(is_factor, number, pair.golden.at(i));
            pair.computed.allows(pair.target.at(i), e, magnitude)
        })
    });
    if !fits {
        return None;
    }
    let numbers: Vec<f64> = (0..dim)
        .map(|channel| number(pair, is_factor, n_in_channel, |k| element(channel, k)))
        .collect();
    let holds = pair.is_computed_by(|i, g| expected(is_factor, numbers[i / stride % dim], g));
    holds.then(|| TensorChange::Channels {
        axis,
        is_factor,
        min: numbers.iter().copied().fold(f64::INFINITY, f64::min),
        max: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

fn expected(is_factor: bool, number: f64, g: f64) -> (f64, f64) {
    if is_factor {
        (g * number, (g * number).abs())
    } else {
        (g + number, g.abs().max(number.abs()))
    }
}

/// The best factor or offset of a channel. A channel of zeros has the factor 1.
fn number(
    pair: &ElementPair<'_>,
    is_factor: bool,
    n: usize,
    element: impl Fn(usize) -> usize,
) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    for i in (0..n).map(element) {
        let (t, g) = (pair.target.at(i), pair.golden.at(i));
        if t.is_finite() && g.is_finite() {
            above += if is_factor { t * g } else { t - g };
            below += if is_factor { g * g } else { 1.0 };
        }
    }
    let number = above / below;
    if number.is_finite() {
        number
    } else {
        f64::from(u8::from(is_factor))
    }
}
