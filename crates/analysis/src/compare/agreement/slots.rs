//! Questions about the values that two matched slots show.

use super::values::ValueIndex;
use super::{ComparedValues, folding, is_made_by_partners};
use crate::compare::matching::{MatchedDumps, SlotPair, SlotRef};
use crate::compare::side::ComparedDump;

impl ComparedValues {
    /// The values of both slots.
    pub(super) fn here(&self, slot: &SlotPair) -> Option<[ValueIndex; 2]> {
        let [target, golden] = &self.sides;
        Some([target.value_of(slot.target)?, golden.value_of(slot.golden)?])
    }

    /// Whether the other side has both values.
    pub(super) fn are_found(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|here| (0..2).all(|i| self.equals[i][here[i].0].is_some()))
    }

    /// Whether both slots show the same value, whatever its shape.
    pub(super) fn are_equal(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|[target, golden]| self.equals[0][target.0] == Some(golden))
    }

    /// Whether the target computes a value that golden has too, and reads it where golden reads
    /// another one.
    pub(super) fn is_elsewhere(&self, slot: &SlotPair) -> bool {
        self.here(slot).is_some_and(|[target, golden]| {
            let of = &self.sides[0].values[target.0];
            let equal = self.equals[0][target.0];
            !of.is_outside && of.is_distinctive() && equal.is_some_and(|equal| equal != golden)
        })
    }

    /// Whether a slot may be an inner value of an operator: what golden has elsewhere is not inside
    /// of one, nor is what partners make.
    pub(super) fn may_be_inner(
        &self,
        sides: MatchedDumps<'_>,
        paired: &[[SlotRef; 2]],
        slot: &SlotPair,
    ) -> bool {
        !self.is_elsewhere(slot) && !is_made_by_partners(sides, paired, slot)
    }

    /// Whether an operator whose inputs have a meaning by position reads another input of its
    /// partner, where statistics do not show what it makes of that.
    pub(super) fn is_exchanged(&self, sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
        let dumps = [sides.target, sides.golden];
        self.is_by_order(dumps, [slot.target.run, slot.golden.run])
            && self.is_elsewhere(slot)
            && self.here(slot).is_some_and(|[target, _]| {
                let equal = self.equals[0][target.0];
                equal.is_some_and(|equal| self.sides[1].reads(slot.golden.run, equal))
            })
    }

    /// Whether a slot shows what comes from outside on both sides.
    pub(super) fn are_outside(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|here| (0..2).all(|i| self.sides[i].values[here[i].0].is_outside))
    }

    /// Whether the target shows what none of its operators made, nor the golden side has.
    pub(super) fn is_from_nowhere(&self, slot: &SlotPair) -> bool {
        self.here(slot).is_some_and(|[target, _]| {
            self.sides[0].values[target.0].is_outside && self.is_orphan(0, target)
        })
    }

    /// Whether no operator that the target shows makes a value which it reads in place of one that
    /// golden computes, and no graph says where it is from.
    pub(super) fn is_made_unseen(&self, sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
        let is_unknown = sides.target.is_without_wires() && self.is_from_nowhere(slot);
        let golden = sides.golden.producer_of(slot.golden);
        is_unknown
            && golden.is_some()
            && self
                .here(slot)
                .is_some_and(|[_, golden]| !self.sides[1].values[golden.0].is_outside)
    }

    /// Whether a slot shows values that the other side has too, at least in another order.
    pub(super) fn are_alike(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|here| (0..2).all(|i| !self.is_orphan(i, here[i])))
    }

    /// Whether a value comes from outside and the other side has it nowhere.
    pub(super) fn is_outside_orphan(&self, side: usize, value: ValueIndex) -> bool {
        let of = &self.sides[side].values[value.0];
        of.is_outside && !of.is_extents && self.is_orphan(side, value)
    }

    /// Whether a side has a value that the other has in no order.
    pub(super) fn is_orphan(&self, side: usize, value: ValueIndex) -> bool {
        let own = &self.sides[side].values[value.0];
        let others = &self.sides[1 - side].values;
        own.is_distinctive()
            && self.equals[side][value.0].is_none()
            && !others
                .iter()
                .any(|other| other.is_outside && own.is_permutation_of(other))
    }

    /// Whether a slot shows shapes or indices on both sides, which graphs write in several ways.
    pub(super) fn are_extents(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|here| (0..2).all(|i| self.sides[i].values[here[i].0].is_extents))
    }

    /// Whether a slot shows a value from outside that both sides have in another order.
    pub(super) fn are_permuted(&self, slot: &SlotPair) -> bool {
        self.are_outside(slot)
            && self.here(slot).is_some_and(|[target, golden]| {
                let golden = &self.sides[1].values[golden.0];
                self.sides[0].values[target.0].is_permutation_of(golden)
            })
    }

    /// Whether both read a weight in one shape and with its elements in two orders, though neither
    /// exchanges its axes itself.
    pub(super) fn is_turned(&self, sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
        let both = [(sides.target, slot.target), (sides.golden, slot.golden)];
        let [a, b] = both.map(|(dump, at)| &dump.slot(at).shape);
        let turns = |dump: &ComparedDump, run: usize| {
            let attributes = dump.attributes_of(run).unwrap_or_default();
            let mut turned = attributes
                .given
                .iter()
                .filter(|(name, _)| name.starts_with("trans"));
            turned.any(|(_, text)| *text != "0")
        };
        a.is_some()
            && a == b
            && self.are_permuted(slot)
            && !both.into_iter().any(|(dump, at)| turns(dump, at.run))
    }

    /// Whether one side's slot is what the other's comes to with a batch normalisation multiplied
    /// in.
    pub(super) fn are_folded(&self, sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
        let dumps = [sides.target, sides.golden];
        self.are_outside(slot)
            && (self.is_folded(dumps, 0, slot.target, slot.golden.run)
                || self.is_folded(dumps, 1, slot.golden, slot.target.run))
    }

    /// Whether both sides have the elements of a weight in two orders and rounded otherwise, as two
    /// programs fold it, and nothing that is computed with it differs.
    pub(super) fn are_shuffled(&self, sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
        let MatchedDumps { target, golden, .. } = sides;
        let slots = [(target, slot.target), (golden, slot.golden)];
        let [a, b] = slots.map(|(dump, at)| dump.slot(at));
        self.are_outside(slot) && self.are_rejoined(slot) && folding::share_all(a, b)
    }

    /// Whether a slot shows values that both are right, though they differ.
    pub(super) fn are_sound(&self, slot: &SlotPair) -> bool {
        self.here(slot).is_some_and(|here| {
            let [target, golden] = [0, 1].map(|i| &self.sides[i].values[here[i].0]);
            let are_weights = target.is_outside && golden.is_outside;
            let has_one_length = target.stats.counts.n_elements == golden.stats.counts.n_elements;
            (0..2).all(|i| self.is_sound[i][here[i].0]) && !(are_weights && has_one_length)
        })
    }

    /// The same of outputs that each belong to their operator. One of several that make a value may
    /// be the wrong one, and values that both sides have elsewhere may be exchanged.
    pub(super) fn are_sound_outputs(&self, slot: &SlotPair) -> bool {
        let has_one_maker = self
            .here(slot)
            .is_some_and(|here| (0..2).all(|i| self.sides[i].values[here[i].0].n_makers <= 1));
        has_one_maker && self.are_sound(slot) && !self.are_found(slot)
    }

    /// Whether a slot shows weights of two sizes: one side has several in one.
    pub(super) fn is_stored_apart(&self, slot: &SlotPair) -> bool {
        let lengths = self
            .here(slot)
            .map(|here| [0, 1].map(|i| self.sides[i].values[here[i].0].stats.counts.n_elements));
        self.are_outside(slot) && lengths.is_some_and(|[target, golden]| target != golden)
    }

    /// Whether what is computed from both values agrees again.
    pub(super) fn are_rejoined(&self, slot: &SlotPair) -> bool {
        self.here(slot)
            .is_some_and(|here| (0..2).all(|i| self.is_rejoined[i][here[i].0]))
    }

    /// Whether an output that differs shows another value than its partner, and nothing is wrong
    /// with either: one of them is there under another operator, and the other comes to nothing
    /// new.
    pub(super) fn is_other_pair(&self, slot: &SlotPair, is_doubtful: bool) -> bool {
        let is_found = self
            .here(slot)
            .is_some_and(|here| (0..2).any(|i| self.equals[i][here[i].0].is_some()));
        self.are_rejoined(slot) && (is_found || is_doubtful)
    }
}
