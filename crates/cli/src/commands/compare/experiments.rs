//! Experiments on two dumps, with the models that made them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::experiments::Experimenter;
use opscope_analysis::compare::result::{Comparison, ExperimentOutcome, Experiments, Party};
use opscope_analysis::compare::side::ComparedDump;
use opscope_analysis::compare::verdict::Thresholds;
use opscope_diff::experiments::N_STEPS_MAX;
use opscope_diff::inputs::{BaseSide, pair_inputs, recorded_inputs};
use opscope_dump::model_file;
use opscope_engine::onnx::HealedModel;
use opscope_engine::{ModelSignature, ModelSource};
use opscope_store::run_file;
use opscope_tensor::Tensor;

use super::NotedModel;
use crate::commands::model_experiments::{
    ModelInFile, check_is_new, with_experiments, write_healed,
};
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::{CommandFailure, CommandResult, USAGE, chain};
use crate::inputs::{InputArguments, InputSource};

/// Default number of runs of TARGET's model.
const N_RUNS: &str = "12";

/// Options of experiments.
#[derive(clap::Args)]
#[command(next_help_heading = "Experiments")]
pub(super) struct ExperimentArguments {
    /// The ONNX model that TARGET was dumped from: if an output differs, it is re-run with parts of
    /// GOLDEN's model to find what causes the difference
    #[arg(long, value_name = "FILE", conflicts_with_all = &NOT_WHOLE[1..])]
    model: Option<PathBuf>,
    /// The ONNX model that GOLDEN was dumped from
    #[arg(long, value_name = "FILE", conflicts_with_all = &NOT_WHOLE[1..])]
    golden_model: Option<PathBuf>,
    /// Run experiments, with at most N runs of TARGET's model (12). Models without an option are
    /// found by the dump's record, in the working directory or next to the dump
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = N_RUNS, conflicts_with_all = NOT_WHOLE)]
    experiments: Option<usize>,
    /// Write TARGET's model with the culprit repaired, if its outputs then agree, as a new file
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_WHOLE)]
    repair: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    inputs: InputArguments,
}

/// Options under which elements are not compared in this process.
const NOT_WHOLE: [&str; 4] = ["from", "parts", "on", "reference"];

/// Experiments to run if an output differs.
pub(super) struct DumpExperiments<'a> {
    arguments: &'a ExperimentArguments,
    models: [PathBuf; 2],
    dumps: [&'a Path; 2],
    engine: Arc<EngineInUse>,
    n_runs_max: usize,
    n_threads: usize,
    healed: OnceCell<HealedModel>,
}

impl ExperimentArguments {
    /// Returns `None` if no experiments are requested.
    pub(super) fn plan<'a>(
        &'a self,
        dumps: [&'a Path; 2],
        n_threads: usize,
        is_quiet: bool,
        is_exporting: bool,
    ) -> CommandResult<Option<DumpExperiments<'a>>> {
        let models = [&self.model, &self.golden_model];
        let n_models = models.into_iter().flatten().count();
        // An export needs one model, which alone requests no experiments then.
        let is_requested = self.repair.is_some() || n_models > usize::from(is_exporting);
        let n_runs_max = match self.experiments {
            Some(n) => n,
            None if is_requested => N_RUNS.parse().unwrap_or_default(),
            None => 0,
        };
        if n_runs_max == 0 {
            // Without experiments these options would silently do nothing.
            let unused = [
                (self.repair.is_some(), "`--repair`"),
                (self.engine.is_given(), "an option for an engine"),
                (!self.inputs.is_empty(), "an option for inputs"),
            ];
            return match unused.into_iter().find(|(is_given, _)| *is_given) {
                Some((_, option)) => {
                    let message =
                        format!("{option} applies to experiments, which are not requested");
                    let hint = "`--experiments`, or `--model` and `--golden-model`, request them";
                    Err(CommandFailure::message(USAGE, message).with_hint(hint))
                }
                None => Ok(None),
            };
        }
        self.repair.as_deref().map_or(Ok(()), check_is_new)?;
        let models = [
            model_of(dumps[0], self.model.as_deref(), "--model")?,
            model_of(dumps[1], self.golden_model.as_deref(), "--golden-model")?,
        ];
        let graph = GraphArguments::default();
        let engine = EngineInUse::new(&self.engine, &graph, n_threads, is_quiet)?;
        Ok(Some(DumpExperiments {
            arguments: self,
            models,
            dumps,
            engine: Arc::new(engine),
            n_runs_max,
            n_threads,
            healed: OnceCell::new(),
        }))
    }
}

impl ExperimentArguments {
    /// The model of `--export-onnx`: that of the target's dump, or else of golden's.
    pub(super) fn noted_model(&self, dumps: &[PathBuf; 2]) -> CommandResult<Option<NotedModel>> {
        let [target, golden] = [&self.model, &self.golden_model].map(Option::as_deref);
        if let (None, Some(model)) = (target, golden) {
            let model = model_of(&dumps[1], Some(model), "--golden-model")?;
            return Ok(Some((Party::Golden, model)));
        }
        model_of(&dumps[0], target, "--model").map_or_else(
            |failure| match model_of(&dumps[1], None, "--golden-model") {
                Ok(model) if target.is_none() => Ok(Some((Party::Golden, model))),
                _ => Err(failure),
            },
            |model| Ok(Some((Party::Target, model))),
        )
    }

    /// Refuses a model that nothing would read, next to a saved result.
    pub(super) fn refuse_unused_model(&self, is_saved: bool) -> CommandResult {
        if is_saved && (self.model.is_some() || self.golden_model.is_some()) {
            let message = "`--from` needs a model only for `--export-onnx`";
            return Err(CommandFailure::message(USAGE, message));
        }
        Ok(())
    }
}

/// The model that made a dump: the given one, or the one named in the dump's record. A digest in
/// the record must match the file.
fn model_of(dump: &Path, given: Option<&Path>, option: &str) -> CommandResult<PathBuf> {
    let mut runs = run_file::find(dump).runs;
    let recorded = runs.pop().map_or_else(Vec::new, |run| run.record.models);
    let digests: Vec<&String> = recorded
        .iter()
        .filter_map(|m| m.xxh3_128.as_ref())
        .collect();
    if let Some(path) = given {
        let digest = model_file("", Some(path), "").xxh3_128;
        if digest
            .as_ref()
            .is_some_and(|digest| !(digests.is_empty() || digests.contains(&digest)))
        {
            let message = format!(
                "`{}` is not the model of the dump `{}`: its digest differs from the one in the run's record",
                path.display(),
                dump.display()
            );
            return Err(CommandFailure::message(USAGE, message));
        }
        return Ok(path.to_owned());
    }
    let names = recorded.iter().filter_map(|model| model.file.as_deref());
    // The record has no path. A file with the same name may still be another model, so the digest
    // decides.
    let folders = [Some(Path::new("")), dump.parent(), Some(dump)];
    let mut candidates =
        names.flat_map(|name| folders.iter().flatten().map(move |at| at.join(name)));
    let found = candidates.find(|path| {
        let digest = model_file("", Some(path), "").xxh3_128;
        digest.is_some_and(|digest| digests.contains(&&digest))
    });
    found.ok_or_else(|| {
        let message = format!(
            "the model of the dump `{}` is neither in the working directory nor next to the dump",
            dump.display()
        );
        let hint = format!("pass it by `{option}`");
        CommandFailure::message(USAGE, message).with_hint(hint)
    })
}

impl Experimenter for DumpExperiments<'_> {
    fn examine(&self, comparison: &Comparison, thresholds: &Thresholds) -> Option<Experiments> {
        let sides = match self.sides(comparison) {
            Ok(sides) => sides,
            Err(failure) => {
                let reason = failure.error.map(|error| chain(error.as_ref()));
                return Some(Experiments {
                    engine: self.engine.name().to_owned(),
                    outcome: ExperimentOutcome::Inconclusive(reason.unwrap_or_default()),
                    ..Experiments::default()
                });
            }
        };
        let keeps_healed = self.arguments.repair.is_some();
        let (made, healed) =
            with_experiments(&sides, self.n_runs_max, keeps_healed, |experiments| {
                experiments.examine(comparison, thresholds)
            });
        if let Some(healed) = healed {
            let _ = self.healed.set(healed);
        }
        made
    }
}

impl DumpExperiments<'_> {
    /// Writes the repaired model if requested.
    pub(super) fn write(&self, comparison: &mut Comparison) -> CommandResult {
        match &self.arguments.repair {
            Some(path) => write_healed(comparison, self.healed.get(), path),
            None => Ok(()),
        }
    }

    fn sides(&self, comparison: &Comparison) -> CommandResult<[ModelInFile; 2]> {
        let [target, golden] = self.models.each_ref().map(|path| {
            let model = self.engine.load_alone(ModelSource::File(path))?;
            CommandResult::Ok(model.signature().clone())
        });
        let signatures = [target?, golden?];
        let [target_inputs, golden_inputs] = self.inputs(comparison, &signatures)?;
        let ([target, golden], [target_path, golden_path]) = (signatures, &self.models);
        let sides = [
            (target_path, target, target_inputs),
            (golden_path, golden, golden_inputs),
        ];
        Ok(sides.map(|(path, signature, inputs)| ModelInFile {
            path: path.clone(),
            engine: self.engine.clone(),
            signature,
            inputs,
        }))
    }

    /// The inputs of both models: the given ones, or those in a dump for the steps whose outputs
    /// differ.
    fn inputs(
        &self,
        comparison: &Comparison,
        signatures: &[ModelSignature; 2],
    ) -> CommandResult<[Vec<Vec<Tensor>>; 2]> {
        let [target, golden] = signatures;
        // Both models get the same values, whatever inputs their dumps were made with.
        let (base, pairing) =
            pair_inputs(target, golden).map_err(|error| CommandFailure::new(USAGE, error))?;
        let at = usize::from(base == BaseSide::Golden);
        let signature = &signatures[at];
        let made: Vec<Vec<Tensor>> = if self.arguments.inputs.is_empty() {
            let dump = ComparedDump::open(self.dumps[at], self.n_threads)?;
            let steps = differing_steps(comparison, at).into_iter();
            let recorded = steps.map(|step| recorded_inputs(&dump, step, signature));
            let recorded = recorded.collect::<Result<_, _>>();
            recorded.map_err(|error| CommandFailure::new(USAGE, error))?
        } else {
            let source = InputSource::new(&self.arguments.inputs, true, signature)?;
            let steps = 0..source.n_sets().min(N_STEPS_MAX as u64);
            steps
                .map(|step| source.step(step))
                .collect::<Result<_, _>>()?
        };
        let others = made.iter().map(|step| pairing.apply(step));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        Ok(match base {
            BaseSide::Target => [made, others],
            BaseSide::Golden => [others, made],
        })
    }
}

/// The first steps of a side in which an output differs.
fn differing_steps(comparison: &Comparison, side: usize) -> Vec<Option<u64>> {
    let outputs = comparison.contract.outputs.iter();
    let wrong = outputs.filter(|value| value.state.is_bad());
    let mut steps: Vec<Option<u64>> = wrong
        .filter_map(|value| {
            let operator = comparison.operators.get(value.pair?[0])?;
            let name = [&operator.target, &operator.golden][side].last()?;
            Some(name.step)
        })
        .collect();
    // Outputs that are swapped or missing have no pair, so their step is unknown.
    if steps.is_empty() {
        let names = comparison.operators.iter();
        let names = names.filter_map(|matched| [&matched.target, &matched.golden][side].last());
        steps = names.map(|name| name.step).collect();
    }
    steps.sort_unstable();
    steps.dedup();
    steps.truncate(N_STEPS_MAX);
    steps
}
