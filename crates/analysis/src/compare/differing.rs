//! Where in a tensor the elements are that differ.
//!
//! Only of the slots at which the sides part, since it takes another pass over the elements.

use opscope_tensor::difference;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::matching::MatchedDumps;
use super::measure::{load, slot_of};
use super::result::{Comparison, SlotResult, VerdictLevel};
use super::verdict::{Thresholds, element_tolerance};

/// The elements of a slot that differ by more than a tolerance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DifferingElements {
    /// The absolute difference beyond which an element counts. NaN and infinities count unless the
    /// other side has the same.
    #[serde(with = "super::result::number")]
    pub tolerance: f64,
    /// How many elements differ.
    pub n: u64,
    /// The extents of the tensor, as they were compared.
    pub shape: Vec<u64>,
    /// For each axis the first index at which an element differs, and the index behind the last.
    pub ranges: Vec<[u64; 2]>,
}

/// Looks for the differing elements of the operators with the first warning and the first failure.
/// Verdicts and summary have to be there.
pub(super) fn locate(
    comparison: &mut Comparison,
    sides: MatchedDumps<'_>,
    thresholds: &Thresholds,
) {
    let summary = &comparison.summary;
    let firsts = [&summary.first_divergence, &summary.first_failure];
    let mut indices: Vec<usize> = firsts.into_iter().flatten().map(|at| at.operator).collect();
    indices.dedup();
    for index in indices {
        let n_slots = comparison.operators[index].slots.len();
        for k in 0..n_slots {
            let operator = &comparison.operators[index];
            let slot = &operator.slots[k];
            if is_located(slot) {
                let tolerance = element_tolerance(operator, slot, thresholds);
                let found = differing(sides, (index, k), tolerance);
                comparison.operators[index].slots[k].differing = found;
            }
        }
    }
}

/// Whether it differs, and has elements.
fn is_located(slot: &SlotResult) -> bool {
    slot.evidence == Evidence::Tensor
        && matches!(slot.level, VerdictLevel::Warn | VerdictLevel::Fail)
}

fn differing(
    sides: MatchedDumps<'_>,
    (operator, slot): (usize, usize),
    tolerance: f64,
) -> Option<DifferingElements> {
    // Operators and slots of the result are in the order of the pairs that they were measured from.
    let pair = sides.matching.pairs.get(operator)?.slots.get(slot)?;
    let slots = (
        slot_of(sides.target, pair.target),
        slot_of(sides.golden, pair.golden),
    );
    // They were read before; what has become of them since is no reason to give up the result.
    let [a, b] = load(slots, pair.layout).ok()?;
    let found = difference::extent(a.view(), b.view(), tolerance).ok()??;
    Some(DifferingElements {
        tolerance,
        n: found.n,
        shape: a.shape().dims().iter().map(|&dim| dim as u64).collect(),
        ranges: found.ranges,
    })
}

impl DifferingElements {
    /// The number of elements of the tensor.
    pub fn n_elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// The region as Python would index it: `[37, :, 2:4]`. `None` if it is the whole tensor.
    pub fn region(&self) -> Option<String> {
        let axes = self.ranges.iter().zip(&self.shape);
        let is_whole = |(&range, &dim): (&[u64; 2], &u64)| range == [0, dim];
        if axes.clone().all(is_whole) {
            return None;
        }
        let axes = axes.map(|(&[first, end], &dim)| match (first, end) {
            // An axis of 1 is a whole axis, whatever its only index is.
            (0, end) if end == dim => ":".to_owned(),
            (first, end) if end.checked_sub(1) == Some(first) => first.to_string(),
            (first, end) => format!("{first}:{end}"),
        });
        Some(format!("[{}]", axes.collect::<Vec<_>>().join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::DifferingElements;

    #[test]
    fn regions_are_indices_of_python() {
        let check = |shape: &[u64], ranges: &[[u64; 2]], expected: Option<&str>| {
            let differing = DifferingElements {
                shape: shape.to_vec(),
                ranges: ranges.to_vec(),
                ..DifferingElements::default()
            };
            assert_eq!(differing.region().as_deref(), expected, "{shape:?}");
        };
        check(&[], &[], None);
        check(&[4], &[[0, 4]], None);
        check(&[1, 4], &[[0, 1], [0, 4]], None);
        check(&[4], &[[3, 4]], Some("[3]"));
        check(&[1, 4], &[[0, 1], [1, 3]], Some("[:, 1:3]"));
        check(
            &[64, 3, 7, 7],
            &[[37, 38], [0, 3], [0, 7], [0, 7]],
            Some("[37, :, :, :]"),
        );
        // A saved result may hold anything.
        check(
            &[2],
            &[[u64::MAX - 1, u64::MAX]],
            Some("[18446744073709551614]"),
        );
        check(&[2, 3], &[[0, 2]], None);
    }
}
