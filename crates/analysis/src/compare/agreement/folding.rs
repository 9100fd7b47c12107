//! Weights that include the subsequent batch normalisation.
//!
//! Exporters and engines fold `y = γ · (W∗x + b − μ) / √(σ² + ε) + β` into one convolution with the
//! weight `W · s` and the bias `β + (b − μ) · s`, where `s = γ / √(σ² + ε)`. Where one side is
//! folded and the other is not, the latter's weight is folded here, and compared then. Engines also
//! store weights in blocks of channels, filled up with zeros; so the order of elements does not
//! count, and zeros do not.

use opscope_store::record::SlotSide;

use super::ComparedValues;
use crate::compare::matching::SlotRef;
use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::compare::verdict::unit;
use crate::element::ElementValue;

/// Common epsilons added to a variance, for graphs without the attribute.
const EPSILONS: [f64; 5] = [1e-5, 1e-3, 1e-4, 1e-6, 1e-12];
/// No attribute beyond this is taken for such a number.
const EPSILON_MAX: f64 = 0.1;
/// Roundings that folding may cost.
const N_ROUNDINGS: f64 = 64.0;

/// Maximum bytes of a weight whose elements are compared one by one.
const N_BYTES_MAX: u64 = 4 << 20;
/// Fewer equal elements may be chance.
const N_SAME_MIN: usize = 8;

/// The parameters of a batch normalisation, one number for each channel.
struct ChannelNorm {
    scale: Vec<f64>,
    bias: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl ComparedValues {
    /// Whether an input of one side equals the other side's weight or bias combined with the batch
    /// normalisation after its operator. `other` is the operator of that side.
    pub(super) fn is_folded(
        &self,
        dumps: [&ComparedDump; 2],
        side: usize,
        slot: SlotRef,
        other: usize,
    ) -> bool {
        let folded = dumps[side].slot(slot);
        let unfolded = dumps[1 - side];
        let norms = self.norms_behind(unfolded, 1 - side, other);
        // Reading a weight takes long, and most operators are not followed by a normalisation.
        if norms.is_empty() {
            return false;
        }
        let Some((found, tolerance)) = elements(folded) else {
            return false;
        };
        let slots = unfolded.runs[other].slots.iter();
        let inputs = slots.filter(|slot| slot.side == SlotSide::Input);
        norms.into_iter().any(|norm| {
            let Some(of_norm) = ChannelNorm::read(unfolded, norm) else {
                return false;
            };
            let n_channels = of_norm.scale.len();
            epsilons(unfolded, norm).into_iter().any(|epsilon| {
                let weights = inputs.clone().filter(|slot| n_axes(slot) > 1);
                let has_bias = inputs.clone().any(|slot| n_axes(slot) == 1);
                let biases = inputs.clone().filter(|slot| n_axes(slot) == 1);
                let is_bias = found.len() == n_channels && n_axes(folded) == 1;
                if !is_bias {
                    return weights
                        .filter_map(elements)
                        .filter(|(weight, _)| weight.len() % n_channels.max(1) == 0)
                        .any(|(weight, _)| {
                            are_same(&of_norm.folded_weight(&weight, epsilon), &found, tolerance)
                        });
                }
                let mut known: Vec<Vec<f64>> = biases
                    .filter_map(elements)
                    .map(|(bias, _)| bias)
                    .filter(|bias| bias.len() == n_channels)
                    .collect();
                if !has_bias {
                    known.push(vec![0.0; n_channels]);
                }
                known
                    .iter()
                    .any(|bias| are_same(&of_norm.folded_bias(bias, epsilon), &found, tolerance))
            })
        })
    }

    /// The batch normalisations that read what an operator makes.
    pub(super) fn norms_behind(&self, dump: &ComparedDump, side: usize, run: usize) -> Vec<usize> {
        let values = &self.sides[side];
        let outputs = values.outputs.get(&run).into_iter().flatten();
        let readers = outputs.flat_map(|value| values.values[value.0].readers.iter());
        readers
            .copied()
            .filter(|&reader| {
                let op_type = dump.runs[reader].op_type.to_lowercase().replace('_', "");
                op_type.contains("batchnorm")
            })
            .collect()
    }
}

impl ChannelNorm {
    /// From the inputs 1 to 4, which are these in ONNX, in PyTorch and in MindSpore.
    fn read(dump: &ComparedDump, run: usize) -> Option<ChannelNorm> {
        let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|index| {
            let slot = dump.runs[run].slot(SlotSide::Input, index)?;
            elements(slot).map(|(elements, _)| elements)
        });
        let norm = ChannelNorm {
            scale: scale?,
            bias: bias?,
            mean: mean?,
            variance: variance?,
        };
        let n = norm.scale.len();
        let is_sound = n > 0 && norm.bias.len() == n && norm.mean.len() == n;
        (is_sound && norm.variance.len() == n).then_some(norm)
    }

    fn factor(&self, channel: usize, epsilon: f64) -> f64 {
        self.scale[channel] / (self.variance[channel] + epsilon).sqrt()
    }

    fn folded_weight(&self, weight: &[f64], epsilon: f64) -> Vec<f64> {
        let n_each = (weight.len() / self.scale.len()).max(1);
        let channels = weight.chunks(n_each).enumerate();
        channels
            .flat_map(|(channel, of_channel)| {
                let factor = self.factor(channel, epsilon);
                of_channel.iter().map(move |element| element * factor)
            })
            .collect()
    }

    fn folded_bias(&self, bias: &[f64], epsilon: f64) -> Vec<f64> {
        let channels = bias.iter().enumerate();
        channels
            .map(|(channel, bias)| {
                self.bias[channel] + (bias - self.mean[channel]) * self.factor(channel, epsilon)
            })
            .collect()
    }
}

/// The numbers that may have been added to a variance: small attributes of the operator, and the
/// usual ones.
fn epsilons(dump: &ComparedDump, run: usize) -> Vec<f64> {
    let described = dump.description_of(run);
    let attributes = described.and_then(|(_, graph, at)| {
        let operator = graph.operators.get(at)?;
        Some(operator.attributes.values())
    });
    let given = attributes.into_iter().flatten();
    let given = given.filter_map(|text| text.parse::<f64>().ok());
    given
        .filter(|number| (0.0..=EPSILON_MAX).contains(number))
        .chain(EPSILONS)
        .collect()
}

fn n_axes(slot: &ExecutionSlot) -> usize {
    let shape = slot.shape.as_ref();
    shape.map_or(0, |dims| dims.iter().filter(|dim| **dim != 1).count())
}

/// Whether most elements of two slots are equal, in any order, as in a partly changed weight.
pub(super) fn share_most(a: &ExecutionSlot, b: &ExecutionSlot) -> bool {
    if a.n_bytes.max(b.n_bytes) > N_BYTES_MAX {
        return false;
    }
    let (Some((a, _)), Some((b, _))) = (elements(a), elements(b)) else {
        return false;
    };
    let n_most = N_SAME_MIN.max(a.len().max(b.len()) / 2 + 1);
    // A weight in the original layout is recognized without sorting.
    let n_in_place = (a.iter().zip(&b))
        .filter(|(a, b)| a.to_bits() == b.to_bits())
        .count();
    n_in_place >= n_most || n_in_common(&a, &b) >= n_most
}

/// How many elements two lists have in common, each as often as both have it.
fn n_in_common(a: &[f64], b: &[f64]) -> usize {
    let [a, b] = [a, b].map(|elements| {
        let mut patterns: Vec<u64> = elements.iter().map(|element| element.to_bits()).collect();
        // By their bits, so that NaN has a place among them too.
        patterns.sort_unstable();
        patterns
    });
    let mut b = b.into_iter().peekable();
    (a.into_iter())
        .filter(|pattern| {
            while b.next_if(|other| other < pattern).is_some() {}
            b.next_if_eq(pattern).is_some()
        })
        .count()
}

/// Whether two slots have the same elements but for rounding, in any order and with zeros between.
pub(super) fn share_all(a: &ExecutionSlot, b: &ExecutionSlot) -> bool {
    let both = a.n_bytes.max(b.n_bytes) <= N_BYTES_MAX;
    let both = both.then(|| elements(a).zip(elements(b))).flatten();
    both.is_some_and(|((a, rounding), (b, other))| are_same(&a, &b, rounding.max(other)))
}

/// The elements of a slot, and how far rounding may have moved them, relative to their size.
pub(super) fn elements(slot: &ExecutionSlot) -> Option<(Vec<f64>, f64)> {
    if !slot.has_elements {
        return None;
    }
    let loaded = slot.load(None).ok()?;
    let view = loaded.view();
    let unit = unit(view.dtype)?;
    let elements = ElementValue::all(view.dtype, view.bytes).map(|element| match element {
        ElementValue::Float(value) => Some(value),
        _ => None,
    });
    Some((elements.collect::<Option<_>>()?, N_ROUNDINGS * unit))
}

/// Whether two lists have the same elements in any order, zeros left out.
fn are_same(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    // Sums of magnitudes rule out most candidates, and cost much less than a sort.
    let [size_a, size_b] = [a, b].map(|elements| elements.iter().map(|x| x.abs()).sum::<f64>());
    if (size_a - size_b).abs() > tolerance * size_a.max(size_b) {
        return false;
    }
    let [a, b] = [a, b].map(|elements| {
        let mut kept: Vec<f64> = elements.iter().copied().filter(|x| *x != 0.0).collect();
        kept.sort_by(f64::total_cmp);
        kept
    });
    let largest = a.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let mut pairs = a.iter().zip(&b);
    a.len() == b.len() && pairs.all(|(x, y)| (x - y).abs() <= tolerance * largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_biases_are_folded() {
        let norm = ChannelNorm {
            scale: vec![2.0, 3.0],
            bias: vec![0.5, -0.5],
            mean: vec![1.0, 0.0],
            variance: vec![3.0, 8.0],
        };
        // √(3 + 1) and √(8 + 1).
        let weight = norm.folded_weight(&[1.0, 2.0, 3.0, 4.0], 1.0);
        assert_eq!(weight, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(norm.folded_bias(&[0.0, 1.0], 1.0), [-0.5, 0.5]);
    }

    #[test]
    fn elements_in_common_count_as_often_as_both_have_them() {
        let nan = f64::NAN;
        assert_eq!(n_in_common(&[1.0, 1.0, nan, 3.0], &[nan, 1.0, 2.0, nan]), 2);
        assert_eq!(n_in_common(&[-0.0, 5.0, 5.0], &[5.0, 0.0, 5.0, 5.0]), 2);
        assert_eq!(n_in_common(&[], &[1.0]), 0);
    }

    #[test]
    fn order_and_filling_do_not_count() {
        assert!(are_same(&[3.0, 1.0, 2.0], &[0.0, 1.0, 2.0, 3.0, 0.0], 0.0));
        assert!(!are_same(&[3.0, 1.0, 2.0], &[1.0, 2.0, 3.1], 1e-3));
        assert!(!are_same(&[1.0, f64::NAN], &[1.0, f64::NAN], 1e-3));
        assert!(are_same(&[], &[0.0], 0.0));
    }
}
