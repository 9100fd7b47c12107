//! Ways in which ranks may share a tensor without a note.
//!
//! The ranks of a mesh cut one axis or two. An axis may consist of several, as that of a flattened
//! batch does, and then its sections are cut one by one.

use super::likeness::{are_replicas, found_parts};
use super::note::{FoundPart, in_parts_of};
use super::shared_axis::SharedAxis;
use super::tensor::WholeTensor;

/// Maximum number of numbers of sections that are tried for an axis.
const N_SECTIONS_TRIED_MAX: usize = 12;

/// The axes that ranks share, in the order in which they are cut. An axis may be cut twice.
#[derive(Clone, PartialEq)]
pub(super) struct TensorShare(pub(super) Vec<SharedAxis>);

impl TensorShare {
    pub(super) fn put_together(&self, whole: &WholeTensor) -> Option<WholeTensor> {
        let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
        let is_of_these = self.0.iter().all(|cut| cut.places.len() == parts.len());
        let mut found = is_of_these.then(|| in_parts_of(&parts, &self.0).ok())??;
        found.divisor = whole.divisor;
        Some(found)
    }

    pub(super) fn n_parts(&self) -> u64 {
        self.0.iter().map(|cut| cut.n_parts).product()
    }

    /// The same ranks in other orders, or with sections of the axis; `shape` is that of a part.
    pub(super) fn variants(&self, shape: &[u64]) -> Vec<TensorShare> {
        match &self.0[..] {
            [cut] => {
                let nested = two_factors(cut).into_iter();
                let nested = nested.flat_map(|[outer, inner]| {
                    let same = TensorShare(vec![outer.clone(), inner.clone()]);
                    let cuts = with_sections(&inner, shape).into_iter();
                    let cuts = cuts.map(move |inner| TensorShare(vec![outer.clone(), inner]));
                    std::iter::once(same).chain(cuts)
                });
                let sections = with_sections(cut, shape).into_iter();
                let sections = sections.map(|cut| TensorShare(vec![cut]));
                sections.chain(nested).collect()
            }
            [a, b] => {
                let turned = [(b, a), (a, b)].map(|(outer, inner)| grid([outer, inner]));
                turned.into_iter().filter(|share| share != self).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// An axis with each number of sections that its length allows.
fn with_sections(cut: &SharedAxis, shape: &[u64]) -> Vec<SharedAxis> {
    let length = shape.get(cut.axis).copied().unwrap_or(0);
    let divisors = (2..=length).filter(|n| length.is_multiple_of(*n));
    let divisors = divisors.filter_map(|n| usize::try_from(n).ok());
    let sections = divisors.take(N_SECTIONS_TRIED_MAX);
    sections
        .map(|n_sections| SharedAxis {
            n_sections,
            ..cut.clone()
        })
        .collect()
}

/// An axis that ranks cut twice, as the batch and the sequences in it.
fn two_factors(cut: &SharedAxis) -> Vec<[SharedAxis; 2]> {
    let n = cut.n_parts;
    if n != cut.places.len() as u64 {
        return Vec::new();
    }
    let factors = (2..n).filter(|outer| n.is_multiple_of(*outer));
    let both = factors.flat_map(|outer| {
        let [last, first] = places_of([outer, n / outer]);
        let [outer_last, outer_first] = [last, first].map(|[a, b]| {
            [
                SharedAxis::new(cut.axis, a, outer),
                SharedAxis::new(cut.axis, b, n / outer),
            ]
        });
        [outer_last, outer_first]
    });
    both.collect()
}

/// The places of ranks on a grid: with neighbours along its second axis, or along its first.
fn places_of([a, b]: [u64; 2]) -> [[Vec<u64>; 2]; 2] {
    let ranks = || 0..a * b;
    [
        [
            ranks().map(|r| r / b).collect(),
            ranks().map(|r| r % b).collect(),
        ],
        [
            ranks().map(|r| r % a).collect(),
            ranks().map(|r| r / a).collect(),
        ],
    ]
}

/// Two axes that the ranks of a grid share, with neighbours along the inner one.
fn grid([outer, inner]: [&SharedAxis; 2]) -> TensorShare {
    let [[a, b], _] = places_of([outer.n_parts, inner.n_parts]);
    let mut cuts = vec![
        SharedAxis::new(outer.axis, a, outer.n_parts),
        SharedAxis::new(inner.axis, b, inner.n_parts),
    ];
    // What is one share has one description.
    cuts.sort_by_key(|cut| cut.axis);
    TensorShare(cuts)
}

/// The shares by which ranks with tensors of a shape have one of another shape, which is longer
/// along one axis or two, in as many parts as ranks have.
pub(super) fn shares_of(whole: &WholeTensor, others: &[u64]) -> Vec<TensorShare> {
    if whole.shape.len() != others.len() {
        return Vec::new();
    }
    let longer: Vec<(usize, u64)> = (0..others.len())
        .filter(|&axis| whole.shape[axis] != others[axis])
        .map(|axis| {
            let n = others[axis].checked_div(whole.shape[axis]).unwrap_or(0);
            let is_filled = n > 1 && n.checked_mul(whole.shape[axis]) == Some(others[axis]);
            (axis, if is_filled { n } else { 0 })
        })
        .collect();
    match longer[..] {
        [(axis, n)] if n > 1 => one_axis(whole.parts.len(), axis, n),
        [(a, n), (b, m)] if n.checked_mul(m) == Some(whole.parts.len() as u64) => {
            let cuts = [(a, n), (b, m)].map(|(axis, n)| SharedAxis::new(axis, Vec::new(), n));
            vec![grid([&cuts[0], &cuts[1]]), grid([&cuts[1], &cuts[0]])]
        }
        _ => Vec::new(),
    }
}

/// The shares of an axis in `n` parts. With other axes of the mesh, several ranks hold the same
/// part: neighbours, or ranks as far apart as there are parts.
fn one_axis(n_ranks: usize, axis: usize, n: u64) -> Vec<TensorShare> {
    let Some(n_replicas) = (n_ranks as u64)
        .checked_div(n)
        .filter(|each| each * n == n_ranks as u64)
    else {
        return Vec::new();
    };
    let [[neighbours, _], [interleaved, _]] = places_of([n, n_replicas]);
    let mut places = vec![neighbours, interleaved];
    places.dedup();
    let cuts = places.into_iter();
    cuts.map(|places| TensorShare(vec![SharedAxis::new(axis, places, n)]))
        .collect()
}

/// Whether the ranks that hold one part have the same.
pub(super) fn has_equal_replicas(whole: &WholeTensor, share: &TensorShare) -> bool {
    match &share.0[..] {
        [cut] if cut.n_parts < cut.places.len() as u64 => are_replicas(whole, &cut.places),
        _ => true,
    }
}

/// The shares by which ranks of both sides have one tensor, in different numbers of parts or, if
/// `is_same`, in as many.
pub(super) fn joint_shares(wholes: [&WholeTensor; 2]) -> Vec<[TensorShare; 2]> {
    let [a, b] = wholes;
    if a.shape.len() != b.shape.len() || a.dtype != b.dtype {
        return Vec::new();
    }
    let n_ranks = wholes.map(|whole| whole.parts.len());
    let differing: Vec<usize> = (0..a.shape.len())
        .filter(|&axis| a.shape[axis] != b.shape[axis])
        .collect();
    let axes = match differing[..] {
        [] => (0..a.shape.len()).collect(),
        [axis] => vec![axis],
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for axis in axes {
        // The most parts first: fewer mean that ranks hold the same.
        for n in (2..=n_ranks[0] as u64).rev() {
            let extent = n.checked_mul(a.shape[axis]);
            let others = extent.and_then(|extent| {
                let n = extent.checked_div(b.shape[axis])?;
                (n > 1 && n * b.shape[axis] == extent).then_some(n)
            });
            let Some(n_others) = others else {
                continue;
            };
            let goldens = one_axis(n_ranks[1], axis, n_others);
            for own in one_axis(n_ranks[0], axis, n) {
                let both = goldens.iter().map(|other| [own.clone(), other.clone()]);
                let is_possible = |pair: &[TensorShare; 2]| {
                    let mut pairs = wholes.into_iter().zip(pair);
                    pairs.all(|(whole, share)| has_equal_replicas(whole, share))
                };
                found.extend(both.filter(is_possible));
            }
        }
    }
    found
}
