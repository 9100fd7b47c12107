//! Pairs and measures the outputs of both models.

mod unlisted;

use std::collections::HashSet;

use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use super::ContractOptions;
use super::known_pairs::KnownPairs;
use super::model_values::{ModelOutput, ModelPlace, ModelPlaces, PlacePair};
use super::pairing::{by_name_or_position, by_position, is_reordered, partners};
use super::state::{judge_output, slot_of, state_of};
use crate::compare::attribution::distance::slot_distance;
use crate::compare::matching::{MatchedDumps, SlotPair, SlotRef, is_view};
use crate::compare::measure::{measure_in_order, measure_pair};
use crate::compare::party::Party;
use crate::compare::result::{Comparison, Evidence, OperatorName, SlotResult};
use crate::compare::result::{
    Contract, ContractValue, OutputSource, ValuePairing, ValuePresence, ValueState,
};
use crate::compare::side::ComparedDump;
use crate::compare::verdict::{dtype_of, judge_alone};

/// Maximum number of outputs of either side that are searched for an exchange.
const N_EXCHANGED_MAX: usize = 16;

/// An output of one side and its partner.
type OutputPair = (Option<ModelOutput>, Option<ModelOutput>, ValuePairing);

/// Pairs and measures the outputs of all places. No outputs are left if those of a place are not
/// known.
pub(super) fn examine(
    contract: &mut Contract,
    comparison: &Comparison,
    places: &ModelPlaces<'_>,
    options: ContractOptions<'_>,
) {
    let search = OutputSearch {
        known: KnownPairs::collect(places.sides),
        sides: places.sides,
        comparison,
        options,
    };
    // Constants of a graph belong to no step, and return nothing.
    let has_steps = (places.pairs.iter()).any(|pair| pair.golden.step().is_some());
    let counted = places.pairs.iter();
    for pair in counted.filter(|pair| !has_steps || pair.golden.step().is_some()) {
        let Some(found) = search.pair_outputs(pair) else {
            contract.outputs.clear();
            contract.known_by = Default::default();
            contract.is_reordered = false;
            return;
        };
        contract.known_by = pair.sources();
        contract.is_reordered |= found.is_reordered;
        search.take(contract, found.pairs);
    }
    contract.is_same_graph = if places.pairs.iter().any(PlacePair::has_graph) {
        places.pairs.iter().all(PlacePair::has_same_graph)
    } else {
        has_same_executions(places.sides)
    };
}

/// The outputs of a place.
struct PlaceOutputs {
    pairs: Vec<OutputPair>,
    is_reordered: bool,
}

struct OutputSearch<'a> {
    known: KnownPairs<'a>,
    sides: MatchedDumps<'a>,
    comparison: &'a Comparison,
    options: ContractOptions<'a>,
}

impl OutputSearch<'_> {
    /// Pairs the outputs of a place; none if they are not known.
    fn pair_outputs(&self, pair: &PlacePair<'_>) -> Option<PlaceOutputs> {
        let golden = &pair.golden;
        let Some(target) = &pair.target else {
            return Some(alone(golden));
        };
        let pairs = match (target.source, golden.source) {
            (OutputSource::Graph, OutputSource::Graph) => return Some(named(target, golden)),
            (_, OutputSource::Graph) => (golden.outputs.iter())
                .map(|output| self.of_golden(output, target, golden))
                .collect(),
            (OutputSource::Graph, _) => {
                let found = (target.outputs.iter())
                    .map(|output| self.of_target(output, target, golden))
                    .collect::<Option<Vec<OutputPair>>>();
                found?
            }
            (OutputSource::Unread, OutputSource::Unread) => self.unlisted(target, golden),
            _ => return None,
        };
        Some(PlaceOutputs {
            pairs,
            is_reordered: false,
        })
    }

    /// The partner of a golden output if no graph names the target's outputs.
    fn of_golden(
        &self,
        output: &ModelOutput,
        target: &ModelPlace<'_>,
        golden: &ModelPlace<'_>,
    ) -> OutputPair {
        let own = Some(output.clone());
        if let Some(slot) = target.value_named(&output.name) {
            return (shown(slot), own, ValuePairing::Name);
        }
        let slot = output.slot;
        let partner = slot.and_then(|slot| self.known.partner(slot, Party::Golden));
        if let Some((slot, _)) = partner {
            return (shown(slot), own, ValuePairing::Operator);
        }
        let position = self.at_same_position(output, Party::Golden, [target, golden]);
        let found =
            position.or_else(|| shown(self.last_of_size(output.slot?, Party::Golden, target)?));
        (found, own, ValuePairing::Position)
    }

    /// The partner of an output of the target where no graph names golden's outputs; none if it is
    /// not found.
    fn of_target(
        &self,
        output: &ModelOutput,
        target: &ModelPlace<'_>,
        golden: &ModelPlace<'_>,
    ) -> Option<OutputPair> {
        let own = Some(output.clone());
        if let Some(slot) = golden.value_named(&output.name) {
            return Some((own, shown(slot), ValuePairing::Name));
        }
        let slot = output.slot?;
        let equal = || {
            let mut unread = golden.outputs.iter().filter_map(|output| output.slot);
            unread.find(|golden| self.agrees(slot, *golden))
        };
        if let Some((partner, place)) = self.known.partner(slot, Party::Target) {
            let result = &self.comparison.operators[place[0]].slots[place[1]];
            let is_other = result.agreement.is_some() || state_of(result, false).is_bad();
            // Operators with different computations may have been matched.
            return Some(match equal().filter(|_| is_other) {
                Some(slot) => (own, shown(slot), ValuePairing::Value),
                None => (own, shown(partner), ValuePairing::Operator),
            });
        }
        if let Some(slot) = equal() {
            return Some((own, shown(slot), ValuePairing::Value));
        }
        let position = self.at_same_position(output, Party::Target, [target, golden]);
        let found =
            position.or_else(|| shown(self.last_of_size(slot, Party::Target, golden)?))?;
        Some((own, Some(found), ValuePairing::Position))
    }

    /// The output of the other side at the position of one of `party`'s, where both sides have as
    /// many, or as many of its shape.
    fn at_same_position(
        &self,
        output: &ModelOutput,
        party: Party,
        places: [&ModelPlace<'_>; 2],
    ) -> Option<ModelOutput> {
        let dumps = [self.sides.target, self.sides.golden];
        let shape = |side: usize, output: &ModelOutput| {
            let SlotRef { run, slot } = output.slot?;
            Some(dumps[side].runs[run].slots[slot].shape.clone())
        };
        let own = party.index();
        let wanted = shape(own, output);
        let is_of_shape =
            |side: usize, other: &ModelOutput| wanted.is_some() && shape(side, other) == wanted;
        let in_place = |is_counted: &dyn Fn(usize, &ModelOutput) -> bool| {
            let [outputs, others] = [own, 1 - own].map(|side| {
                let outputs = places[side].outputs.iter();
                let counted = outputs.filter(move |output| is_counted(side, output));
                counted.collect::<Vec<&ModelOutput>>()
            });
            let position = outputs.iter().position(|known| known.name == output.name)?;
            let partner = others
                .get(position)
                .filter(|_| outputs.len() == others.len())?;
            // Its name is that of an operator, which is meaningless to a caller.
            shown(partner.slot?)
        };
        in_place(&|_, _| true).or_else(|| in_place(&is_of_shape))
    }

    /// The last unread output of a side that lists none, if it has as many elements as an output
    /// that the other side, `party`, lists alone. Where it holds nothing but values with names, the
    /// first or the last of them: tools list the outputs before or behind all others.
    fn last_of_size(&self, slot: SlotRef, party: Party, other: &ModelPlace<'_>) -> Option<SlotRef> {
        let dumps = [self.sides.target, self.sides.golden];
        let own = party.index();
        let has_size = |at: &SlotRef| {
            let slots = [dumps[own].slot(slot), dumps[1 - own].slot(*at)];
            let sizes = slots.map(|slot| slot.n_elements());
            sizes[0].is_some() && sizes[0] == sizes[1]
        };
        let mut unread = other.outputs.iter().rev().filter_map(|output| output.slot);
        if let Some(last) = unread.next() {
            return Some(last).filter(has_size);
        }
        let ends = other.end_values().into_iter().flatten().filter(has_size);
        let ends = ends.map(|at| {
            let mut slots = [slot, at];
            slots.rotate_left(own);
            let measured = self.measure(slots[0], slots[1]);
            let distance = measured.map_or(f64::INFINITY, |result| slot_distance(&result));
            (distance, at)
        });
        let nearest = ends.min_by(|(a, _), (b, _)| a.total_cmp(b));
        nearest.map(|(_, at)| at)
    }

    /// Whether two slots have the same shape and agree.
    fn agrees(&self, target: SlotRef, golden: SlotRef) -> bool {
        let result = self.measure(target, golden);
        result.is_some_and(|result| matches!(state_of(&result, false), ValueState::Agree))
    }

    fn measure(&self, target: SlotRef, golden: SlotRef) -> Option<SlotResult> {
        let pair = SlotPair::plain(target, golden);
        let mut result = measure_pair(self.sides, pair, self.options.measure).ok()?;
        self.judge(&mut result, target);
        Some(result)
    }

    /// Judges a result by the limits of the shortest dtype that the target computed it in: a model
    /// that was converted makes a longer one of its outputs again.
    fn judge(&self, result: &mut SlotResult, target: SlotRef) {
        let own = dtype_of(result);
        let shorter = shortest_dtype(self.sides.target, target)
            .filter(|shorter| own.is_some_and(|own| own.is_float() && shorter.bits() < own.bits()));
        result.change_rare(|rare| rare.judged_as = shorter.map(|dtype| dtype.name().into()));
        judge_alone(result, ("", ""), self.options.thresholds);
    }

    /// The same of two tensors of different shapes; none unless their elements agree in order, as
    /// the view between them may as well exchange axes.
    fn measure_in_order(&self, target: SlotRef, golden: SlotRef) -> Option<SlotResult> {
        let pair = SlotPair::plain(target, golden);
        let mut result = measure_in_order(self.sides, pair, self.options.measure.difference)?;
        self.judge(&mut result, target);
        (!state_of(&result, false).is_bad()).then_some(result)
    }

    /// Measures the outputs of a place and adds them to the contract.
    fn take(&self, contract: &mut Contract, pairs: Vec<OutputPair>) {
        let mut values = Vec::new();
        let mut slots = Vec::new();
        for (target, golden, by) in pairs {
            self.take_pair(contract, (&mut values, &mut slots), (target, golden, by));
        }
        for value in &mut values {
            judge_output(value, contract, self.comparison, self.options.thresholds);
        }
        self.find_exchanged(&mut values, &slots);
        contract.outputs.extend(values);
    }

    fn take_pair(
        &self,
        contract: &Contract,
        (values, slots): (&mut Vec<ContractValue>, &mut Vec<[Option<SlotRef>; 2]>),
        (target, golden, by): OutputPair,
    ) {
        let outputs = [&target, &golden];
        let names = outputs.map(|output| output.as_ref().map(|output| output.name.clone()));
        let [target_name, golden_name] = names;
        let value = ContractValue {
            // A slot that is found by its values has no name.
            name: (golden_name.clone().filter(|name| !name.is_empty()))
                .or(target_name.clone())
                .unwrap_or_default(),
            target_name: target_name.filter(|name| {
                let other = golden_name.as_deref().unwrap_or_default();
                !(name.is_empty() || other.is_empty() || other == name)
            }),
            by,
            presence: presence([target.as_ref(), golden.as_ref()], by),
            updated_by: self.updated_by([target.as_ref(), golden.as_ref()]),
            ..ContractValue::default()
        };
        let own = outputs.map(|output| output.as_ref().and_then(|output| output.slot));
        let by_operands = (own.contains(&None))
            .then(|| operand_pairs(target.as_ref(), golden.as_ref()))
            .flatten();
        let pairs = by_operands.unwrap_or_else(|| vec![own]);
        let is_by_operands = pairs.first() != Some(&own);
        let is_listed = contract.known_by == [OutputSource::Graph; 2];
        for pair in pairs {
            let mut value = ContractValue {
                is_by_operands,
                operators: [
                    pair[0]
                        .map(|slot| OperatorName::for_execution(&self.sides.target.runs[slot.run])),
                    pair[1]
                        .map(|slot| OperatorName::for_execution(&self.sides.golden.runs[slot.run])),
                ],
                ..value.clone()
            };
            if is_by_operands {
                value.presence = ValuePresence::Both;
            }
            if let [Some(target), Some(golden)] = pair {
                value.pair = self.known.place(target, golden);
                let is_measured = value.pair.is_some_and(|[operator, slot]| {
                    let slots = &self.comparison.operators[operator].slots;
                    slots[slot].evidence != Evidence::None
                });
                if !is_measured {
                    value.result = self.measure(target, golden).map(Box::new);
                }
                // An unread operator is not necessarily the output: graphs without a list of
                // outputs omit views.
                if !is_listed
                    && slot_of(&value, self.comparison)
                        .is_some_and(|slot| slot.evidence == Evidence::Shape)
                {
                    value.pair = None;
                    value.result = self.measure_in_order(target, golden).map(Box::new);
                }
            }
            values.push(value);
            slots.push(pair);
        }
    }

    /// Looks for golden values that the target returns as another output.
    fn find_exchanged(&self, values: &mut [ContractValue], slots: &[[Option<SlotRef>; 2]]) {
        let golden: Vec<usize> = (0..values.len())
            .filter(|&at| values[at].state.is_bad() && slots[at][1].is_some())
            .take(N_EXCHANGED_MAX)
            .collect();
        let target: Vec<usize> = (0..values.len())
            .filter(|&at| {
                let is_free = values[at].state.is_bad() || values[at].state == ValueState::Extra;
                is_free && slots[at][0].is_some()
            })
            .take(N_EXCHANGED_MAX)
            .collect();
        for own in golden {
            let others = target.iter().filter(|&&other| other != own);
            let equal = others.copied().find(|&other| {
                let (Some(target), Some(golden)) = (slots[other][0], slots[own][1]) else {
                    return false;
                };
                self.agrees(target, golden)
            });
            let Some(other) = equal else { continue };
            let name = values[other].target_name.as_ref();
            values[own].exchanged_with = Some(name.unwrap_or(&values[other].name).clone());
            if values[own].presence == ValuePresence::Lost
                && values[other].presence == ValuePresence::Extra
            {
                // The target returns it under another name.
                self.rename(values, slots, [own, other]);
            }
        }
    }

    /// Matches a lost output with an extra one.
    fn rename(
        &self,
        values: &mut [ContractValue],
        slots: &[[Option<SlotRef>; 2]],
        [own, other]: [usize; 2],
    ) {
        let extra = values[other].clone();
        let lost = &mut values[own];
        lost.target_name = Some(extra.name);
        lost.by = ValuePairing::Value;
        lost.presence = ValuePresence::Both;
        lost.exchanged_with = None;
        lost.operators[0] = extra.operators[0].clone();
        if let (Some(target), Some(golden)) = (slots[other][0], slots[own][1]) {
            lost.pair = self.known.place(target, golden);
            lost.result = self.measure(target, golden).map(Box::new);
        }
    }
}

/// The outputs of a golden place that the target does not have.
fn alone(golden: &ModelPlace<'_>) -> PlaceOutputs {
    let outputs = golden.outputs.iter().cloned();
    PlaceOutputs {
        // By the operator, because it is unknown what the target would have returned there.
        pairs: outputs
            .map(|output| (None, Some(output), ValuePairing::Operator))
            .collect(),
        is_reordered: false,
    }
}

/// Pairs outputs that both graphs name.
fn named(target: &ModelPlace<'_>, golden: &ModelPlace<'_>) -> PlaceOutputs {
    let [targets, goldens] = [target, golden].map(|place| &place.outputs);
    let names = [targets, goldens].map(|outputs| {
        let names = outputs.iter().map(|output| output.name.as_str());
        names.collect::<Vec<&str>>()
    });
    // PyTorch names results after the operators that produce them, which is meaningless to a
    // caller.
    let is_named = [target, golden].iter().all(|place| place.names_results());
    let paired = if is_named {
        by_name_or_position(&names[1], &names[0])
    } else {
        by_position(names[1].len(), names[0].len())
    };
    let taken: HashSet<usize> = partners(&paired).collect();
    let mut pairs: Vec<OutputPair> = paired
        .iter()
        .map(|&(own, partner)| {
            let by = partner.map_or(ValuePairing::Name, |(_, by)| by);
            let partner = partner.map(|(at, _)| targets[at].clone());
            (partner, Some(goldens[own].clone()), by)
        })
        .collect();
    let extra = (0..targets.len()).filter(|at| !taken.contains(at));
    pairs.extend(extra.map(|at| (Some(targets[at].clone()), None, ValuePairing::Name)));
    PlaceOutputs {
        pairs,
        is_reordered: is_reordered(&paired),
    }
}

/// An output of which only the slot is known.
fn shown(slot: SlotRef) -> Option<ModelOutput> {
    Some(ModelOutput {
        slot: Some(slot),
        ..ModelOutput::default()
    })
}

/// The shortest float dtype among a value and the sources of its views and casts.
fn shortest_dtype(dump: &ComparedDump, mut slot: SlotRef) -> Option<DType> {
    let mut shortest: Option<DType> = None;
    // Each step leads to an operator that ran before.
    loop {
        let run = &dump.runs[slot.run];
        let read = (is_view(run))
            .then(|| {
                let mut slots = run.slots.iter();
                slots.position(|read| read.side == SlotSide::Input)
            })
            .flatten();
        let dtypes = [slot.slot]
            .into_iter()
            .chain(read)
            .filter_map(|at| run.slots[at].dtype);
        for dtype in dtypes.filter(|dtype| dtype.is_float()) {
            shortest = Some(match shortest {
                Some(known) if known.bits() <= dtype.bits() => known,
                _ => dtype,
            });
        }
        let made = read.and_then(|at| dump.producer_of(SlotRef { slot: at, ..slot }));
        match made.filter(|made| made.run < slot.run) {
            Some(made) => slot = made,
            None => return shortest,
        }
    }
}

fn presence(outputs: [Option<&ModelOutput>; 2], by: ValuePairing) -> ValuePresence {
    match outputs {
        [Some(target), Some(golden)] => {
            if target.slot.is_none() && golden.slot.is_none() {
                let is_passed =
                    target.is_argument && golden.is_argument && target.name == golden.name;
                if is_passed {
                    return ValuePresence::PassedThrough;
                }
            }
            match (target.slot, golden.slot) {
                (_, None) => ValuePresence::NotInGolden,
                (None, Some(_)) => ValuePresence::NotInTarget,
                (Some(_), Some(_)) => ValuePresence::Both,
            }
        }
        // Names and positions cover the target's whole list; operators only those in a dump.
        [None, _] if by == ValuePairing::Name => ValuePresence::Lost,
        [None, _] => ValuePresence::NotInTarget,
        [Some(_), None] => ValuePresence::Extra,
    }
}

/// The recorded values by which an output is judged that a dump lacks: the inputs of the operators
/// of one type that compute it.
fn operand_pairs(
    target: Option<&ModelOutput>,
    golden: Option<&ModelOutput>,
) -> Option<Vec<[Option<SlotRef>; 2]>> {
    let (targets, goldens) = (target?.operands.as_ref()?, golden?.operands.as_ref()?);
    let is_alike = targets.op_type == goldens.op_type
        && targets.attributes == goldens.attributes
        && targets.between == goldens.between
        && targets.slots.len() == goldens.slots.len();
    is_alike.then(|| {
        let pairs = targets.slots.iter().zip(&goldens.slots);
        pairs
            .map(|(target, golden)| [Some(*target), Some(*golden)])
            .collect()
    })
}

impl ModelPlace<'_> {
    fn step(&self) -> Option<u64> {
        self.first_place().and_then(|place| place.step)
    }
}

impl PlacePair<'_> {
    fn sources(&self) -> [OutputSource; 2] {
        let target = self.target.as_ref();
        [
            target.map(|place| place.source).unwrap_or_default(),
            self.golden.source,
        ]
    }

    /// Whether the graph of a side is known.
    fn has_graph(&self) -> bool {
        let target = self.target.as_ref().and_then(|place| place.graph);
        target.or(self.golden.graph).is_some()
    }

    /// Whether both graphs have the same operators with the same names and wiring.
    fn has_same_graph(&self) -> bool {
        let target = self.target.as_ref().and_then(|place| place.graph);
        let (Some(target), Some(golden)) = (target, self.golden.graph) else {
            return false;
        };
        let operators = target.operators.iter().zip(&golden.operators);
        target.operators.len() == golden.operators.len()
            && operators.into_iter().all(|(a, b)| {
                let [a, b] =
                    [a, b].map(|node| (&node.op_type, &node.op_name, &node.inputs, &node.outputs));
                a == b
            })
    }
}

/// Whether both sides executed the same operators in the same order. Values can only have gone
/// other ways if operators of one type exchanged their names.
fn has_same_executions(sides: MatchedDumps<'_>) -> bool {
    let [targets, goldens] = [sides.target, sides.golden].map(|dump| &dump.runs);
    let mut pairs = targets.iter().zip(goldens);
    targets.len() == goldens.len()
        && pairs.all(|(a, b)| (&a.op_type, &a.op_name) == (&b.op_type, &b.op_name))
}
