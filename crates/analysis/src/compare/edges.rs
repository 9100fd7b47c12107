//! Which operator reads which output, according to the graphs next to the dumps.
//!
//! Values show what agrees, edges show the origin. If an input differs although its source agrees
//! with the partner of the source, the operator reads another value than golden's operator.

mod before_output;
mod detached;
mod hidden_order;
mod inner_readers;
mod nearness;
mod readers;
mod writers;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;

pub(super) use self::before_output::note_before_output;
use self::hidden_order::is_exchange;
use super::attribution::absorbed;
use super::attribution::cause::exchanges_parts;
use super::attribution::distance::slot_distance;
use super::contract::quantised_sides;
use super::flow::{ResultSlot, ValueFlow};
use super::matching::{MatchedDumps, RunPair, SlotRef, UnmatchedReason, is_view_type};
use super::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, RewiredInput, SlotAgreement,
    SlotKey, SlotResult, VerdictLevel, WiringChange,
};
use super::side::ComparedDump;

/// Maximum number of operators that are named of those that an engine has in another form.
const N_NEAREST_MAX: usize = 5;
/// Maximum number of operators between values that agree and one that differs.
const N_MEMBERS_MAX: usize = 16;

/// Both sides, with the index of each execution in the list of results.
struct Edges<'a> {
    dumps: [&'a ComparedDump; 2],
    pairs: &'a [RunPair],
    operators: [HashMap<usize, usize>; 2],
    /// Executions that the user's selection leaves out.
    left_out: [HashSet<usize>; 2],
    flow: ValueFlow,
    /// Whether the target computes with quantised values, none of which is the same as golden's.
    is_quantised: bool,
}

/// Operators without a partner between values that agree and an input.
#[derive(Default)]
struct Region {
    /// The operators, the last one first.
    members: Vec<usize>,
    /// The values that agree.
    borders: Vec<SlotRef>,
}

/// Notes the readers of each operator's outputs, inputs from outside, and inputs that read another
/// value than golden's. Levels must be known before, and must be determined again afterwards.
pub(super) fn note(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    // If everything agrees, these notes have no use, and results stay small.
    let slots = comparison.operators.iter().flat_map(|one| &one.slots);
    if !slots.into_iter().any(SlotResult::is_apart) {
        return;
    }
    let edges = Edges::new(sides, ValueFlow::trace(comparison));
    edges.note_readers(comparison);
    edges.note_outside(comparison);
    edges.withdraw_excuses(comparison);
    edges.note_partings(comparison);
    edges.name_inner_readers(comparison);
    edges.leave_absorbed(comparison);
    edges.note_reordered(comparison);
    edges.name_writers(comparison);
    for parting in &mut comparison.partings {
        edges.name_detached(parting);
    }
}

impl<'a> Edges<'a> {
    fn new(sides: MatchedDumps<'a>, flow: ValueFlow) -> Edges<'a> {
        let mut operators = [HashMap::new(), HashMap::new()];
        for (operator, pair) in sides.matching.pairs.iter().enumerate() {
            for (of_side, runs) in operators.iter_mut().zip([&pair.target, &pair.golden]) {
                of_side.extend(runs.iter().map(|&run| (run, operator)));
            }
        }
        let dumps = [sides.target, sides.golden];
        let mut left_out = dumps.map(|dump| (0..dump.runs.len()).collect::<HashSet<usize>>());
        for (left_out, paired) in left_out.iter_mut().zip(&operators) {
            left_out.retain(|run| !paired.contains_key(run));
        }
        let unmatched = sides.matching.unmatched.iter();
        for unmatched in unmatched.filter(|unmatched| unmatched.reason != UnmatchedReason::LeftOut)
        {
            let [target, golden] = &mut left_out;
            unmatched.party.pick(target, golden).remove(&unmatched.run);
        }
        Edges {
            left_out,
            dumps,
            pairs: &sides.matching.pairs,
            operators,
            flow,
            is_quantised: quantised_sides(sides) == [true, false],
        }
    }

    /// Drops findings about operators without a partner if all their readers agree.
    fn leave_absorbed(&self, comparison: &mut Comparison) {
        let named: HashSet<&OperatorName> = comparison
            .partings
            .iter()
            .map(|parting| &parting.name)
            .collect();
        let mut of_name: HashMap<OperatorName, usize> = HashMap::new();
        for (run, execution) in self.dumps[0].runs.iter().enumerate() {
            let name = OperatorName::for_execution(execution);
            if named.contains(&name) && !self.operators[0].contains_key(&run) {
                of_name.insert(name, run);
            }
        }
        let readers = self.readers();
        let leads_on = absorbed::leads_on(&comparison.operators);
        comparison.partings.retain(|parting| {
            // An operator that the target lacks may have the name of one that it has.
            let is_golden = parting.change == Some(WiringChange::Missing);
            let run = of_name.get(&parting.name).filter(|_| !is_golden);
            let Some(&run) = run else {
                return parting.change.is_none() || leads_on[parting.operator];
            };
            let next = self
                .outputs_of(run)
                .map(|made| self.readers_of(made, &readers));
            let next: BTreeSet<usize> = next.flatten().collect();
            next.is_empty() || next.into_iter().any(|next| leads_on[next])
        });
    }

    /// Inputs that no operator of either graph makes, and parameters that one side computes from
    /// constants, as where they are stored as codes.
    fn note_outside(&self, comparison: &mut Comparison) {
        for (pair, operator) in self.pairs.iter().zip(&mut comparison.operators) {
            let is_described = operator.is_certain && self.is_described(pair);
            for (slot, result) in pair.slots.iter().zip(&mut operator.slots) {
                if result.is_output() || !result.is_apart() {
                    continue;
                }
                let is_left_out = [(0, slot.target), (1, slot.golden)]
                    .iter()
                    .any(|&(side, at)| {
                        let made = self.dumps[side].producer_of(at);
                        made.is_some_and(|made| self.left_out[side].contains(&made.run))
                    });
                if is_left_out {
                    result.is_unseen = true;
                    result.is_outside = false;
                    continue;
                }
                // Where one side shows a parameter itself, the other may compute it.
                let sides = [(0, slot.target, slot.golden), (1, slot.golden, slot.target)];
                result.is_outside |= sides.into_iter().any(|(side, own, other)| {
                    self.dumps[side].parameter_of(own).is_some()
                        && self.dumps[side].producer_of(own).is_none()
                        && self.dumps[1 - side].producer_of(other).is_some()
                        && self.is_of_constants(1 - side, other)
                });
                // Tensors of ranks are not known by values that were made before.
                result.is_outside |= result.ranks.is_some()
                    && self.dumps[0].parameter_of(slot.target).is_some()
                    && self.dumps[1].parameter_of(slot.golden).is_some();
                if !is_described {
                    continue;
                }
                let slots = [(0, slot.target), (1, slot.golden)];
                let is_made = slots.map(|(i, at)| {
                    self.dumps[i].producer_of(at).is_some() || self.dumps[i].is_unseen(at)
                });
                result.is_outside |= is_made == [false, false]
                    || slots.into_iter().all(|(i, at)| self.is_of_constants(i, at));
            }
        }
    }

    /// Withdraws the excuse of an output that a certain reader shows to matter. Values excuse an
    /// output if the other side has what was computed from it.
    fn withdraw_excuses(&self, comparison: &mut Comparison) {
        let operators = &comparison.operators;
        let certain = operators.iter().filter(|operator| operator.is_certain);
        let inputs = certain.flat_map(|operator| self.inputs_apart(operator));
        let wrong: BTreeSet<usize> = inputs
            .filter_map(|(_, [target, golden], _)| {
                let made = self.dumps[0].producer_of(target)?;
                let read = self.dumps[1].producer_of(golden)?;
                let maker = *self.operators[0].get(&made.run)?;
                let mut slots = self.pairs[maker].slots.iter();
                let at = slots.position(|slot| slot.target == made && slot.golden == read)?;
                let agreement = operators[maker].slots[at].agreement.as_ref()?;
                let is_doubtful = !operators[maker].is_certain;
                (is_doubtful && *agreement == SlotAgreement::Downstream).then_some(maker)
            })
            .collect();
        for maker in wrong {
            for slot in &mut comparison.operators[maker].slots {
                slot.change_rare(|rare| rare.agreement = None);
            }
        }
    }

    /// Whether an input is a constant, or computed from constants by operators without a partner,
    /// like quantised weights.
    fn is_of_constants(&self, side: usize, slot: SlotRef) -> bool {
        let dump = self.dumps[side];
        let mut open = vec![slot];
        let mut n_passed = 0;
        while let Some(slot) = open.pop() {
            let Some(made) = dump.producer_of(slot) else {
                if dump.is_constant(slot) {
                    continue;
                }
                return false;
            };
            // A chain of constants is short, and a damaged graph may have a cycle.
            n_passed += 1;
            if n_passed > N_MEMBERS_MAX || self.operators[side].contains_key(&made.run) {
                return false;
            }
            open.extend(dump.inputs_of(made.run));
        }
        true
    }

    /// Whether an operator of the golden side reads an output.
    fn reads(&self, run: usize, made: SlotRef) -> bool {
        let dump = self.dumps[1];
        let mut inputs = dump.inputs_of(run);
        inputs.any(|slot| dump.producer_of(slot) == Some(made))
    }

    fn is_described(&self, pair: &RunPair) -> bool {
        let mut runs = [(0, &pair.target), (1, &pair.golden)]
            .into_iter()
            .flat_map(|(i, runs)| runs.iter().map(move |&run| (i, run)));
        runs.all(|(i, run)| self.dumps[i].description_of(run).is_some())
    }

    /// Records where the inputs of certain pairs diverge, in place of value-based findings about
    /// the same operators.
    fn note_partings(&self, comparison: &mut Comparison) {
        let operators = &comparison.operators;
        let mut found = Vec::new();
        for operator in operators {
            let is_certain = operator.is_certain || self.is_known_by_inputs(operator);
            // Parts that are the same, and together have the same statistics, make a pair certain,
            // and so do the same values in another order.
            let rewired = self.rewired_operator(operator, operators).filter(|found| {
                is_certain || exchanges_parts(operator) || is_exchange(found, operator)
            });
            let region = || self.region_before(operator, operators);
            let parting = rewired
                .or_else(|| is_certain.then(region).flatten())
                .or_else(|| self.unseen_before(operator, operators))
                .or_else(|| self.uncompared_before(operator, operators));
            // Values may identify one of several operators.
            found.extend(parting.filter(|parting| {
                let mut partings = comparison.partings.iter();
                let is_told = partings.any(|known| {
                    let is_here = known.operator == operator.index;
                    is_here && known.others.is_empty() && parting.has(&known.name)
                });
                !parting.rewired.is_empty() || !is_told
            }));
        }
        for one in found {
            // An operator has one parting, and edges are better evidence than values.
            comparison
                .partings
                .retain(|known| known.operator != one.operator);
            comparison.partings.push(one);
        }
        let given = comparison.partings.iter();
        let given = given.filter(|parting| parting.cause == Cause::Outside);
        let given: HashSet<OperatorName> = given.map(|parting| parting.name.clone()).collect();
        // An operator is not the cause of a difference in its inputs, and a region not that of one
        // that reads another weight in it.
        let operators = &comparison.operators;
        comparison.partings.retain(|parting| {
            let operator = &operators[parting.operator];
            let is_listed = operator.target.contains(&parting.name);
            let mut inputs = operator.inputs();
            let is_given = inputs.any(|slot| slot.is_apart() && !slot.is_outside);
            let is_own = parting.cause == Cause::Own && parting.rewired.is_empty();
            let is_told = parting.others.iter().any(|other| given.contains(other));
            !(is_own && (operator.is_certain && is_listed && is_given || is_told))
        });
        comparison.partings.sort_by_key(|one| one.operator);
    }

    fn rewired_operator(
        &self,
        operator: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let rewired: Vec<RewiredInput> = self
            .inputs_apart(operator)
            .filter_map(|(k, slots, result)| {
                let rewired = self.rewired(slots, result, operators);
                rewired.or_else(|| self.rewired_by_numbers([operator.index, k], operators))
            })
            .collect();
        Some(PartingOperator {
            operator: operator.index,
            name: operator.target.last().cloned().unwrap_or_default(),
            slot: rewired.first()?.slot,
            cause: Cause::Own,
            rewired,
            ..PartingOperator::default()
        })
    }

    /// Inputs of an operator that differ, with their slots on both sides.
    fn inputs_apart<'r>(
        &'r self,
        operator: &'r OperatorResult,
    ) -> impl Iterator<Item = (usize, [SlotRef; 2], &'r SlotResult)> {
        let slots = self.pairs[operator.index].slots.iter().zip(&operator.slots);
        let slots = slots.enumerate();
        let slots = slots.filter(|(_, (_, result))| {
            // A collective that is missing is not in the graph of one rank.
            let is_unreduced = result.ranks.as_ref().is_some_and(|of| of.is_unreduced);
            let is_excused = result.agreement.is_some() || is_unreduced;
            !result.is_output() && result.is_apart() && !is_excused
        });
        slots.map(|(k, (slot, result))| (k, [slot.target, slot.golden], result))
    }

    /// Operators without a partner between values that agree and an input that differs. One side
    /// may have none of them.
    fn region_before(
        &self,
        operator: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let apart = self.inputs_apart(operator);
        let mut of_graph = apart.filter(|(_, slots, _)| !self.is_of_several(slots));
        let members = of_graph.find_map(|(_, slots, result)| {
            let behind = slot_distance(result);
            // One side may compute something from a parameter that the other reads itself.
            let members = [0, 1].map(|side| {
                let dump = self.dumps[side];
                let is_given = !result.is_outside && dump.producer_of(slots[side]).is_none();
                let is_parameter = is_given && dump.parameter_of(slots[side]).is_some();
                self.members_before(side, slots[side], operators, behind)
                    .or(is_parameter.then(Region::default))
            });
            let (target, golden) = match members {
                [Some(target), Some(golden)] => (target, golden),
                // The target reads a value that agrees, whatever golden computes its own from.
                [Some(target), None] if target.members.is_empty() => {
                    (target, self.unmatched_maker(slots[1])?)
                }
                _ => return None,
            };
            let is_empty = target.members.is_empty() && golden.members.is_empty();
            (!is_empty).then_some([target.members, golden.members])
        })?;
        self.region(operator.index, &members)
    }

    /// Whether ranks read an input from other operators each, which the graph of one does not have.
    fn is_of_several(&self, slots: &[SlotRef; 2]) -> bool {
        let mut sides = self.dumps.iter().zip(slots);
        sides.any(|(dump, slot)| dump.rank_operators.contains_key(slot))
    }

    /// Operators of one side between values that agree and an input that differs, where the other
    /// side, of which no graph is known, does not show them. If it shows all of them, something
    /// else is there between them and the input.
    fn unseen_before(
        &self,
        operator: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let (slot, shown, region) =
            self.inputs_apart(operator).find_map(|(_, slots, result)| {
                let shown =
                    (0..2).find(|&side| self.dumps[side].producer_of(slots[side]).is_some())?;
                let is_hidden = result.is_unseen && self.dumps[1 - shown].is_without_wires();
                let region = is_hidden
                    .then(|| self.members_before(shown, slots[shown], operators, 0.0))
                    .flatten()?;
                Some((result.slot, shown, region))
            })?;
        let change = Some(WiringChange::NotShown);
        let mut members = region.members;
        if members.is_empty() {
            let makers = region.borders.into_iter().map(|made| made.run);
            let makers = makers.map(|run| &self.dumps[shown].runs[run]);
            return Some(PartingOperator {
                operator: operator.index,
                name: operator.target.last().cloned()?,
                slot,
                cause: Cause::Unknown,
                others: makers.map(OperatorName::for_execution).collect(),
                change,
                ..PartingOperator::default()
            });
        }
        // What computes is more likely wrong than a view, and the nearest than the others.
        members.sort_by_key(|&run| is_view_type(&self.dumps[shown].runs[run].op_type));
        let mut sides = [Vec::new(), Vec::new()];
        sides[shown] = members;
        let region = self.region(operator.index, &sides)?;
        Some(PartingOperator {
            cause: Cause::Unknown,
            change,
            ..region
        })
    }

    /// Operators between values that agree and an operator that differs, if an engine has what they
    /// make in a form that was not compared.
    fn uncompared_before(
        &self,
        operator: &OperatorResult,
        operators: &[OperatorResult],
    ) -> Option<PartingOperator> {
        let pair = &self.pairs[operator.index];
        let is_executed = [(0, &pair.target), (1, &pair.golden)]
            .map(|(side, runs)| runs.iter().any(|&run| self.dumps[side].is_executed(run)));
        let mut apart = operator.slots.iter().filter(|slot| slot.is_apart());
        let is_wrong = apart.any(|slot| slot.agreement.is_none());
        if is_executed[0] == is_executed[1] || !is_wrong {
            return None;
        }
        let apart = self.inputs_apart(operator).map(|(_, slots, _)| slots[0]);
        let mut open: Vec<SlotRef> = apart.collect();
        if open.is_empty() {
            let runs = pair.target.iter();
            let inputs = runs.flat_map(|&run| self.dumps[0].inputs_of(run));
            open.extend(inputs.filter(|slot| !pair.slots.iter().any(|own| own.target == *slot)));
        }
        let mut open = open.into_iter();
        let (slot, region) = open.find_map(|slot| {
            let region = self.members_before(0, slot, operators, 0.0)?;
            (!region.members.is_empty()).then_some((slot, region))
        })?;
        let members = region
            .members
            .into_iter()
            .map(|run| &self.dumps[0].runs[run]);
        Some(PartingOperator {
            operator: operator.index,
            name: operator.target.last().cloned()?,
            slot: self.dumps[0].slot(slot).key(),
            cause: Cause::Unknown,
            others: members
                .take(N_NEAREST_MAX)
                .map(OperatorName::for_execution)
                .collect(),
            change: Some(WiringChange::NotShown),
            ..PartingOperator::default()
        })
    }

    /// The finding on operators without a partner between values that agree and one that differs.
    fn region(&self, operator: usize, members: &[Vec<usize>; 2]) -> Option<PartingOperator> {
        let names = [0, 1].map(|side| {
            let runs = members[side].iter().map(|&run| &self.dumps[side].runs[run]);
            runs.map(OperatorName::for_execution).collect::<Vec<_>>()
        });
        // If both sides have operators in the region, the target's are named: one of them is wrong.
        let (side, change) = match members.each_ref().map(Vec::is_empty) {
            [false, true] => (0, Some(WiringChange::Inserted)),
            [true, _] => (1, Some(WiringChange::Missing)),
            [false, false] => (0, None),
        };
        let mut own = names[side].iter().cloned();
        Some(PartingOperator {
            operator,
            name: own.next()?,
            slot: SlotKey {
                side: SlotSide::Output,
                index: 0,
            },
            cause: Cause::Own,
            others: own.collect(),
            change,
            ..PartingOperator::default()
        })
    }

    /// The operators without a partner between values that agree and an input. `None` if one of
    /// these values differs, or is unknown because the selection leaves its operator out.
    fn members_before(
        &self,
        side: usize,
        slot: SlotRef,
        operators: &[OperatorResult],
        behind: f64,
    ) -> Option<Region> {
        let made = self.dumps[side].producer_of(slot)?;
        self.members_up_to(side, made, operators, behind)
    }

    /// The same for an output.
    fn members_up_to(
        &self,
        side: usize,
        made: SlotRef,
        operators: &[OperatorResult],
        behind: f64,
    ) -> Option<Region> {
        let mut region = Region::default();
        let mut open: VecDeque<SlotRef> = VecDeque::from([made]);
        while let Some(made) = open.pop_front() {
            if self.left_out[side].contains(&made.run) {
                return None;
            }
            // What a fused operator makes in another form was not compared.
            let compared = self.operators[side].get(&made.run).and_then(|&maker| {
                let mut slots = self.pairs[maker].slots.iter();
                let at = slots.position(|slot| [slot.target, slot.golden][side] == made);
                at.map(|at| &operators[maker].slots[at])
            });
            if let Some(slot) = compared {
                // A value that already differs is explained by its producer.
                if !self.agrees(slot, behind) {
                    return None;
                }
                region.borders.push(made);
            } else if !region.members.contains(&made.run) {
                if region.members.len() == N_MEMBERS_MAX {
                    return None;
                }
                region.members.push(made.run);
                let dump = self.dumps[side];
                open.extend(
                    dump.inputs_of(made.run)
                        .filter_map(|slot| dump.producer_of(slot)),
                );
            }
        }
        Some(region)
    }

    /// An input that differs although its source in the target agrees with that source's partner,
    /// which golden's operator does not read.
    fn rewired(
        &self,
        slots: [SlotRef; 2],
        result: &SlotResult,
        operators: &[OperatorResult],
    ) -> Option<RewiredInput> {
        let made = self.dumps[0].producer_of(slots[0])?;
        let read = self.dumps[1].producer_of(slots[1]);
        let maker = *self.operators[0].get(&made.run)?;
        let pair = &self.pairs[maker];
        let at = pair.slots.iter().position(|slot| slot.target == made)?;
        let own = pair.slots[at].golden;
        let behind = slot_distance(result);
        let agrees = self.agrees(&operators[maker].slots[at], behind);
        let is_other = match read {
            Some(read) => {
                // After an operator that the target lacks, golden's input leads to the same value.
                let golden = self.members_before(1, slots[1], operators, behind);
                let leads_here = golden.is_none_or(|region| region.borders.contains(&own));
                own != read && (self.operators[1].contains_key(&read.run) || !leads_here)
            }
            // Golden's operator reads a constant here, and the same value elsewhere.
            None => self.dumps[1].is_constant(slots[1]) && self.reads(slots[1].run, own),
        };
        let name = |made: SlotRef| OperatorName::for_execution(&self.dumps[1].runs[made.run]);
        (agrees && is_other).then(|| RewiredInput {
            slot: result.slot,
            golden: name(own),
            instead: read.map(name),
        })
    }
}

impl Edges<'_> {
    /// The same without a graph, from numbers that only one earlier output has.
    fn rewired_by_numbers(
        &self,
        [operator, k]: [usize; 2],
        operators: &[OperatorResult],
    ) -> Option<RewiredInput> {
        if !self.dumps.iter().any(|dump| dump.is_without_wires()) {
            return None;
        }
        // Numbers identify the last output with these values, or the first input if there is none.
        let source = self.flow.source(operator, k);
        let (made, read) = (source.target?, source.golden?);
        let slot = |at: ResultSlot| &operators[at.operator].slots[at.slot];
        // A replaced weight is a separate finding.
        let is_made = made != read && slot(made).is_output() && slot(read).is_output();
        let agrees = slot(made).level == VerdictLevel::Pass;
        (is_made && agrees).then_some(RewiredInput {
            slot: operators[operator].slots[k].slot,
            golden: operators[made.operator].golden.last().cloned()?,
            instead: operators[read.operator].golden.last().cloned(),
        })
    }
}

impl PartingOperator {
    /// Whether an operator is among the named ones.
    fn has(&self, name: &OperatorName) -> bool {
        self.name == *name || self.others.contains(name)
    }
}
