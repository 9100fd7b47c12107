//! Finds values that the other side also has, under whatever operator.
//!
//! Operators are matched by names, types and order. If the two graphs are built differently, some
//! matched operators compute different things, and their outputs differ without an error. Elements
//! decide: either the value of the target's operator is in the golden dump under another operator,
//! or it is not, because the golden graph never computes it, but everything computed from it is.
//!
//! A side's *values* are its tensors by elements: slots with the same elements show one value, so
//! that views and casts without effect do not count, and the readers of a value are known without a
//! recorded graph. A value is *found* if the other side has one that agrees with it. It is
//! *rejoined* if it is found, or if every operator that reads it produces rejoined values.

mod anchors;
mod arranged;
mod coverage;
mod folding;
mod parting;
mod parting_operators;
mod readers;
mod reading;
mod region;
mod rewired;
mod search;
mod shifted;
mod slots;
mod soundness;
mod values;

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use self::arranged::find_arranged;
use self::parting::PartingPair;
use self::search::find_equals;
use self::soundness::{find_equal_masks, find_sums_in_other_order};
pub(super) use self::values::{CAST_TYPES, is_one_of};
use self::values::{SideValues, ValueIndex};
use super::matching::{
    MatchEvidence, MatchedDumps, RunPair, SharedValues, SlotPair, SlotRef, ValueAnchor,
    is_same_type, is_view, unseen,
};
use super::party::Party;
use super::result::{
    Cause, Comparison, Evidence, MetricId, OperatorName, OperatorPlace, OperatorResult,
    SlotAgreement, SlotResult, VerdictLevel,
};
use super::verdict::Thresholds;

/// Maximum number of views between an operator and one that reads its result.
const N_VIEWS_MAX: usize = 4;
/// The difference between a code of 8 bits with a sign and the same without.
const HALF_OF_CODES: f64 = 128.0;

/// Both sides of a place, with what each has of the other.
struct ComparedValues {
    sides: [SideValues; 2],
    /// Of each side, the value of the other that each value agrees with.
    equals: [Vec<Option<ValueIndex>>; 2],
    /// Of each side, whether a value is found, or everything that was computed from it is.
    is_rejoined: [Vec<bool>; 2],
    /// Of each side, whether a value is found, or something was computed from it that it could not
    /// be if the value was wrong.
    is_sound: [Vec<bool>; 2],
    /// Matched operators.
    anchors: Vec<ValueAnchor>,
    /// Operators at which the sides part, in the order of execution.
    parting: Vec<PartingPair>,
    /// Pairs that are left of the parts of a value, all others of which have the same values.
    last_parts: Vec<[usize; 2]>,
    /// Whether a side lacks operators that the other shows.
    is_partial: bool,
}

/// The values of all places at which something differs, or has no partner.
pub(super) struct Agreement {
    places: Vec<(OperatorPlace, ComparedValues)>,
    /// Pairs whose names are certain, sorted: a map of all takes twice the memory.
    certain: Vec<[usize; 2]>,
}

/// Golden's execution in the pair of a target's execution, if there is one.
fn partner_in(sorted: &[[usize; 2]], target: usize) -> Option<usize> {
    let at = sorted.binary_search_by_key(&target, |pair| pair[0]).ok()?;
    Some(sorted[at][1])
}

impl Agreement {
    /// Looks for all values of both sides on the other. Verdicts have to be there. Where everything
    /// has a partner and agrees, or a partner that is certain, nothing is read.
    pub(super) fn search(
        comparison: &Comparison,
        sides: MatchedDumps<'_>,
        mut certain: Vec<[usize; 2]>,
        thresholds: &Thresholds,
        n_threads: usize,
    ) -> Agreement {
        let mut partners: HashMap<OperatorPlace, OperatorPlace> = HashMap::new();
        let mut searched: BTreeSet<OperatorPlace> = BTreeSet::new();
        certain.sort_unstable();
        let mut is_open: HashSet<OperatorPlace> = HashSet::new();
        for (pair, operator) in sides.matching.pairs.iter().zip(&comparison.operators) {
            let (Some(&target), Some(&golden)) = (pair.target.first(), pair.golden.first()) else {
                continue;
            };
            let target = sides.target.runs[target].place.rank_step();
            let golden = sides.golden.runs[golden].place.rank_step();
            partners.entry(target).or_insert(golden);
            if operator.slots.iter().any(is_apart) {
                searched.insert(target);
            }
            let mut runs = pair.target.iter();
            if !runs.all(|&run| partner_in(&certain, run).is_some()) {
                is_open.insert(target);
            }
        }
        let target_of: HashMap<OperatorPlace, OperatorPlace> =
            partners.iter().map(|(t, g)| (*g, *t)).collect();
        for unmatched in &sides.matching.unmatched {
            if unmatched.party == Party::Target {
                let place = sides.target.runs[unmatched.run].place.rank_step();
                searched.insert(place);
                is_open.insert(place);
            } else {
                let place = sides.golden.runs[unmatched.run].place.rank_step();
                is_open.extend(target_of.get(&place));
            }
        }
        searched.retain(|place| is_open.contains(place));
        let runs = [sides.target, sides.golden].map(|side| {
            let mut runs: HashMap<OperatorPlace, Vec<usize>> = HashMap::new();
            for (i, run) in side.runs.iter().enumerate() {
                runs.entry(run.place.rank_step()).or_default().push(i);
            }
            runs
        });
        let unseen = unseen::find(sides);
        let places = searched.into_iter().filter_map(|target| {
            let golden = *partners.get(&target)?;
            let runs = [runs[0].get(&target)?, runs[1].get(&golden)?];
            let mut values = ComparedValues::search(sides, (runs, &unseen), thresholds, n_threads);
            values.yield_to(&certain);
            Some((target, values))
        });
        let places: Vec<_> = places.collect();
        for (_, values) in &places {
            let parts = values.last_parts.iter().filter(|pair| {
                let mut anchors = values.anchors.iter();
                anchors.any(|anchor| anchor.runs == **pair)
            });
            for part in parts {
                match certain.binary_search_by_key(&part[0], |pair| pair[0]) {
                    Ok(at) => certain[at] = *part,
                    Err(at) => certain.insert(at, *part),
                }
            }
        }
        Agreement { places, certain }
    }

    /// Executions with equal outputs.
    pub(super) fn anchors(&self) -> Vec<ValueAnchor> {
        let places = self.places.iter();
        places
            .flat_map(|(_, values)| values.anchors.clone())
            .collect()
    }

    /// The slots of both sides that show the same elements.
    pub(super) fn shared(&self) -> SharedValues {
        let mut shared = SharedValues::default();
        // Values of different places have nothing in common, and may have the same numbers.
        let mut n_before = 0;
        for (_, values) in &self.places {
            let [target, golden] = &values.sides;
            let same = target.identical(golden);
            let partner = |value: ValueIndex| values.equals[0][value.0].or(same[value.0]);
            let mut is_shared = vec![false; golden.values.len()];
            for (slot, value) in target.slots() {
                if let Some(partner) = partner(value) {
                    is_shared[partner.0] = true;
                    shared.of_slot[0].insert(slot, n_before + partner.0);
                }
            }
            shared.is_partial |= values.is_partial;
            let distinctive = golden.values.iter().enumerate();
            let distinctive = distinctive.filter(|(_, value)| value.is_distinctive());
            shared.distinctive.extend(distinctive.map(|(at, own)| {
                // What nothing makes here may be what is not shown here.
                let other = values.equals[1][at].map(|other| &target.values[other.0]);
                let is_weight = own.is_outside && other.is_none_or(|other| other.is_outside);
                (n_before + at, is_weight)
            }));
            let of_golden = golden.slots().filter(|(_, value)| is_shared[value.0]);
            shared.of_slot[1].extend(of_golden.map(|(slot, value)| (slot, n_before + value.0)));
            n_before += golden.values.len();
        }
        shared
    }

    /// Marks differing slots that are not evidence of a fault, and returns whether there are any.
    /// Verdicts have to be there, and have to be given again then. Ends the search, whose memory
    /// the examination of the contract needs.
    pub(super) fn note(self, comparison: &mut Comparison, sides: MatchedDumps<'_>) -> bool {
        let of_place: HashMap<OperatorPlace, &ComparedValues> = self
            .places
            .iter()
            .map(|(place, values)| (*place, values))
            .collect();
        let mut is_any = false;
        let mut rewired = Vec::new();
        // Nothing asks for them where all slots agree.
        let paired = LazyCell::new(|| paired_slots(sides));
        let pairs = sides.matching.pairs.iter();
        for (pair, operator) in pairs.zip(&mut comparison.operators) {
            let mut runs = pair.target.iter();
            operator.is_certain = runs.all(|&run| partner_in(&self.certain, run).is_some());
            let run = pair
                .target
                .first()
                .and_then(|&run| sides.target.runs.get(run));
            let values = run.and_then(|run| of_place.get(&run.place.rank_step()));
            let Some(values) = values.filter(|_| operator.slots.iter().any(is_apart)) else {
                continue;
            };
            is_any |= values.note_pair(sides, &paired, pair, operator);
            rewired.extend(values.rewired_pair(sides, pair, operator));
        }
        comparison.is_partial = self.places.iter().any(|(_, values)| values.is_partial);
        let partings = self.places.iter();
        comparison.partings = partings
            .flat_map(|(_, values)| values.parting_operators(sides, &comparison.operators))
            .collect();
        let operators = &comparison.operators;
        comparison.partings.retain(|parting| {
            // An operator is not the cause of what it reads, whatever it should read.
            let is_told = parting.cause != Cause::Own || !parting.rewired.is_empty();
            let operator = &operators[parting.operator];
            let mut inputs = operator.inputs();
            let is_given =
                |slot: &SlotResult| is_apart(slot) && slot.agreement.is_none() && !slot.is_outside;
            let is_listed = operator.target.contains(&parting.name);
            is_told || !is_listed || parting.change.is_some() || !inputs.any(is_given)
        });
        let partings = &mut comparison.partings;
        for found in rewired {
            if partings
                .iter()
                .all(|known| known.operator != found.operator)
            {
                partings.push(found);
            }
        }
        partings.sort_by_key(|parting| parting.operator);
        is_any || !comparison.partings.is_empty()
    }
}

/// The slots of all pairs, sorted: a set of a million takes four times the memory.
fn paired_slots(sides: MatchedDumps<'_>) -> Vec<[SlotRef; 2]> {
    let pairs = sides.matching.pairs.iter();
    let slots = pairs.flat_map(|pair| &pair.slots);
    let mut paired: Vec<[SlotRef; 2]> = slots.map(|slot| [slot.target, slot.golden]).collect();
    paired.sort_unstable();
    paired
}

/// Whether the inputs of a pair read outputs of partners, but for views that have none.
fn is_made_by_partners(sides: MatchedDumps<'_>, paired: &[[SlotRef; 2]], slot: &SlotPair) -> bool {
    let target = made_before_views(sides.target, slot.target);
    let golden = made_before_views(sides.golden, slot.golden);
    let mut both = target
        .iter()
        .flat_map(|t| golden.iter().map(move |g| [*t, *g]));
    both.any(|made| paired.binary_search(&made).is_ok())
}

/// The output that an input reads, and what views made it from.
fn made_before_views(dump: &super::side::ComparedDump, slot: SlotRef) -> Vec<SlotRef> {
    let made = |slot: &SlotRef| {
        let made = dump.producer_of(*slot)?;
        is_view(&dump.runs[made.run]).then(|| dump.inputs_of(made.run).next())?
    };
    let inputs = std::iter::successors(Some(slot), made).take(N_VIEWS_MAX);
    inputs.filter_map(|slot| dump.producer_of(slot)).collect()
}

impl ComparedValues {
    /// Leaves alone what belongs together whatever its values are.
    fn yield_to(&mut self, certain: &[[usize; 2]]) {
        let goldens: HashSet<usize> = certain.iter().map(|pair| pair[1]).collect();
        self.anchors.retain(|anchor| {
            let [target, golden] = anchor.runs;
            partner_in(certain, target).is_none() && !goldens.contains(&golden)
        });
        for pair in &mut self.parting {
            match partner_in(certain, pair.target) {
                Some(golden) => {
                    pair.golden = Some(golden);
                    pair.others.clear();
                }
                None => pair.golden = pair.golden.filter(|golden| !goldens.contains(golden)),
            }
        }
    }

    /// The differing outputs of a pair that are not evidence of a fault, whose slots the other side
    /// has elsewhere.
    fn excused_outputs(
        &self,
        pair: &RunPair,
        operator: &OperatorResult,
        is_certain: bool,
        is_doubtful: bool,
    ) -> Vec<usize> {
        let slots = pair.slots.iter().enumerate();
        let excused = slots.filter(|&(k, slot)| {
            let result = &operator.slots[k];
            let is_reshaped = is_certain && result.evidence == Evidence::Shape;
            let is_partner = is_reshaped && self.are_equal(slot);
            result.is_output()
                && is_apart(result)
                && !is_partner
                && self.is_other_pair(slot, is_doubtful)
        });
        excused.map(|(k, _)| k).collect()
    }

    /// Marks differing slots of a pair that are not evidence of a fault.
    fn note_pair(
        &self,
        sides: MatchedDumps<'_>,
        paired: &[[SlotRef; 2]],
        pair: &RunPair,
        operator: &mut OperatorResult,
    ) -> bool {
        let mut is_any = false;
        let is_one_type = is_one_type(sides, pair);
        // Small differences vanish on the way, so an operator that has its own name and type on the
        // other side is not excused by what becomes of them.
        let is_certain = operator.is_certain
            || pair.how == MatchEvidence::Name && is_one_type && pair.missing.is_empty();
        let is_doubtful = !is_certain && self.is_doubtful(sides, pair, operator);
        // Slots of a pair are measured in its order, those that could not be read included.
        let slots = pair.slots.iter().enumerate();
        let outputs = self.excused_outputs(pair, operator, is_certain, is_doubtful);
        let n_apart = operator.outputs().filter(|slot| is_apart(slot)).count();
        // Nothing that such a pair reads has to agree, and nothing that operators of two types read
        // to make the same self.
        let is_excused = n_apart > 0 && outputs.len() == n_apart;
        let is_other_way = n_apart == 0 && pair.how == MatchEvidence::Value;
        let mut parting = self.parting.iter();
        let is_parting = parting.any(|parting| pair.target.contains(&parting.target));
        let comes_right = slots.clone().all(|(k, slot)| {
            let result = &operator.slots[k];
            !(result.is_output() && is_apart(result)) || self.are_sound_outputs(slot)
        });
        let makes_same = n_apart == 0 && operator.slots.iter().any(is_agreed_output);
        for (k, slot) in slots {
            let result = &mut operator.slots[k];
            if !is_apart(result) {
                continue;
            }
            if is_of_other_sign(result) {
                result.change_rare(|rare| rare.agreement = Some(SlotAgreement::Stored));
            }
            if result.agreement.is_some() || !result.is_output() && self.is_exchanged(sides, slot) {
                is_any |= result.agreement.is_some();
                continue;
            }
            result.is_unseen |= !result.is_output() && self.is_made_unseen(sides, slot);
            result.is_outside = self.is_given(sides, slot, result, is_certain);
            is_any |= result.is_outside;
            // Two programs come to the same by other values, such as other signs.
            let is_sound =
                comes_right && (self.are_sound(slot) || n_apart > 0 && self.is_stored_apart(slot));
            if is_sound || operator.is_certain {
                let agreement = is_sound.then_some(SlotAgreement::Downstream);
                result.change_rare(|rare| rare.agreement = agreement);
                is_any |= is_sound;
                continue;
            }
            let agreement = if result.is_output() {
                outputs.contains(&k).then_some(SlotAgreement::Downstream)
            } else {
                let is_weight = result.evidence != Evidence::Shape && self.are_outside(slot);
                let is_excused = is_excused || is_other_way && !(is_one_type && is_weight);
                let found = self.input_agreement(sides, pair, slot);
                let is_stored_otherwise = makes_same
                    && (self.are_extents(slot) || self.are_permuted(slot))
                    || self.are_folded(sides, slot)
                    || n_apart == 0 && self.are_shuffled(sides, slot);
                let stored = is_stored_otherwise.then_some(SlotAgreement::Stored);
                // The producer of such an input is judged separately; which of several operators
                // reads it is a coincidence.
                let is_passed_on = (!is_certain || makes_same && has_other_form(result))
                    && !result.is_outside
                    && self.are_rejoined(slot);
                let is_inner = is_parting && !is_weight && self.may_be_inner(sides, paired, slot);
                let inner = is_inner.then_some(SlotAgreement::Inner);
                found
                    .or(stored)
                    .or((is_excused || is_passed_on).then_some(SlotAgreement::Downstream))
                    .or(inner)
            };
            is_any |= agreement.is_some();
            result.change_rare(|rare| rare.agreement = agreement);
        }
        is_any
    }

    fn search(
        sides: MatchedDumps<'_>,
        (runs, unseen): ([&Vec<usize>; 2], &[HashSet<SlotRef>; 2]),
        thresholds: &Thresholds,
        n_threads: usize,
    ) -> ComparedValues {
        let dumps = [sides.target, sides.golden];
        let all = SideValues::collect(dumps, runs, unseen, n_threads);
        let mut equals = find_equals(dumps, &all, thresholds, n_threads);
        find_equal_masks(dumps, &all, &mut equals);
        find_sums_in_other_order(dumps, &all, &mut equals);
        find_arranged(dumps, &all, &mut equals);
        let mut is_sound = equals.is_close.clone();
        let is_rejoined = [0, 1].map(|i| {
            let equal = &equals.of_side[i];
            let mut is_rejoined = all[i].rejoined(dumps[i], equal, &mut is_sound[i]);
            all[i].follow_formats(dumps, i, &mut is_rejoined);
            is_rejoined
        });
        let is_partial = (0..2).any(|i| {
            coverage::is_partial(
                dumps[i],
                runs[i],
                [&all[i], &all[1 - i]],
                &equals.of_side[i],
            )
        });
        let mut values = ComparedValues {
            is_partial,
            sides: all,
            equals: equals.of_side,
            is_rejoined,
            is_sound,
            anchors: Vec::new(),
            parting: Vec::new(),
            last_parts: Vec::new(),
        };
        anchors::find(&mut values, dumps);
        values
    }

    /// Whether a pair may have been matched wrongly. Where all inputs of both agree, or one differs
    /// that the other side has nowhere, such as a changed weight, outputs that differ are evidence,
    /// whatever becomes of them.
    fn is_doubtful(
        &self,
        sides: MatchedDumps<'_>,
        pair: &RunPair,
        operator: &OperatorResult,
    ) -> bool {
        let mut slots = pair.slots.iter().zip(&operator.slots);
        let inputs = slots.clone().filter(|(_, result)| !result.is_output());
        let mut inputs = inputs.peekable();
        if inputs.peek().is_none() {
            let [target, golden] = &self.sides;
            // Without inputs, the dump does not show what was computed from the outputs.
            let mut targets = pair.target.iter().flat_map(|run| target.inputs_of(*run));
            let mut goldens = pair.golden.iter().flat_map(|run| golden.inputs_of(*run));
            return targets.next().is_some() && goldens.next().is_some()
                || slots.all(|(slot, _)| self.are_found(slot));
        }
        let mut has_other = !pair.missing.is_empty();
        for (slot, result) in inputs {
            if is_apart(result) {
                let is_changed = self.are_outside(slot)
                    && !self.are_alike(slot)
                    && !self.are_folded(sides, slot);
                if is_changed || !self.are_rejoined(slot) {
                    return false;
                }
                has_other = true;
            }
        }
        has_other
    }

    /// Whether an input comes from outside.
    fn is_given(
        &self,
        sides: MatchedDumps<'_>,
        slot: &SlotPair,
        result: &SlotResult,
        is_certain: bool,
    ) -> bool {
        !result.is_output()
            && !result.is_unseen
            && !is_made_on_ranks(sides, slot, result)
            && (self.are_outside(slot) || is_certain && self.is_from_nowhere(slot))
    }

    fn input_agreement(
        &self,
        sides: MatchedDumps<'_>,
        pair: &RunPair,
        slot: &SlotPair,
    ) -> Option<SlotAgreement> {
        let [target, golden] = &self.sides;
        let value = target.value_of(slot.target)?;
        let equal = self.equals[0][value.0]?;
        if wired_alike(sides, slot) {
            return None;
        }
        if pair.golden.iter().any(|&run| golden.reads(run, equal)) {
            return Some(SlotAgreement::OtherInput);
        }
        // The same weight with its axes exchanged is another one to an operator that reads it alike.
        if self.is_turned(sides, slot) {
            return None;
        }
        // If the target never makes what the partner reads, it may not be the one that is wrong. A
        // weight that golden has is no other weight in any case.
        let partner = golden.value_of(slot.golden)?;
        if !target.values[value.0].is_outside {
            self.equals[1][partner.0]?;
        }
        let place = golden.first_slot(equal);
        Some(SlotAgreement::Elsewhere(Box::new(name_of(sides, place))))
    }
}

fn is_one_type(sides: MatchedDumps<'_>, pair: &RunPair) -> bool {
    let (Some(&target), Some(&golden)) = (pair.target.last(), pair.golden.last()) else {
        return false;
    };
    is_same_type(&sides.target.runs[target], &sides.golden.runs[golden])
}

/// Whether both graphs have partners that make a slot, through views: it reads what it should, though
/// the value may be elsewhere as well.
fn wired_alike(sides: MatchedDumps<'_>, slot: &SlotPair) -> bool {
    let makers = [(sides.target, slot.target), (sides.golden, slot.golden)];
    let makers = makers.map(|(dump, slot)| {
        let mut made = dump.producer_of(slot)?;
        while is_view(&dump.runs[made.run]) {
            let read = dump.inputs_of(made.run).next()?;
            // Each step leads to an operator that ran before.
            made = dump.producer_of(read).filter(|read| read.run < made.run)?;
        }
        Some(made)
    });
    let [Some(target), Some(golden)] = makers else {
        return false;
    };
    let pair = sides.matching.pair_of([target.run, golden.run]);
    // One operator may make several values.
    pair.is_some_and(|pair| {
        let mut slots = pair.slots.iter();
        slots.all(|slot| (slot.target == target) == (slot.golden == golden))
    })
}

fn name_of(sides: MatchedDumps<'_>, place: SlotRef) -> OperatorName {
    OperatorName::for_execution(&sides.golden.runs[place.run])
}

/// Whether a slot is an output that was compared and agrees.
fn is_agreed_output(slot: &SlotResult) -> bool {
    let is_compared = matches!(slot.evidence, Evidence::Tensor | Evidence::Statistics);
    slot.is_output() && slot.level == VerdictLevel::Pass && is_compared
}

/// Whether a slot has the numbers of a quantised value with a sign on one side, and without on the
/// other: all are half of the range higher, as their zero point is.
fn is_of_other_sign(slot: &SlotResult) -> bool {
    let dtypes = [&slot.target.dtype, &slot.golden.dtype].map(AsRef::as_ref);
    matches!(dtypes, ["int8", "uint8"] | ["uint8", "int8"])
        && slot.metrics.get(MetricId::MaxAbs) == Some(HALF_OF_CODES)
        && slot.metrics.get(MetricId::MeanAbs) == Some(HALF_OF_CODES)
}

/// Whether a slot has another shape or dtype on the other side.
fn has_other_form(slot: &SlotResult) -> bool {
    slot.evidence == Evidence::Shape || slot.target.dtype != slot.golden.dtype
}

/// Whether a slot counts against its operator.
fn is_apart(slot: &SlotResult) -> bool {
    let is_compared = matches!(
        slot.evidence,
        Evidence::Tensor | Evidence::Shape | Evidence::Statistics
    );
    is_compared && slot.is_apart()
}

/// Whether ranks made an input. Values of ranks that differ have no maker among those that are put
/// together.
fn is_made_on_ranks(sides: MatchedDumps<'_>, slot: &SlotPair, result: &SlotResult) -> bool {
    result.ranks.is_some()
        && sides.target.producer_of(slot.target).is_some()
        && sides.golden.producer_of(slot.golden).is_some()
}
