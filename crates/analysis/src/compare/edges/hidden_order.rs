//! Where elements get another order before an operator whose inputs agree as far as statistics
//! show, or in another order.

use std::collections::{HashSet, VecDeque};

use opscope_store::record::SlotSide;

use super::Edges;
use crate::compare::attribution::makes_another_order;
use crate::compare::evidence::Evidence;
use crate::compare::matching::{SlotRef, has_elements_of_input, is_one_type, is_view_type};
use crate::compare::result::{
    Cause, Comparison, OperatorResult, PartingOperator, SlotAgreement, SlotKey, SlotResult,
};

/// Maximum number of pairs that are inspected before one operator.
const N_PAIRS_MAX: usize = 256;

impl Edges<'_> {
    /// Records where elements get another order, in place of findings about the same operators.
    pub(super) fn note_reordered(&self, comparison: &mut Comparison) {
        let operators = &comparison.operators;
        let found = operators
            .iter()
            .flat_map(|operator| self.reordered_before(operator, operators));
        let found: Vec<PartingOperator> = found.collect();
        let named: HashSet<usize> = found.iter().map(|parting| parting.operator).collect();
        let partings = &mut comparison.partings;
        partings.retain(|known| !named.contains(&known.operator));
        partings.extend(found);
        partings.sort_by_key(|one| one.operator);
    }

    /// Differences of the graphs before an operator that is the same on both sides and makes
    /// something else of inputs with the same elements, perhaps in another order. Of several, an
    /// operator without a partner is named, whose verdict is never a cause.
    fn reordered_before(
        &self,
        operator: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Vec<PartingOperator> {
        let is_apart = operator.outputs().any(differs);
        let agrees = !operator.inputs().any(differs);
        let is_same = operator.attributes.is_empty() && is_pair(operator);
        if !(is_apart && agrees && is_same) {
            return Vec::new();
        }
        let is_one_kind = operator.is_certain && has_one_type(operator);
        let mut found = Vec::new();
        let mut seen: HashSet<[SlotRef; 2]> = HashSet::new();
        let mut open = VecDeque::from([operator.index]);
        while let Some(reader) = open.pop_front() {
            let inputs = self.pairs[reader]
                .slots
                .iter()
                .zip(&operators[reader].slots);
            let inputs = inputs.filter(|(_, slot)| {
                let is_moved = slot.agreement == Some(SlotAgreement::Downstream);
                let is_hidden = is_one_kind && slot.evidence == Evidence::Statistics;
                let may_be_moved = is_hidden || is_moved && slot.evidence == Evidence::Tensor;
                !slot.is_output() && !differs(slot) && may_be_moved
            });
            for (slot, _) in inputs {
                let places = [slot.target, slot.golden];
                if !seen.insert(places) {
                    continue;
                }
                let Some(maker) = self.maker_of(places) else {
                    found.extend(self.reordering_between(operator.index, places, operators));
                    continue;
                };
                let maker = &operators[maker];
                if maker.outputs().any(differs) {
                    continue;
                }
                let has_attributes = maker.is_certain && !maker.attributes.is_empty();
                if has_attributes || self.is_other_view(maker) {
                    found.push(parting_at(maker));
                } else {
                    open.push_back(maker.index);
                }
            }
            if seen.len() > N_PAIRS_MAX {
                return Vec::new();
            }
        }
        found.dedup();
        if found.len() > 1 {
            found.retain(|parting| parting.change.is_some());
            found.truncate(1);
        }
        found
    }

    /// The pair of operators that makes a value on both sides, as the same output.
    fn maker_of(&self, places: [SlotRef; 2]) -> Option<usize> {
        let made = self.dumps[0].producer_of(places[0])?;
        let read = self.dumps[1].producer_of(places[1])?;
        let maker = *self.operators[0].get(&made.run)?;
        let mut slots = self.pairs[maker].slots.iter();
        slots
            .any(|slot| [slot.target, slot.golden] == [made, read])
            .then_some(maker)
    }

    /// Whether a pair is two views, one of which puts elements into another order, that differ in
    /// type or make another order of what agrees.
    fn is_other_view(&self, operator: &OperatorResult) -> bool {
        let pair = &self.pairs[operator.index];
        let ([target], [golden]) = (&pair.target[..], &pair.golden[..]) else {
            return false;
        };
        let runs = [&self.dumps[0].runs[*target], &self.dumps[1].runs[*golden]];
        runs.iter().all(|run| is_view_type(&run.op_type))
            && (makes_another_order(operator) || !is_one_type(&runs[0].op_type, &runs[1].op_type))
            && !runs.iter().all(|run| has_elements_of_input(run))
    }

    /// Views without a partner that put elements into another order, on one side of an input.
    fn reordering_between(
        &self,
        reader: usize,
        places: [SlotRef; 2],
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let target = self.members_before(0, places[0], operators, 0.0)?;
        let golden = self.members_before(1, places[1], operators, 0.0)?;
        let partners = target.borders.iter().map(|made| self.partner_of(*made));
        if partners.collect::<Option<Vec<_>>>()? != golden.borders {
            return None;
        }
        let sides = [target.members, golden.members];
        let mut members = (0..2).flat_map(|side| sides[side].iter().map(move |&run| (side, run)));
        let runs = members
            .clone()
            .map(|(side, run)| &self.dumps[side].runs[run]);
        let is_moved = runs.clone().any(|run| !has_elements_of_input(run));
        let is_one_sided = sides.iter().any(Vec::is_empty);
        let moves = members.all(|(side, run)| is_view_type(&self.dumps[side].runs[run].op_type));
        (is_moved && is_one_sided && moves).then(|| self.region(reader, &sides))?
    }

    /// The output of the golden side that a compared output of the target corresponds to.
    fn partner_of(&self, made: SlotRef) -> Option<SlotRef> {
        let maker = *self.operators[0].get(&made.run)?;
        let mut slots = self.pairs[maker].slots.iter();
        slots
            .find(|slot| slot.target == made)
            .map(|slot| slot.golden)
    }
}

/// Whether a slot differs and no other place has its value.
fn differs(slot: &SlotResult) -> bool {
    slot.is_apart() && slot.agreement.is_none()
}

/// Whether it is one operator on both sides.
fn is_pair(operator: &OperatorResult) -> bool {
    operator.target.len() == 1 && operator.golden.len() == 1
}

fn has_one_type(operator: &OperatorResult) -> bool {
    match (&operator.target[..], &operator.golden[..]) {
        ([target], [golden]) => is_one_type(&target.op_type, &golden.op_type),
        _ => false,
    }
}

fn parting_at(operator: &OperatorResult) -> PartingOperator {
    PartingOperator {
        operator: operator.index,
        name: operator.target.last().cloned().unwrap_or_default(),
        slot: SlotKey {
            side: SlotSide::Output,
            index: 0,
        },
        cause: Cause::Own,
        ..PartingOperator::default()
    }
}

/// Whether all inputs of an operator that differ are read in another order than golden's operator
/// reads them.
pub(super) fn is_exchange(found: &PartingOperator, operator: &OperatorResult) -> bool {
    let golden: HashSet<_> = found.rewired.iter().map(|one| Some(&one.golden)).collect();
    let instead: HashSet<_> = found
        .rewired
        .iter()
        .map(|one| one.instead.as_ref())
        .collect();
    let inputs = operator.inputs().filter(|slot| slot.is_apart());
    found.rewired.len() > 1
        && found.rewired.len() == inputs.count()
        && golden == instead
        && operator.outputs().any(SlotResult::is_apart)
}
