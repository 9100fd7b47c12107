//! The inputs of a model, read from a dump.

use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, positions};
use opscope_engine::ModelSignature;
use opscope_store::record::SlotSide;
use opscope_tensor::Tensor;
use thiserror::Error;

/// Why a dump does not contain the inputs of a model.
#[derive(Debug, Error)]
pub enum RecordedInputsError {
    /// No operator of the dump shows the value.
    #[error("the dump has no value of the input `{0}`")]
    Missing(String),
    /// The value was read, but is not usable.
    #[error("the value of the input `{name}` in the dump is not usable: {reason}")]
    Unusable {
        /// The input.
        name: String,
        /// Why.
        reason: String,
    },
}

/// The inputs of a model in a step of a dump, found by the names of the values that its operators
/// read. The dump must contain `step`.
///
/// # Errors
/// [`RecordedInputsError`] for the first input that is not in the dump.
pub fn recorded_inputs(
    dump: &ComparedDump,
    step: Option<u64>,
    signature: &ModelSignature,
) -> Result<Vec<Tensor>, RecordedInputsError> {
    let inputs = signature.inputs.iter();
    inputs
        .map(|value| {
            let slot = find(dump, step, &value.name)
                .ok_or_else(|| RecordedInputsError::Missing(value.name.clone()))?;
            let unusable = |reason: String| RecordedInputsError::Unusable {
                name: value.name.clone(),
                reason,
            };
            let loaded = slot
                .load(None)
                .map_err(|error| unusable(error.to_string()))?;
            let view = loaded.view();
            Tensor::from_vec(view.dtype, view.shape.clone(), view.bytes.to_vec())
                .map_err(|error| unusable(error.to_string()))
        })
        .collect()
}

/// The first slot of a step with the value of this name as an input.
fn find<'a>(dump: &'a ComparedDump, step: Option<u64>, name: &str) -> Option<&'a ExecutionSlot> {
    let runs = dump.runs.iter().enumerate();
    let mut of_step = runs.filter(|(_, run)| run.place.step == step);
    of_step.find_map(|(index, run)| {
        let (_, graph, operator) = dump.description_of(index)?;
        // A value produced by an operator is not an input of the model.
        let is_argument = graph.arguments.iter().any(|argument| argument == name);
        let inputs = &graph.operators.get(operator)?.inputs;
        let is_present: Vec<bool> = inputs.iter().map(Option::is_some).collect();
        // Some dumps have no slot for an absent optional input, but the graph counts it.
        let slots = positions(run, SlotSide::Input, &is_present);
        let mut slots = slots.into_iter().filter(|_| is_argument);
        let (slot, _) =
            slots.find(|(_, position)| inputs.get(*position) == Some(&Some(name.to_owned())))?;
        run.slots.get(slot).filter(|slot| slot.has_elements)
    })
}
