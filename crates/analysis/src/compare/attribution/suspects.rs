//! Operators that may have caused a difference without a known culprit.
//!
//! They were not compared, or not in all of their slots, and ran right before.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::kinds::is_in_place;
use crate::compare::flow::ValueFlow;
use crate::compare::result::{
    Cause, Comparison, Evidence, OperatorName, OperatorPlace, OperatorResult, Skip, SkipReason,
    SkipSide, SlotResult, Suspect,
};

/// Maximum number of operators that are named with a difference.
const N_SUSPECTS_MAX: usize = 5;

/// The distance up to which suspects are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuspectReach {
    /// From the compared operator before on.
    Adjacent,
    /// From the beginning of the step.
    Any,
}

/// All operators of a comparison that were not compared, in the order in which they ran.
pub(super) struct SuspectSearch<'a> {
    /// Of each place, the operators of which an output could not be compared, in order.
    hidden: HashMap<OperatorPlace, Vec<&'a OperatorResult>>,
    /// Of each place, the operators without a partner that ran before another, by that one.
    unmatched: HashMap<OperatorPlace, Vec<(usize, &'a Skip)>>,
    /// Slots that were not compared, by operator.
    slots: HashMap<&'a OperatorName, Vec<&'a Skip>>,
}

impl<'a> SuspectSearch<'a> {
    pub(super) fn new(comparison: &'a Comparison) -> SuspectSearch<'a> {
        let mut search = SuspectSearch {
            hidden: HashMap::new(),
            unmatched: HashMap::new(),
            slots: HashMap::new(),
        };
        for operator in &comparison.operators {
            if operator.slots.iter().any(is_hidden_output) {
                let hidden = search.hidden.entry(operator.place()).or_default();
                hidden.push(operator);
            }
        }
        for skip in &comparison.skips {
            let Some(name) = &skip.operator else {
                continue;
            };
            match (skip.slot, skip.before) {
                // An operator without one slot was compared in its others, and is in the list
                // itself.
                (Some(_), _) => search.slots.entry(name).or_default().push(skip),
                (None, Some(before)) => {
                    let unmatched = search.unmatched.entry((name.rank, name.step)).or_default();
                    unmatched.push((before, skip));
                }
                (None, None) => {}
            }
        }
        for unmatched in search.unmatched.values_mut() {
            // Stable: of those before the same operator, the later in the list ran later.
            unmatched.sort_by_key(|&(before, _)| before);
        }
        search
    }

    /// The suspects of every operator: none unless its cause is unknown.
    pub(super) fn of_operators(
        &self,
        comparison: &Comparison,
        flow: &ValueFlow,
    ) -> Vec<Vec<Suspect>> {
        let operators = comparison.operators.iter();
        let suspects = operators.map(|operator| match operator.cause {
            Some(Cause::Unknown) => self.of_operator(operator, flow),
            _ => Vec::new(),
        });
        suspects.collect()
    }

    fn of_operator(&self, operator: &OperatorResult, flow: &ValueFlow) -> Vec<Suspect> {
        let op_type = operator
            .target
            .last()
            .map_or("", |name| name.op_type.as_str());
        // An operator that passes a wrong value on may have received it from far away.
        let is_handed_on = !is_in_place(op_type)
            && (0..operator.slots.len()).any(|k| {
                let slot = &operator.slots[k];
                let is_own_output = flow.source(operator.index, k).is_own_output;
                !slot.is_output() && slot.is_apart() && is_own_output
            });
        let reach = if is_handed_on {
            SuspectReach::Any
        } else {
            SuspectReach::Adjacent
        };
        let mut suspects = self.nearest(operator, reach);
        if suspects.len() < N_SUSPECTS_MAX {
            suspects.extend(self.skipped_slot(operator, SlotSide::Input));
        }
        suspects
    }

    /// The nearest operators before this one that were not compared, or of which an output was not.
    pub(super) fn nearest(&self, operator: &OperatorResult, reach: SuspectReach) -> Vec<Suspect> {
        let mut unmatched = self.unmatched_before(operator).iter().rev().peekable();
        let mut hidden = self.hidden_before(operator).iter().rev().peekable();
        let mut suspects = Vec::new();
        // Both lists are sorted, so the nearest are at their ends, however long they are.
        while suspects.len() < N_SUSPECTS_MAX {
            // Operators without a partner ran between those of the list. So distances are doubled:
            // even ones lie between two of the list, odd ones on one of it.
            let gap_of_unmatched = unmatched
                .peek()
                .map(|&&(before, _)| 2 * (operator.index - before));
            let gap_of_hidden = hidden
                .peek()
                .map(|other| 2 * (operator.index - other.index) - 1);
            let nearer = [gap_of_unmatched, gap_of_hidden]
                .into_iter()
                .flatten()
                .min();
            if !nearer.is_some_and(|gap| reach == SuspectReach::Any || gap <= 1) {
                break;
            }
            if nearer == gap_of_unmatched {
                let skip = unmatched.next().map(|&(_, skip)| skip);
                suspects.extend(skip.and_then(suspect_of_skip));
            } else if let Some(other) = hidden.next() {
                let known = self.skipped_slot(other, SlotSide::Output);
                suspects.extend(known.or_else(|| suspect_of(other, SkipReason::Damaged)));
            }
        }
        suspects
    }

    /// Whether something that was not compared ran before and may have made a slot.
    pub(super) fn is_gap_before(&self, operator: &OperatorResult, slot: &SlotResult) -> bool {
        let mut before = self.hidden_before(operator).iter();
        !self.unmatched_before(operator).is_empty()
            || before.any(|other| {
                other.slots.iter().any(|other| {
                    let dims = &other.golden.shape;
                    // A damaged output may have no shape, and then it may be anything; a different
                    // shape rules it out.
                    is_hidden_output(other) && (dims.is_empty() || *dims == slot.golden.shape)
                })
            })
    }

    /// Operators of its place before one, of which an output could not be compared.
    fn hidden_before(&self, operator: &OperatorResult) -> &[&'a OperatorResult] {
        let hidden = self.hidden.get(&operator.place());
        let hidden = hidden.map_or(&[][..], |hidden| hidden);
        &hidden[..hidden.partition_point(|other| other.index < operator.index)]
    }

    /// Operators without a partner in the same place, up to this one, each with the first of the
    /// list that ran after it.
    fn unmatched_before(&self, operator: &OperatorResult) -> &[(usize, &'a Skip)] {
        let unmatched = self.unmatched.get(&operator.place());
        let unmatched = unmatched.map_or(&[][..], |unmatched| unmatched);
        &unmatched[..unmatched.partition_point(|&(before, _)| before <= operator.index)]
    }

    /// A compared operator as a suspect, because of the first of its inputs or outputs that was not
    /// compared.
    fn skipped_slot(&self, operator: &OperatorResult, side: SlotSide) -> Option<Suspect> {
        let names = operator.target.iter().chain(&operator.golden);
        let mut skips = names.flat_map(|name| self.slots.get(name).into_iter().flatten());
        suspect_of_skip(skips.find(|skip| skip.slot.is_some_and(|slot| slot.side == side))?)
    }
}

/// Whether a slot is an output that could not be read or compared.
fn is_hidden_output(slot: &SlotResult) -> bool {
    slot.is_output() && slot.evidence == Evidence::None
}

fn suspect_of_skip(skip: &Skip) -> Option<Suspect> {
    Some(Suspect {
        side: skip.side,
        operator: skip.operator.clone()?,
        reason: skip.reason,
    })
}

/// A compared operator as a suspect.
pub(super) fn suspect_of(operator: &OperatorResult, reason: SkipReason) -> Option<Suspect> {
    let name = operator.target.last().or(operator.golden.last());
    Some(Suspect {
        side: SkipSide::Both,
        operator: name?.clone(),
        reason,
    })
}
