//! Notes about a step's operators, for its description and their records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::parallel::Placement;
use opscope_store::record::{CallSite, Operator};
use opscope_tensor::Tensor;

use super::call::{CallInput, CallOrigin, PendingOperator};
use super::kind::OperatorKind;

/// The contents of a step's description.
#[derive(Default)]
pub(super) struct EagerStepNotes {
    pub(super) operators: Vec<(Arc<Operator>, OperatorDetails)>,
    /// Values without a producer.
    pub(super) arguments: Vec<Arc<str>>,
    /// Those named by the program: parameters, buffers, gradients and optimizer tensors.
    pub(super) named: HashSet<Arc<str>>,
    /// The values that the program returns, if declared.
    pub(super) results: Vec<Arc<str>>,
    /// The program's tensors that became results, by the names of these.
    pub(super) assigned: HashMap<Arc<str>, Arc<str>>,
    /// Values whose memory was written since they had another name, with that name.
    pub(super) aliases: Vec<(Arc<str>, Arc<str>)>,
}

/// Details for an operator's description that its record lacks.
pub(super) struct OperatorDetails {
    pub(super) kind: Arc<OperatorKind>,
    pub(super) origin: CallOrigin,
    pub(super) is_selected: bool,
    /// The program's tensors that it writes to: attributes of its outputs.
    pub(super) written: Vec<(String, String)>,
}

/// A result, or a written argument.
pub(super) struct CallOutput {
    /// Empty if it is not a tensor.
    pub(super) name: Arc<str>,
    pub(super) tensor: Option<Tensor>,
    /// If the operator writes to it, the name that the program gives to the tensor.
    pub(super) given_name: Option<Arc<str>>,
    /// Its placement in a distributed tensor.
    pub(super) placement: Option<Arc<Placement>>,
}

/// The operator for its record, the details for its description, and its inputs.
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
        written: written(outputs),
    };
    (Arc::new(operator), details, inputs)
}

fn written(outputs: &[CallOutput]) -> Vec<(String, String)> {
    let outputs = outputs.iter().enumerate();
    let written = outputs.filter_map(|(i, output)| {
        let name = output.given_name.as_ref()?;
        Some((format!("output.{i}.fqn"), name.to_string()))
    });
    written.collect()
}

/// Placements by position; empty if none is known, as for nearly every operator.
fn known<'a>(
    placements: impl Iterator<Item = &'a Option<Arc<Placement>>> + Clone,
) -> Vec<Option<Arc<Placement>>> {
    if placements.clone().all(Option::is_none) {
        return Vec::new();
    }
    placements.cloned().collect()
}
