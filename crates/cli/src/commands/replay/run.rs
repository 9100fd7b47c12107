//! Re-running one operator.

use std::collections::HashMap;

use opscope_analysis::compare::matching::{Matching, RunPair};
use opscope_analysis::compare::replay::{ReplayResult, compare};
use opscope_analysis::compare::result::{AttributeDifference, OperatorName, SlotKey, SlotResult};
use opscope_analysis::compare::side::{ComparedDump, OperatorExecution};
use opscope_analysis::compare::verdict::Thresholds;
use opscope_engine::LoadOptions;
use opscope_engine::operator_source::{OperatorCall, OperatorSource, is_random};
use opscope_store::record::SlotSide;
use opscope_tensor::Tensor;

use super::ReplayRefusal;
use super::operators::{LocatedOperators, ModelOperators, ReplayEngine};
use super::values::{DumpedValues, load, slots};
use crate::exit::{CommandFailure, UNREADABLE, USAGE};

/// An output in the dump.
struct DumpedOutput {
    /// Its name there.
    slot: SlotKey,
    /// Its position among the operator's outputs.
    position: usize,
    tensor: Tensor,
}

/// Recomputed outputs, with their positions.
pub(super) type Outputs = Vec<(usize, Tensor)>;

/// A dump with the definitions of its operators.
pub(super) struct ReplayedDump<'a> {
    pub(super) side: &'a ComparedDump,
    located: LocatedOperators<'a>,
    values: DumpedValues<'a>,
}

impl<'a> ReplayedDump<'a> {
    pub(super) fn new(
        side: &'a ComparedDump,
        model: Option<&'a ModelOperators>,
        engine: &ReplayEngine<'_>,
    ) -> ReplayedDump<'a> {
        let located = LocatedOperators::locate(side, model, engine);
        let values = DumpedValues::collect(side, &located);
        ReplayedDump {
            side,
            located,
            values,
        }
    }

    /// Collects the inputs of a run's operator, with notes on values from elsewhere than its
    /// record.
    fn given(
        &self,
        run: usize,
    ) -> Result<(&dyn OperatorSource, usize, OperatorCall, Vec<String>), ReplayRefusal> {
        let (number, operators, index) = self.located.get(run)?;
        let source = &*operators.source;
        let operator = &source.operators()[index];
        let mut given = OperatorCall::default();
        let mut notes = Vec::new();
        for (i, name) in operator.operator.inputs.iter().enumerate() {
            // ONNX encodes an omitted optional input as an empty name, which keeps the others'
            // positions.
            if name.is_empty() {
                continue;
            }
            let names = &operator.operator.inputs;
            // The dump takes precedence over the model: the outputs were computed from its weights.
            if let Some(tensor) = self.values.own(run, names, i)? {
                given.inputs.insert(i, tensor);
            } else if source.has_value(index, name) {
                notes.push(format!("input.{i} is `{name}` from the model"));
            } else {
                let has_slot = self.values.own_slot(run, names, i).is_some();
                let slot = format!("input.{i}");
                let (tensor, origin) = self.elsewhere(run, number, name, (&slot, has_slot))?;
                notes.extend(origin.map(|origin| format!("input.{i} is {origin}")));
                given.inputs.insert(i, tensor);
            }
        }
        for name in &operator.captured {
            if !source.has_value(index, name) {
                let (tensor, origin) =
                    self.elsewhere(run, number, name, ("a value inside", false))?;
                notes.extend(origin.map(|origin| format!("`{name}`, read inside, is {origin}")));
                given.captured.insert(name.clone(), tensor);
            }
        }
        Ok((source, index, given, notes))
    }

    fn elsewhere(
        &self,
        run: usize,
        source: usize,
        name: &str,
        (slot, has_slot): (&str, bool),
    ) -> Result<(Tensor, Option<String>), ReplayRefusal> {
        if let Some(found) = self.values.elsewhere(run, source, name)? {
            return Ok(found);
        }
        let why = if has_slot {
            "the dump has only its statistics"
        } else {
            "neither the dump nor the model has it"
        };
        let text = format!("{slot} (`{name}`) is unknown: {why}");
        Err(ReplayRefusal::new(UNREADABLE, text))
    }

    /// A run's outputs in the dump.
    fn outputs(&self, run: usize, names: &[String]) -> Result<Vec<DumpedOutput>, ReplayRefusal> {
        let run = &self.side.runs[run];
        let all = slots(run, SlotSide::Output, names);
        let with_slots = all
            .iter()
            .map(|(slot, position)| (&run.slots[*slot], *position));
        let found: Vec<DumpedOutput> = with_slots
            // Damaged slots stay, so that loading them reports the damage.
            .filter(|(slot, _)| slot.has_elements || slot.problem.is_some())
            .map(|(slot, position)| {
                Ok(DumpedOutput {
                    slot: slot.key(),
                    position,
                    tensor: load(slot)?,
                })
            })
            .collect::<Result<_, ReplayRefusal>>()?;
        match (found.is_empty(), all.is_empty()) {
            (false, _) => Ok(found),
            (true, true) => Err(ReplayRefusal::new(
                UNREADABLE,
                "the dump does not have its outputs",
            )),
            (true, false) => {
                let text = "the dump has only statistics of its outputs";
                Err(ReplayRefusal::new(UNREADABLE, text))
            }
        }
    }

    /// The dumped outputs, their recomputed values, and notes.
    fn again(
        &self,
        run: usize,
        options: &LoadOptions,
    ) -> Result<(Vec<DumpedOutput>, Outputs, Vec<String>), ReplayRefusal> {
        let (_, operators, index) = self.located.get(run)?;
        let operator = &operators.source.operators()[index].operator;
        let dumped = self.outputs(run, &operator.outputs)?;
        let (source, index, mut given, notes) = self.given(run)?;
        // Needs the inputs: one of them decides whether `Dropout` is random.
        if is_random(operator, &given.inputs) {
            let text = format!("`{}` draws random numbers", operator.op_type);
            return Err(ReplayRefusal::new(USAGE, text));
        }
        let positions = dumped.iter().map(|output| output.position);
        given.outputs = positions
            .filter(|i| {
                operator
                    .outputs
                    .get(*i)
                    .is_some_and(|name| !name.is_empty())
            })
            .collect();
        if given.outputs.is_empty() {
            let text = "its outputs in the dump do not match those in the model";
            return Err(ReplayRefusal::new(USAGE, text));
        }
        let again = source.run(index, &given, options);
        let again = again.map_err(|error| ReplayRefusal::from(CommandFailure::from(error)))?;
        Ok((dumped, again, notes))
    }
}

/// The reference dump.
pub(super) struct GoldenDump<'a> {
    half: ReplayedDump<'a>,
    /// Pairs by target run, if a single golden run matches it.
    pairs: HashMap<usize, &'a RunPair>,
}

impl<'a> GoldenDump<'a> {
    pub(super) fn new(half: ReplayedDump<'a>, matching: &'a Matching) -> GoldenDump<'a> {
        let pairs = matching.pairs.iter();
        let single = pairs.filter_map(|pair| match (&pair.target[..], &pair.golden[..]) {
            // Fused operators have no single counterpart to re-run.
            ([run], [_]) => Some((*run, pair)),
            _ => None,
        });
        GoldenDump {
            half,
            pairs: single.collect(),
        }
    }
}

/// Everything that replaying needs.
pub(super) struct ReplayContext<'a> {
    pub(super) target: &'a ReplayedDump<'a>,
    pub(super) golden: Option<GoldenDump<'a>>,
    pub(super) thresholds: &'a Thresholds,
    pub(super) options: LoadOptions,
}

impl ReplayContext<'_> {
    /// Re-runs the operator of a target run; also returns the outputs.
    pub(super) fn replay(&self, run: usize) -> Result<(ReplayResult, Outputs), ReplayRefusal> {
        let (dumped, again, notes) = self.target.again(run, &self.options)?;
        let mut replayed = ReplayResult {
            operator: name_of(&self.target.side.runs[run]),
            task_id: self.target.side.runs[run].task_id,
            own: against(&dumped, &again),
            notes,
            ..ReplayResult::default()
        };
        if let Some(golden) = &self.golden {
            let again = relabelled(&dumped, &again);
            self.compare_golden(run, golden, &again, &mut replayed);
        }
        replayed.judge(self.thresholds);
        Ok((replayed, again))
    }

    /// Adds the comparison with the golden dump, or a note on why there is none.
    fn compare_golden(
        &self,
        run: usize,
        golden: &GoldenDump<'_>,
        again: &[DumpedOutput],
        replayed: &mut ReplayResult,
    ) {
        let Some(pair) = golden.pairs.get(&run) else {
            let note = "the golden dump has no such operator";
            replayed.notes.push(note.to_owned());
            return;
        };
        for slots in &pair.slots {
            let target = &self.target.side.runs[slots.target.run].slots[slots.target.slot];
            let right = &golden.half.side.runs[slots.golden.run].slots[slots.golden.slot];
            if !(target.has_elements && right.has_elements) {
                continue;
            }
            match (load(target), load(right)) {
                (Ok(a), Ok(b)) => {
                    let list = match target.side {
                        SlotSide::Input => &mut replayed.inputs,
                        SlotSide::Output => &mut replayed.total,
                    };
                    list.push(compare(target.key(), &a, &b));
                }
                (Err(refusal), _) | (_, Err(refusal)) => replayed.notes.push(refusal.text),
            }
        }
        replayed.attributes = self.differing_attributes(run, golden, pair.golden[0]);
        match golden.half.again(pair.golden[0], &self.options) {
            Ok((dumped, golden_again, _)) => {
                replayed.golden_own = against(&dumped, &golden_again);
                replayed.inherited = against(again, &golden_again);
            }
            Err(refusal) => replayed.notes.push(format!(
                "the golden operator cannot be re-run: {}",
                refusal.text
            )),
        }
    }
}

impl ReplayContext<'_> {
    /// The attributes that differ. A given model defines the operator of both sides, so none differ
    /// then.
    fn differing_attributes(
        &self,
        run: usize,
        golden: &GoldenDump<'_>,
        golden_run: usize,
    ) -> Vec<AttributeDifference> {
        let halves = [(self.target, run), (&golden.half, golden_run)];
        let texts = halves.map(|(half, run)| {
            let is_described = !half.located.has_model();
            half.side.attributes_of(run).filter(|_| is_described)
        });
        match &texts {
            [Some(target), Some(golden)] => target.differences(golden),
            _ => Vec::new(),
        }
    }
}

/// Compares dumped outputs with recomputed ones.
fn against(dumped: &[DumpedOutput], again: &[(usize, Tensor)]) -> Vec<SlotResult> {
    let pairs = dumped.iter().filter_map(|output| {
        let (_, tensor) = again
            .iter()
            .find(|(position, _)| *position == output.position)?;
        Some(compare(output.slot, &output.tensor, tensor))
    });
    pairs.collect()
}

/// The recomputed tensors, under their names in the dump.
fn relabelled(dumped: &[DumpedOutput], again: &[(usize, Tensor)]) -> Vec<DumpedOutput> {
    let pairs = again.iter().filter_map(|(position, tensor)| {
        let output = dumped.iter().find(|output| output.position == *position)?;
        Some(DumpedOutput {
            slot: output.slot,
            position: *position,
            tensor: tensor.clone(),
        })
    });
    pairs.collect()
}

pub(super) fn name_of(run: &OperatorExecution) -> OperatorName {
    OperatorName {
        op_type: run.op_type.clone(),
        op_name: run.op_name.clone(),
        rank: run.place.rank,
        model: run.place.model.clone(),
        step: run.place.step,
        repeat: run.repeat,
    }
}
