//! The inputs of both sides.

use opscope_analysis::compare::side::ComparedDump;
use opscope_diff::inputs::{BaseSide, InputPairing, pair_inputs, recorded_inputs};
use opscope_engine::ModelSignature;
use opscope_tensor::Tensor;

use super::DiffArguments;
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, USAGE};
use crate::inputs::InputSource;

/// The side of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Target,
    Golden,
}

/// The inputs of both models, step by step.
pub(super) struct SideInputs {
    values: InputValues,
    /// The numbers of the steps.
    pub(super) steps: Vec<u64>,
}

enum InputValues {
    /// For the base model, and by its pairing for the other side if that is a model.
    Made(Box<InputSource>, Option<(BaseSide, InputPairing)>),
    /// Inputs from a dump, for each step.
    Recorded(Vec<Vec<Tensor>>),
}

impl SideInputs {
    /// The inputs of two models.
    pub(super) fn of_models(
        arguments: &DiffArguments,
        [target, golden]: [&ModelSignature; 2],
    ) -> CommandResult<SideInputs> {
        let (base, pairing) =
            pair_inputs(target, golden).map_err(|error| CommandFailure::new(USAGE, error))?;
        if !pairing.is_by_name {
            report!(
                "opscope: warning: the models' inputs have different names: they are matched \
                 by position"
            );
        }
        let signature = match base {
            BaseSide::Target => target,
            BaseSide::Golden => golden,
        };
        SideInputs::made(arguments, signature, Some((base, pairing)))
    }

    /// The inputs of a model compared with a dump: the given ones, or those in the dump.
    pub(super) fn beside_dump(
        arguments: &DiffArguments,
        signature: &ModelSignature,
        dump: &ComparedDump,
    ) -> CommandResult<SideInputs> {
        if !arguments.inputs.is_empty() || signature.inputs.is_empty() {
            return SideInputs::made(arguments, signature, None);
        }
        // The dump's step numbers, so that both sides' steps match.
        let mut steps: Vec<Option<u64>> = dump.runs.iter().map(|run| run.place.step).collect();
        steps.sort_unstable();
        steps.dedup();
        let recorded = steps
            .iter()
            .map(|&step| recorded_inputs(dump, step, signature))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| {
                // Inputs other than the dump's would make every operator differ.
                CommandFailure::new(USAGE, error).with_hint(format!(
                    "pass the inputs that the dump was made with by `--input` or `--inputs`; \
                     `opscope show {}` lists what was read",
                    dump.root.display()
                ))
            })?;
        report!("opscope: inputs: from the dump `{}`", dump.root.display());
        Ok(SideInputs {
            values: InputValues::Recorded(recorded),
            steps: steps.into_iter().map(|step| step.unwrap_or(0)).collect(),
        })
    }

    /// The inputs of a model alone.
    pub(super) fn made(
        arguments: &DiffArguments,
        signature: &ModelSignature,
        pairing: Option<(BaseSide, InputPairing)>,
    ) -> CommandResult<SideInputs> {
        let source = InputSource::new(&arguments.inputs, true, signature)?;
        if let Some(note) = source.random_note(&arguments.inputs)? {
            report!("opscope: inputs: random: {note}");
        }
        let n_steps = arguments.runs.unwrap_or(source.n_sets());
        Ok(SideInputs {
            values: InputValues::Made(Box::new(source), pairing),
            steps: (0..n_steps).collect(),
        })
    }

    /// Inputs of a side's n-th step.
    pub(super) fn get(&self, side: Side, nth: usize) -> CommandResult<Vec<Tensor>> {
        let (source, pairing) = match &self.values {
            InputValues::Recorded(steps) => return Ok(steps[nth].clone()),
            InputValues::Made(source, pairing) => (source, pairing),
        };
        let base = source.step(nth as u64)?;
        match (side, pairing) {
            (Side::Target, Some((BaseSide::Golden, pairing)))
            | (Side::Golden, Some((BaseSide::Target, pairing))) => Ok(pairing.apply(&base)?),
            _ => Ok(base),
        }
    }
}
