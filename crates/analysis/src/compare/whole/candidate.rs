//! Candidates for how ranks share a tensor, by comparison with the other side.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_store::record::parallel::Reduction;

use super::likeness::{SquareSums, TOLERANCE, agree, are_replicas, found_parts, is_float, sums};
use super::note::{FoundPart, contributions_of, in_parts_of};
use super::share::{TensorShare, has_equal_replicas, joint_shares, shares_of};
use super::tensor::{InferredReplicas, WholeTensor};
use super::unlike::N_UNLIKE_BYTES_MAX;
use crate::compare::side::{ExecutionSlot, SlotRef};

/// A way in which ranks may share a tensor: the shapes of a part, of the whole, and of what the
/// other side has of it.
pub(super) type SharedShape = [Vec<u64>; 3];

/// How the ranks of a side share a tensor, and those of the other side if it is in parts there.
#[derive(Clone, PartialEq)]
pub(super) struct BothShares {
    pub(super) own: TensorShare,
    other: Option<TensorShare>,
}

impl BothShares {
    fn variants(&self, own: &[u64], other: &[u64]) -> Vec<BothShares> {
        let owns = self.own.variants(own).into_iter();
        let Some(share) = &self.other else {
            return owns.map(|own| BothShares { own, other: None }).collect();
        };
        let others = share.variants(other);
        let form = |share: &TensorShare| (share.0.len(), share.0.last().map(|cut| cut.n_sections));
        // Both sides cut the same sections.
        let both = owns.filter_map(|own| {
            let other = others.iter().find(|other| form(other) == form(&own))?;
            Some(BothShares {
                other: Some(other.clone()),
                own,
            })
        });
        both.collect()
    }
}

/// The tensor of the other side in place of a slot.
#[derive(Clone, Copy)]
pub(super) enum OtherTensor<'a> {
    /// A tensor, which all of its ranks have.
    One(&'a ExecutionSlot),
    /// Another tensor on each rank.
    Parts(&'a WholeTensor),
}

impl<'a> OtherTensor<'a> {
    pub(super) fn from_slot(slot: &'a ExecutionSlot) -> OtherTensor<'a> {
        match slot.whole() {
            Some(whole) if is_open(whole) => {
                if are_replicas(whole, &vec![0; whole.parts.len()]) {
                    OtherTensor::One(&whole.parts[0].slot)
                } else {
                    OtherTensor::Parts(whole)
                }
            }
            _ => OtherTensor::One(slot),
        }
    }

    pub(super) fn dims(self) -> &'a [u64] {
        match self {
            OtherTensor::One(slot) => slot.dims(),
            OtherTensor::Parts(whole) => &whole.shape,
        }
    }
}

/// Whether nothing says how ranks share a tensor.
pub(super) fn is_open(whole: &WholeTensor) -> bool {
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    whole.parts.len() > 1 && !is_noted && whole.reduction.is_none()
}

/// A tensor of the other side, where its ranks share it as a slot of that side.
fn whole_slot(whole: &WholeTensor) -> Option<ExecutionSlot> {
    let first = &whole.parts.first()?.slot;
    Some(ExecutionSlot::of_whole(first, Arc::new(whole.clone())))
}

/// A slot of a side with another way to put it together.
pub(super) struct InferredSlot<'a> {
    pub(super) at: SlotRef,
    pub(super) whole: WholeTensor,
    other: OtherTensor<'a>,
    /// How the other side puts its parts together, if it has some.
    other_whole: Option<ExecutionSlot>,
    /// Whether it is a gradient, which belongs to the loss of each rank's part.
    is_backward: bool,
    /// The numbers of parts of both sides.
    pub(super) n_parts: [u64; 2],
    /// None of contributions, which a collective proves.
    pub(super) shared: Option<(SharedShape, BothShares)>,
}

impl<'a> InferredSlot<'a> {
    pub(super) fn new(at: SlotRef, whole: WholeTensor, other: OtherTensor<'a>) -> InferredSlot<'a> {
        InferredSlot {
            at,
            whole,
            other,
            other_whole: None,
            is_backward: false,
            n_parts: [1, 1],
            shared: None,
        }
    }

    /// A slot whose ranks share it in these ways; none if the parts do not fit together.
    fn shared(
        (at, whole): (SlotRef, &WholeTensor),
        other: OtherTensor<'a>,
        shares: BothShares,
    ) -> Option<InferredSlot<'a>> {
        let mut slot = InferredSlot::new(at, shares.own.put_together(whole)?, other);
        let shapes = [&whole.shape, &slot.whole.shape, &other.dims().to_vec()].map(Vec::clone);
        slot.n_parts = [
            shares.own.n_parts(),
            shares.other.as_ref().map_or(1, TensorShare::n_parts),
        ];
        slot.other_whole = other_by(other, &shares)?;
        slot.shared = Some((shapes, shares));
        Some(slot)
    }

    /// The sums of squares of both sides, if they can be compared.
    fn sums(&self) -> Option<SquareSums> {
        match (&self.other_whole, self.other) {
            (Some(other), _) | (None, OtherTensor::One(other)) => sums(&self.whole, other),
            _ => None,
        }
    }

    pub(super) fn agrees(&self) -> bool {
        let sums = self.sums();
        sums.is_some_and(|sums| sums.agree(self.whole.dtype))
    }

    /// The number by which the elements are divided that are as many times as large as those of the
    /// other side as there are more parts, along all axes or along one.
    fn divisor(&self) -> Option<u32> {
        let [own, other] = self.n_parts;
        if !is_float(self.whole.dtype) || own == other {
            return None;
        }
        let cuts = self
            .shared
            .as_ref()
            .map_or(&[][..], |(_, both)| &both.own.0);
        let one = cuts.iter().map(|cut| cut.n_parts).filter(|n| *n < own);
        let sums = self.sums()?;
        let ratio = (sums.own / sums.other).sqrt() * other as f64;
        let found = std::iter::once(own)
            .chain(one)
            .find(|&n| (ratio / n as f64 - 1.0).abs() <= TOLERANCE);
        u32::try_from(found?).ok()
    }

    /// Divides what is a gradient by the number of parts, if it is so many times as large.
    pub(super) fn divide(&mut self, is_backward: bool) {
        self.is_backward = is_backward;
        self.whole.divisor = 1;
        if is_backward {
            self.whole.divisor = self.divisor().unwrap_or(1);
        }
    }

    /// The same parts put together in other ways.
    fn by(&self, shares: &BothShares) -> Option<InferredSlot<'a>> {
        let other_whole = other_by(self.other, shares)?;
        let (shapes, _) = self.shared.as_ref()?;
        let mut slot = InferredSlot {
            whole: shares.own.put_together(&self.whole)?,
            other_whole,
            shared: Some((shapes.clone(), shares.clone())),
            ..*self
        };
        slot.divide(self.is_backward);
        Some(slot)
    }

    /// The slot in the ways of those of its shape that agree; of several ways the nearest.
    pub(super) fn cut_as(self, borne_out: &HashMap<SharedShape, Vec<BothShares>>) -> Option<Self> {
        let Some((shapes, shares)) = &self.shared else {
            return Some(self);
        };
        let nearest = match &borne_out.get(shapes)?[..] {
            [only] => only,
            several => {
                let distances = several.iter().filter_map(|shares| {
                    let slot = self.by(shares)?;
                    Some((shares, slot.sums()?.distance()))
                });
                distances.min_by(|a, b| a.1.total_cmp(&b.1))?.0
            }
        };
        if nearest == shares {
            return Some(self);
        }
        self.by(nearest)
    }

    /// The ways in which it agrees, first those of `known`.
    pub(super) fn agreeing(&self, shares: &BothShares, known: &[BothShares]) -> Option<BothShares> {
        if known.contains(shares) || known.is_empty() {
            let is_plain = self.agrees();
            if is_plain || self.whole.n_bytes() > N_UNLIKE_BYTES_MAX {
                return is_plain.then(|| shares.clone());
            }
        }
        let local = self
            .shared
            .as_ref()
            .map_or(&[][..], |([local, ..], _)| local);
        let variants = shares.variants(local, self.other.dims());
        let others = variants.iter().filter(|shares| !known.contains(shares));
        let mut all = known.iter().chain(others);
        all.find(|shares| self.by(shares).is_some_and(|slot| slot.agrees()))
            .cloned()
    }
}

/// The other side's parts in the way that was found for them; `Some(None)` if it has none.
fn other_by(other: OtherTensor<'_>, shares: &BothShares) -> Option<Option<ExecutionSlot>> {
    match (other, &shares.other) {
        (OtherTensor::Parts(whole), Some(share)) => {
            Some(Some(whole_slot(&share.put_together(whole)?)?))
        }
        _ => Some(None),
    }
}

/// The sum, or another reduction, of what all ranks hold, if that is not the same.
fn summed(
    whole: &WholeTensor,
    other: Option<&ExecutionSlot>,
    (reduction, n_ranks): (Reduction, usize),
) -> Option<WholeTensor> {
    let is_same = || are_replicas(whole, &vec![0; whole.parts.len()]);
    if !is_open(whole) || whole.parts.len() != n_ranks || is_same() {
        return None;
    }
    let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
    let reduced = contributions_of(&parts, reduction).ok()?;
    // Another reduction than the contributions need is a fault of the collective.
    let sum = || contributions_of(&parts, Reduction::Sum).ok();
    let other = other.filter(|other| reduction != Reduction::Sum && !agree(&reduced, other));
    let sum = other.and_then(|other| sum().filter(|sum| agree(sum, other)));
    Some(sum.unwrap_or(reduced))
}

/// How a collective reduces a value, and over how many ranks.
pub(super) type ValueReduction = (Reduction, usize);

/// The slot as the sum of what its ranks hold, where a collective computes it.
pub(super) fn reduced_like<'a>(
    (at, whole): (SlotRef, &WholeTensor),
    other: OtherTensor<'a>,
    reduced: [Option<&ValueReduction>; 2],
) -> Option<InferredSlot<'a>> {
    if whole.shape != other.dims() {
        return None;
    }
    let own = *reduced[0]?;
    let mut slot = InferredSlot::new(at, whole.clone(), other);
    let one = match other {
        OtherTensor::One(slot) => Some(slot),
        OtherTensor::Parts(parts) => {
            let of_other = *reduced[1]?;
            slot.other_whole = Some(whole_slot(&summed(parts, None, of_other)?)?);
            slot.n_parts[1] = of_other.1 as u64;
            None
        }
    };
    slot.whole = summed(whole, one, own)?;
    slot.n_parts[0] = own.1 as u64;
    Some(slot)
}

/// The slot along the axes that are longer on the other side, or that both sides share in other
/// numbers of parts.
pub(super) fn shared_like<'a>(
    (at, whole): (SlotRef, &WholeTensor),
    other: OtherTensor<'a>,
) -> Option<InferredSlot<'a>> {
    if !is_open(whole) || whole.shape == other.dims() {
        return None;
    }
    let one = match other {
        OtherTensor::One(one) => one,
        OtherTensor::Parts(parts) => {
            let mut pairs = joint_shares([whole, parts]).into_iter();
            return pairs.find_map(|pair| InferredSlot::shared((at, whole), other, both(pair)));
        }
    };
    let shares = shares_of(whole, other.dims());
    let is_usual = |share: &&TensorShare| has_equal_replicas(whole, share);
    if let Some(own) = shares.iter().find(is_usual) {
        let own = own.clone();
        return InferredSlot::shared((at, whole), other, BothShares { own, other: None });
    }
    shares.into_iter().find_map(|own| {
        let found = with_wrong_replicas(whole, &own, one)?;
        let shares = BothShares { own, other: None };
        let slot = InferredSlot::shared((at, whole), other, shares)?;
        Some(InferredSlot {
            whole: found,
            ..slot
        })
    })
}

/// The slot as ranks of both sides share it in equally many parts, if it agrees so; or as the sum of
/// their contributions.
pub(super) fn shared_alike<'a>(
    (at, whole): (SlotRef, &WholeTensor),
    other: OtherTensor<'a>,
    reduced: [Option<&ValueReduction>; 2],
) -> Option<InferredSlot<'a>> {
    let OtherTensor::Parts(parts) = other else {
        return None;
    };
    let is_same = || are_replicas(whole, &vec![0; whole.parts.len()]);
    if !is_open(whole) || whole.shape != parts.shape || reduced != [None, None] || is_same() {
        return None;
    }
    let pairs = joint_shares([whole, parts]).into_iter();
    let mut slots = pairs.filter_map(|pair| InferredSlot::shared((at, whole), other, both(pair)));
    let agreeing = slots.find(InferredSlot::agrees);
    agreeing.or_else(|| {
        let sums = [whole, parts].map(|whole| {
            let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
            contributions_of(&parts, Reduction::Sum).ok()
        });
        let [Some(own), Some(golden)] = sums else {
            return None;
        };
        let mut slot = InferredSlot::new(at, own, other);
        slot.other_whole = Some(whole_slot(&golden)?);
        slot.agrees().then_some(slot)
    })
}

fn both([own, other]: [TensorShare; 2]) -> BothShares {
    BothShares {
        own,
        other: Some(other),
    }
}

/// A tensor of which several ranks hold each part, and some of them another one than the other side.
fn with_wrong_replicas(
    whole: &WholeTensor,
    share: &TensorShare,
    other: &ExecutionSlot,
) -> Option<WholeTensor> {
    let [cut] = &share.0[..] else {
        return None;
    };
    if whole.n_bytes() > N_UNLIKE_BYTES_MAX {
        return None;
    }
    let mut parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
    let mut cut = cut.clone();
    // Of the ranks that hold a part the first is read.
    for _ in 0..2 {
        let mut found = in_parts_of(&parts, std::slice::from_ref(&cut)).ok()?;
        if agree(&found, other) {
            found.inferred = Some(InferredReplicas::Single);
            for (n, part) in (0..).zip(&mut found.parts) {
                part.noted.push(n);
            }
            return Some(found);
        }
        parts.reverse();
        cut.places.reverse();
    }
    None
}
