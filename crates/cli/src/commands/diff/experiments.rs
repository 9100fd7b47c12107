//! Experiments on the target if both sides are models in files.

use std::path::Path;

use opscope_analysis::compare::result::Comparison;
use opscope_diff::experiments::{ModelExperiments, N_STEPS_MAX};
use opscope_engine::GraphKind;

use super::inputs::{Side, SideInputs};
use super::side::ModelSide;
use super::{DiffArguments, DiffSides, LoadedSide};
use crate::commands::model_experiments::{
    ModelInFile, check_is_new, with_experiments, write_healed,
};
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Everything that experiments need.
pub(super) struct ExperimentPlan<'a> {
    sides: [ModelInFile; 2],
    n_runs_max: usize,
    repaired: Option<&'a Path>,
}

impl<'a> ExperimentPlan<'a> {
    /// Returns `None` if a side is not a model, not the one in the file, or experiments are off.
    pub(super) fn new(
        arguments: &'a DiffArguments,
        sides: &DiffSides,
        inputs: &SideInputs,
    ) -> CommandResult<Option<ExperimentPlan<'a>>> {
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
        // A run that ends at the first difference has no outputs to compare.
        let is_unwanted = arguments.no_experiments || arguments.first;
        if is_unwanted || arguments.experiments == 0 {
            return Ok(None);
        }
        repaired.map_or(Ok(()), check_is_new)?;
        // Copies, because the models are lent to their threads and returned too late.
        let sides = [(target, Side::Target), (golden, Side::Golden)];
        let [target, golden] = sides.map(|(model, side)| -> CommandResult<ModelInFile> {
            let steps = 0..inputs.steps.len();
            Ok(ModelInFile {
                path: model.path.clone(),
                engine: model.engine.clone(),
                signature: model.model.signature().clone(),
                inputs: steps
                    .take(N_STEPS_MAX)
                    .map(|nth| inputs.get(side, nth))
                    .collect::<Result<_, _>>()?,
            })
        });
        Ok(Some(ExperimentPlan {
            sides: [target?, golden?],
            n_runs_max: arguments.experiments,
            repaired,
        }))
    }

    /// Calls `compare` with the experiments, and writes the repaired model if requested.
    pub(super) fn with<E>(
        &self,
        compare: impl FnOnce(&ModelExperiments<'_>) -> Result<Comparison, E>,
    ) -> CommandResult<Result<Comparison, E>> {
        let (mut compared, healed) = with_experiments(
            &self.sides,
            self.n_runs_max,
            self.repaired.is_some(),
            compare,
        );
        if let (Ok(comparison), Some(path)) = (&mut compared, self.repaired) {
            write_healed(comparison, healed.as_ref(), path)?;
        }
        Ok(compared)
    }
}

/// An executed graph is not in a file, and neither is a widened model.
fn is_in_file(model: &ModelSide) -> bool {
    model.widened.is_none() && model.engine.graph() == GraphKind::Original
}
