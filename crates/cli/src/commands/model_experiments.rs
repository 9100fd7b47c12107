//! Experiments on a target if both sides are models in files.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::result::Comparison;
use opscope_diff::experiments::{ExperimentSide, ModelExperiments};
use opscope_engine::onnx::HealedModel;
use opscope_engine::{ModelSignature, ModelSource};
use opscope_store::atomic_file::Creator;
use opscope_tensor::Tensor;

use crate::commands::dump::run_model::is_signalled;
use crate::console::report;
use crate::engine::EngineInUse;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// A model that can be re-run.
pub(crate) struct ModelInFile {
    pub(crate) path: PathBuf,
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) signature: ModelSignature,
    /// The inputs of each step.
    pub(crate) inputs: Vec<Vec<Tensor>>,
}

/// Calls `work` with the experiments on the target and the golden model. Also returns the repaired
/// model, if wanted and found.
pub(crate) fn with_experiments<R>(
    sides: &[ModelInFile; 2],
    n_runs_max: usize,
    keeps_healed: bool,
    work: impl FnOnce(&ModelExperiments<'_>) -> R,
) -> (R, Option<HealedModel>) {
    let loads = sides
        .each_ref()
        .map(|side| |source: ModelSource<'_>| side.engine.load_alone(source));
    // Reads both models from their files, because loaded ones may be in use.
    let [target, golden] = [0, 1].map(|at| {
        let side = &sides[at];
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
        engine: sides[0].engine.name().to_owned(),
        n_runs_max,
        may_go_on: &|| !is_signalled(),
        keeps_healed,
        healed: OnceCell::new(),
    };
    let result = work(&experiments);
    (result, experiments.healed.into_inner())
}

/// Refuses to replace a file before anything runs.
pub(crate) fn check_is_new(path: &Path) -> CommandResult {
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

/// Writes the repaired model of `--repair`, or reports that there is none.
pub(crate) fn write_healed(
    comparison: &mut Comparison,
    healed: Option<&HealedModel>,
    path: &Path,
) -> CommandResult {
    let Some(healed) = healed else {
        report!("opscope: `--repair`: no model was found whose outputs agree, nothing is written");
        return Ok(());
    };
    let is_new = Creator::new(Default::default()).create_file(path, &[&healed.bytes])?;
    if !is_new {
        return Err(exists(path));
    }
    if let Some(made) = &mut comparison.experiments {
        made.repaired = Some(path.display().to_string());
    }
    Ok(())
}

fn exists(path: &Path) -> CommandFailure {
    let message = format!("`--repair`: `{}` exists already", path.display());
    CommandFailure::message(USAGE, message).with_hint("pass the path of a new file")
}
