//! Experiments that replace the target's definitions by golden's.
//!
//! Both models are files, so that [`ModelPair`] knows where their definitions differ. The target
//! runs with golden's definition at some of these places, until the smallest set is found that
//! makes its outputs agree. Only definitions are replaced, never a recorded value, so an effect is
//! caused by these places.

mod causes;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use opscope_analysis::compare::experiments::{
    Experimenter, OutputDistance, judge_outputs, judged_as,
};
use opscope_analysis::compare::result::{
    Comparison, ExperimentOutcome, Experiments, SlotResult, TensorSummary, VerdictLevel,
};
use opscope_analysis::compare::verdict::Thresholds;
use opscope_engine::onnx::{DefinitionDifference, HealedModel, ModelPair, SameValue, ValueForm};
use opscope_engine::{EngineError, LoadedModel, ModelSignature, ModelSource};
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Tensor};

use crate::search::{Found, least};

/// Maximum number of steps whose outputs are checked.
pub const N_STEPS_MAX: usize = 4;
/// Maximum number of differences among which causes are searched.
const N_DIFFERENCES_MAX: usize = 4096;
/// Experiments may take this many times as long as loading and running the golden model.
const N_TIMES: u32 = 10;
/// They may always take this long.
const TIME_MIN: Duration = Duration::from_secs(60);

/// Loads a model for runs without capture.
pub type Load<'a> = dyn Fn(ModelSource<'_>) -> Result<Box<dyn LoadedModel>, EngineError> + 'a;

/// A model of a comparison, and how to run it.
pub struct ExperimentSide<'a> {
    /// The model.
    pub source: ModelSource<'a>,
    /// Its engine.
    pub load: &'a Load<'a>,
    /// The model's inputs and outputs.
    pub signature: &'a ModelSignature,
    /// The inputs of each step.
    pub inputs: Vec<Vec<Tensor>>,
}

/// Experiments with two models.
pub struct ModelExperiments<'a> {
    /// The model under test.
    pub target: ExperimentSide<'a>,
    /// The reference model.
    pub golden: ExperimentSide<'a>,
    /// The name of the target's engine.
    pub engine: String,
    /// Maximum number of runs of the target.
    pub n_runs_max: usize,
    /// Called before each run; returns whether the run may start.
    pub may_go_on: &'a dyn Fn() -> bool,
    /// Whether the healed model is wanted.
    pub keeps_healed: bool,
    /// The healed model, if it is wanted and a model was found whose outputs agree.
    pub healed: OnceCell<HealedModel>,
}

/// The runs of one examination.
struct Trials<'a> {
    of: &'a ModelExperiments<'a>,
    pair: &'a ModelPair,
    golden: Vec<Vec<Tensor>>,
    judged_as: Vec<Option<DType>>,
    thresholds: &'a Thresholds,
    deadline: Instant,
    n_runs: Cell<usize>,
    /// Differences that cannot be healed.
    impossible: RefCell<HashSet<usize>>,
    /// Why a run was not possible, from the first such run.
    failure: OnceCell<String>,
}

impl Experimenter for ModelExperiments<'_> {
    fn examine(&self, comparison: &Comparison, thresholds: &Thresholds) -> Option<Experiments> {
        let mut experiments = Experiments {
            engine: self.engine.clone(),
            ..Experiments::default()
        };
        if let Err(reason) = self.examine_target(comparison, thresholds, &mut experiments) {
            experiments.outcome = ExperimentOutcome::Inconclusive(reason);
        }
        Some(experiments)
    }
}

impl ModelExperiments<'_> {
    fn examine_target(
        &self,
        comparison: &Comparison,
        thresholds: &Thresholds,
        experiments: &mut Experiments,
    ) -> Result<(), String> {
        let values = same_values(comparison);
        let inputs = self.input_names();
        let pair = ModelPair::read(self.target.source, self.golden.source, &values, &inputs);
        let pair = pair.map_err(|error| error.to_string())?;
        // Without definition differences the models are the same, and the engines differ.
        let n = pair.differences().len();
        experiments.n_differences = n;
        if n == 0 {
            experiments.outcome = ExperimentOutcome::Elsewhere;
            return Ok(());
        }
        if n > N_DIFFERENCES_MAX {
            return Err(format!(
                "{n} definitions differ; expected at most {N_DIFFERENCES_MAX}"
            ));
        }
        let names = output_names(self.golden.signature);
        let start = Instant::now();
        let steps = self.golden.inputs.iter().take(N_STEPS_MAX);
        let golden =
            run(&self.golden, self.golden.source, steps).map_err(|error| error.to_string())?;
        let trials = Trials {
            of: self,
            pair: &pair,
            golden,
            deadline: Instant::now() + (start.elapsed() * N_TIMES).max(TIME_MIN),
            judged_as: names
                .iter()
                .map(|name| judged_as(comparison, name))
                .collect(),
            thresholds,
            n_runs: Cell::default(),
            impossible: RefCell::default(),
            failure: OnceCell::new(),
        };
        let result = trials.find(comparison, &names, experiments);
        experiments.n_runs = trials.n_runs.get();
        result
    }

    /// Inputs of both models that get the same value.
    fn input_names(&self) -> Vec<[String; 2]> {
        let [own, others] = [&self.target, &self.golden].map(|side| {
            let inputs = side.signature.inputs.iter();
            inputs.map(|value| value.name.as_str()).collect::<Vec<_>>()
        });
        let is_by_name = others.iter().all(|name| own.contains(name))
            || own.iter().all(|name| others.contains(name));
        let pairs = others.iter().enumerate().filter_map(|(nth, other)| {
            let name = if is_by_name {
                own.iter().find(|name| *name == other)
            } else {
                own.get(nth)
            };
            Some([*name?, *other].map(str::to_owned))
        });
        pairs.collect()
    }
}

fn output_names(signature: &ModelSignature) -> Vec<String> {
    let outputs = signature.outputs.iter();
    outputs.map(|value| value.name.clone()).collect()
}

/// The outputs of a model for each step. The model, which may be large, is dropped afterwards.
fn run<'a>(
    side: &ExperimentSide<'_>,
    source: ModelSource<'_>,
    steps: impl Iterator<Item = &'a Vec<Tensor>>,
) -> Result<Vec<Vec<Tensor>>, EngineError> {
    let mut model = (side.load)(source)?;
    steps.map(|step| model.run(step, None)).collect()
}

/// Values that the comparison treated as the same.
fn same_values(comparison: &Comparison) -> Vec<SameValue> {
    let mut values = Vec::new();
    for operator in &comparison.operators {
        let (Some(target), Some(golden)) = (operator.target.last(), operator.golden.last()) else {
            continue;
        };
        // A body runs several times, and every step runs the same graph.
        if target.repeat > 0 || target.step.is_some_and(|step| step > 0) {
            continue;
        }
        for slot in operator.slots.iter().filter(|slot| slot.is_output()) {
            let other = slot.golden_slot.unwrap_or(slot.slot);
            // A part of a value and the whole are not two forms of it.
            let is_whole = n_elements(&slot.target) == n_elements(&slot.golden);
            let forms = forms(slot);
            // A value that became integers, or came of them, does not come back by a cast.
            let is_lossy = target.op_type != golden.op_type
                && forms
                    .as_ref()
                    .is_some_and(|[own, other]| own.dtype.is_float() != other.dtype.is_float());
            if other.side == SlotSide::Output && is_whole && !is_lossy {
                values.push(SameValue {
                    target: target.op_name.to_string(),
                    target_output: slot.slot.index as usize,
                    golden: golden.op_name.to_string(),
                    golden_output: other.index as usize,
                    forms,
                });
            }
        }
    }
    values
}

/// Number of elements of a tensor.
fn n_elements(side: &TensorSummary) -> u64 {
    side.shape.iter().product::<u64>()
}

/// The shapes and dtypes of both tensors of a slot, where they differ.
fn forms(slot: &SlotResult) -> Option<[ValueForm; 2]> {
    let forms = [form(&slot.target)?, form(&slot.golden)?];
    (forms[0] != forms[1]).then_some(forms)
}

/// The dtype and shape of a tensor.
fn form(side: &TensorSummary) -> Option<ValueForm> {
    Some(ValueForm {
        dtype: side.dtype.parse().ok()?,
        shape: side.shape.to_vec(),
    })
}

/// The names of the operator that the comparison names.
fn named(comparison: &Comparison) -> Vec<&str> {
    let Some(first) = comparison.summary.headline() else {
        return Vec::new();
    };
    let operator = comparison.operators.get(first.operator);
    let names = operator
        .into_iter()
        .flat_map(|pair| pair.target.iter().chain(&pair.golden));
    let names = names.chain(&first.name).map(|name| &*name.op_name);
    names.collect()
}

/// Whether an operator of these names is defined differently.
fn is_at(difference: &DefinitionDifference, names: &[&str]) -> bool {
    let mut labels = difference.target.iter().chain(&difference.golden);
    labels.any(|label| names.contains(&label.op_name.as_str()))
}

impl Trials<'_> {
    fn find(
        &self,
        comparison: &Comparison,
        names: &[String],
        experiments: &mut Experiments,
    ) -> Result<(), String> {
        let control = self.run(names, &[]).ok_or("no run was possible")??;
        experiments.before = control.distance;
        if control.level == VerdictLevel::Pass {
            return Err("the outputs of the target agree when it runs without capture".to_owned());
        }
        let mut usable = self.usable(comparison);
        let mut after: HashMap<Vec<usize>, f64> = HashMap::new();
        // The operator that the comparison names is usually the cause.
        let likely = self.likely(comparison, &usable);
        let mut found = Found::Nothing;
        if !usable.is_empty() {
            found = self.least(names, (&usable, &likely), control.level, &mut after);
        }
        // Where faults cancel each other, the outputs of the last of their operators agree.
        let n = self.pair.differences().len();
        if found == Found::Nothing && usable.len() < n && self.failure.get().is_none() {
            usable = (0..n).collect();
            after.clear();
            found = self.least(names, (&usable, &[]), control.level, &mut after);
        }
        experiments.n_candidates = usable.len();
        let (set, outcome) = match found {
            Found::Least(set) => (set, ExperimentOutcome::Proven),
            Found::Within(set) => (set, ExperimentOutcome::Within),
            Found::Nothing => {
                if let Some(reason) = self.failure.get().cloned() {
                    return Err(reason);
                }
                experiments.outcome = ExperimentOutcome::Elsewhere;
                return Ok(());
            }
            Found::Unknown => return Err("the limit of runs or of time was reached".to_owned()),
        };
        // The set was measured, or it would not have been returned.
        experiments.after = after.get(&set).copied().unwrap_or(f64::NAN);
        let mut chosen: Vec<usize> = set.iter().map(|&at| usable[at]).collect();
        chosen.retain(|difference| !self.impossible.borrow().contains(difference));
        experiments.causes = causes::find(self.pair, &chosen, comparison)?;
        let named = comparison.summary.headline();
        let named = named.and_then(|first| comparison.operators.get(first.operator));
        let named = named.and_then(|operator| operator.target.last().or(operator.golden.last()));
        if outcome == ExperimentOutcome::Proven {
            let elsewhere = named.filter(|name| {
                let mut causes = experiments.causes.iter();
                !causes.any(|cause| cause.operator == **name || cause.others.contains(name))
            });
            experiments.instead_of = elsewhere.cloned();
            let healed = self.pair.healed(&chosen)?;
            experiments.agrees_elsewhere = self.agrees_elsewhere(names, &healed);
            if self.of.keeps_healed && experiments.agrees_elsewhere != Some(false) {
                let _ = self.of.healed.set(self.pair.healed_whole(&chosen)?);
            }
        }
        experiments.outcome = outcome;
        Ok(())
    }

    /// Searches among the differences `usable`, beginning with places in it that are likely, and
    /// notes how far apart the outputs are afterwards.
    fn least(
        &self,
        names: &[String],
        (usable, likely): (&[usize], &[usize]),
        before: VerdictLevel,
        after: &mut HashMap<Vec<usize>, f64>,
    ) -> Found {
        least(usable.len(), likely, &mut |set| {
            let chosen: Vec<usize> = set.iter().map(|&at| usable[at]).collect();
            match self.run(names, &chosen)? {
                Ok(found) => {
                    after.insert(set.to_vec(), found.distance);
                    // Outputs near their limits do not count as healed.
                    Some(found.level < before && found.level <= VerdictLevel::Warn)
                }
                Err(reason) => {
                    // The first failure is usually of the likely cause; the others follow from it.
                    let _ = self.failure.set(reason);
                    Some(false)
                }
            }
        })
    }

    /// Differences that may matter: also those at the operator that the comparison names, as a
    /// later operator, such as a logarithm, may magnify what is within the limits there.
    fn usable(&self, comparison: &Comparison) -> Vec<usize> {
        let without_effect = causes::without_effect(comparison);
        let named = named(comparison);
        let differences = self.pair.differences().iter().enumerate();
        let usable = differences.filter(|(_, difference)| {
            !without_effect.contains(difference) || is_at(difference, &named)
        });
        usable.map(|(index, _)| index).collect()
    }

    /// The target with golden's definition at these places, except those that cannot be healed.
    fn healed(&self, chosen: &[usize]) -> Result<HealedModel, String> {
        let mut possible = chosen.to_vec();
        possible.retain(|difference| !self.impossible.borrow().contains(difference));
        let healed = self.pair.healed(&possible);
        if healed.is_ok() && !possible.is_empty() || chosen.is_empty() {
            return healed;
        }
        // Rarely needed, and costs as much as a healed model for each of them.
        possible.retain(|&difference| {
            let reason = self.pair.changes(&[difference]).err();
            let is_possible = reason.is_none();
            if let Some(reason) = reason {
                let _ = self.failure.set(reason);
                self.impossible.borrow_mut().insert(difference);
            }
            is_possible && self.may_go_on()
        });
        if possible.is_empty() {
            let reason = self.failure.get().cloned();
            return Err(
                reason.unwrap_or_else(|| "none of the differences can be healed".to_owned())
            );
        }
        self.pair.healed(&possible)
    }

    /// Differences at the operator that the comparison names, as indices into `usable`.
    fn likely(&self, comparison: &Comparison, usable: &[usize]) -> Vec<usize> {
        let named = named(comparison);
        let differences = self.pair.differences();
        let places = usable.iter().enumerate();
        let places = places.filter(|(_, index)| is_at(&differences[**index], &named));
        places.map(|(place, _)| place).collect()
    }

    fn may_go_on(&self) -> bool {
        (self.of.may_go_on)() && Instant::now() < self.deadline
    }

    /// Runs the target with golden's definition at some places; none if no more runs are allowed.
    fn run(&self, names: &[String], chosen: &[usize]) -> Option<Result<OutputDistance, String>> {
        if self.n_runs.get() > self.of.n_runs_max || !self.may_go_on() {
            return None;
        }
        self.n_runs.set(self.n_runs.get() + 1);
        let inputs = &self.of.target.inputs;
        let healed = self.healed(chosen);
        Some(healed.and_then(|healed| self.distance(names, &healed, inputs, &self.golden)))
    }

    fn distance(
        &self,
        names: &[String],
        healed: &HealedModel,
        inputs: &[Vec<Tensor>],
        golden: &[Vec<Tensor>],
    ) -> Result<OutputDistance, String> {
        // Each healed model is loaded separately, as its weights and its graph differ.
        let mut model =
            (self.of.target.load)(healed.source()).map_err(|error| error.to_string())?;
        let own = output_names(model.signature());
        let is_by_name = names.iter().all(|name| own.contains(name));
        let mut all = OutputDistance {
            level: VerdictLevel::Pass,
            distance: 0.0,
        };
        // A later step may show a fault that the first does not.
        for (step, golden) in inputs.iter().zip(golden) {
            let mut outputs = model.run(step, None).map_err(|error| error.to_string())?;
            if is_by_name {
                outputs = names
                    .iter()
                    .filter_map(|name| {
                        let place = own.iter().position(|other| other == name)?;
                        outputs.get(place).cloned()
                    })
                    .collect();
            }
            let found = judge_outputs([&outputs, golden], &self.judged_as, self.thresholds);
            all.level = all.level.max(found.level);
            all.distance = all.distance.max(found.distance);
        }
        Ok(all)
    }

    /// Whether the outputs of the healed model agree for the same inputs with their elements in
    /// reverse order; none if golden cannot run on them.
    fn agrees_elsewhere(&self, names: &[String], healed: &HealedModel) -> Option<bool> {
        let golden = &self.of.golden;
        let expected = run(golden, golden.source, [&reversed(golden)?].into_iter()).ok()?;
        let inputs = [reversed(&self.of.target)?];
        // Other values of the same range, which a caller could also pass.
        let found = self.distance(names, healed, &inputs, &expected);
        // A model that fails on them proves nothing.
        Some(found.ok()?.level <= VerdictLevel::Warn)
    }
}

/// The inputs of the first step with their elements in reverse order.
fn reversed(side: &ExperimentSide<'_>) -> Option<Vec<Tensor>> {
    side.inputs.first()?.iter().map(mirrored).collect()
}

/// A tensor with its elements in reverse order; none if they are not whole bytes.
fn mirrored(tensor: &Tensor) -> Option<Tensor> {
    let view = tensor.host_view().ok()?;
    let bits = view.dtype.bits().filter(|bits| bits % 8 == 0)?;
    let elements = view.bytes.chunks_exact(bits as usize / 8).rev();
    let bytes: Vec<u8> = elements.flatten().copied().collect();
    Tensor::from_vec(view.dtype, view.shape.clone(), bytes).ok()
}
