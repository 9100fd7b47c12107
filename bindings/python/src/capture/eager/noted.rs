//! Notes about the operators of a step, for its description and for their records.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_store::record::parallel::Placement;
use opscope_store::record::{CallSite, Operator};
use opscope_tensor::Tensor;

use super::call::{CallInput, CallOrigin, PendingOperator};
use super::kind::OperatorKind;

/// The content of a step's description.
#[derive(Default)]
pub(super) struct EagerStepNotes {
    pub(super) operators: Vec<(Arc<Operator>, OperatorDetails)>,
    /// Values that no operator gives.
    pub(super) arguments: Vec<Arc<str>>,
    /// Those of them that have a name in the program: parameters, buffers, gradients and the
    /// tensors of optimizers.
    pub(super) named: HashSet<Arc<str>>,
    /// The values that the program returns, as far as it says so.
    pub(super) results: Vec<Arc<str>>,
    /// Values in memory that was written to since it had another name, with that name.
    pub(super) aliases: Vec<(Arc<str>, Arc<str>)>,
}

/// Details that the description of an operator has and its record lacks.
pub(super) struct OperatorDetails {
    pub(super) kind: Arc<OperatorKind>,
    pub(super) origin: CallOrigin,
    pub(super) is_selected: bool,
}

/// A result, or what was written to.
pub(super) struct CallOutput {
    /// Empty for what is no tensor.
    pub(super) name: Arc<str>,
    pub(super) tensor: Option<Tensor>,
    /// Of which distributed tensor it is a part.
    pub(super) placement: Option<Arc<Placement>>,
}

/// The operator as its record has it, what its description says besides, and its inputs.
pub(super) fn described(
    begun: PendingOperator,
    outputs: &[CallOutput],
) -> (Arc<Operator>, OperatorDetails, Vec<CallInput>) {
    let inputs = begun.inputs;
    let operator = Operator {
        task_id: begun.task_id,
        op_type: begun.kind.target.clone(),
        op_name: begun.op_name.to_string(),
        inputs: inputs.iter().map(|input| input.name.to_string()).collect(),
        outputs: outputs
            .iter()
            .map(|output| output.name.to_string())
            .collect(),
        attributes: begun.texts,
        call_site: Some(CallSite {
            module: begun.origin.module.clone(),
            source: begun.origin.source.clone(),
        }),
        collective: begun.collective,
        input_placements: known(inputs.iter().map(|input| &input.placement)),
        output_placements: known(outputs.iter().map(|output| &output.placement)),
        ..Operator::default()
    };
    let details = OperatorDetails {
        kind: begun.kind,
        origin: begun.origin,
        is_selected: begun.is_selected,
    };
    (Arc::new(operator), details, inputs)
}

/// Placements in position; none if nothing is known of any, as of nearly every operator.
fn known<'a>(
    placements: impl Iterator<Item = &'a Option<Arc<Placement>>> + Clone,
) -> Vec<Option<Arc<Placement>>> {
    if placements.clone().all(Option::is_none) {
        return Vec::new();
    }
    placements.cloned().collect()
}
