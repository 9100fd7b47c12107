//! Experiments on the target, where both sides are models in files.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::result::Comparison;
use opscope_diff::experiments::{ExperimentSide, ModelExperiments};
use opscope_engine::{GraphKind, ModelSignature, ModelSource};
use opscope_store::atomic_file::Creator;
use opscope_tensor::Tensor;

use super::inputs::{Side, SideInputs};
use super::side::ModelSide;
use super::{DiffArguments, DiffSides, LoadedSide};
use crate::commands::dump::run_model::is_signalled;
use crate::console::tell;
use crate::engine::EngineInUse;
use crate::exit::{CommandFailure, USAGE};

/// All that experiments need.
pub(super) struct ExperimentPlan<'a> {
    sides: [PlannedSide; 2],
    n_runs_max: usize,
    repaired: Option<&'a Path>,
}

/// A model that can be run again.
struct PlannedSide {
    path: PathBuf,
    engine: Arc<EngineInUse>,
    signature: ModelSignature,
    inputs: Vec<Vec<Tensor>>,
}

impl<'a> ExperimentPlan<'a> {
    /// None where a side is no model, or not the one in the file, or nobody wants experiments.
    pub(super) fn new(
        arguments: &'a DiffArguments,
        sides: &DiffSides,
        inputs: &SideInputs,
    ) -> Result<Option<ExperimentPlan<'a>>, CommandFailure> {
        let repaired = arguments.repair.as_deref();
        let models = [&sides.target, &sides.golden].map(|side| match side {
            LoadedSide::Model(model) => is_in_file(model).then_some(model),
            LoadedSide::Dump(_) => None,
        });
        let [Some(target), Some(golden)] = models else {
            if repaired.is_some() {
                let message = "`--repair` needs two models, run with the graph of their files and \
                               in their own dtypes";
                return Err(CommandFailure::message(USAGE, message));
            }
            return Ok(None);
        };
        // A run that ends at the first difference has no outputs to agree.
        let is_unwanted = arguments.no_experiments || arguments.first;
        if is_unwanted || arguments.experiments == 0 {
            return Ok(None);
        }
        // Before anything runs; the file itself is made without overwriting one.
        if let Some(path) = repaired.filter(|path| path.symlink_metadata().is_ok()) {
            return Err(exists(path));
        }
        // Copies: the models are lent to the threads that run them, and given back too late.
        let planned = |model: &ModelSide, side: Side| -> Result<PlannedSide, CommandFailure> {
            let steps = 0..inputs.steps.len();
            Ok(PlannedSide {
                path: model.path.clone(),
                engine: model.engine.clone(),
                signature: model.model.signature().clone(),
                inputs: steps
                    .take(opscope_diff::experiments::N_STEPS_MAX)
                    .map(|nth| inputs.get(side, nth))
                    .collect::<Result<_, _>>()?,
            })
        };
        Ok(Some(ExperimentPlan {
            sides: [
                planned(target, Side::Target)?,
                planned(golden, Side::Golden)?,
            ],
            n_runs_max: arguments.experiments,
            repaired,
        }))
    }

    /// Calls `compare` with the experiments, and writes the healed model if that is asked for.
    pub(super) fn with<E>(
        &self,
        compare: impl FnOnce(&ModelExperiments<'_>) -> Result<Comparison, E>,
    ) -> Result<Result<Comparison, E>, CommandFailure> {
        let loads = self
            .sides
            .each_ref()
            .map(|side| |source: ModelSource<'_>| side.engine.load_alone(source));
        // Both sides are read from their files, whatever has become of the loaded models.
        let [target, golden] = [0, 1].map(|at| {
            let side = &self.sides[at];
            ExperimentSide {
                source: ModelSource::File(&side.path),
                load: &loads[at],
                signature: &side.signature,
                inputs: side.inputs.clone(),
            }
        });
        let experiments = ModelExperiments {
            target,
            golden,
            engine: self.sides[0].engine.name().to_owned(),
            n_runs_max: self.n_runs_max,
            may_go_on: &|| !is_signalled(),
            keeps_healed: self.repaired.is_some(),
            healed: OnceCell::new(),
        };
        let mut compared = compare(&experiments);
        if let (Ok(comparison), Some(path)) = (&mut compared, self.repaired) {
            match experiments.healed.get() {
                Some(healed) => {
                    write(path, &healed.bytes)?;
                    if let Some(made) = &mut comparison.experiments {
                        made.repaired = Some(path.display().to_string());
                    }
                }
                None => tell!(
                    "opscope: `--repair`: no model was found whose outputs agree, nothing is written"
                ),
            }
        }
        Ok(compared)
    }
}

/// An executed graph is in no file, and neither is a model that was widened.
fn is_in_file(model: &ModelSide) -> bool {
    model.widened.is_none() && model.engine.graph() == GraphKind::Original
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    let creator = Creator::new(Default::default());
    let is_new = creator.create_file(path, &[bytes])?;
    if !is_new {
        return Err(exists(path));
    }
    Ok(())
}

fn exists(path: &Path) -> CommandFailure {
    let message = format!("`--repair`: `{}` exists already", path.display());
    CommandFailure::message(USAGE, message)
}
