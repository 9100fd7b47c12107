//! A recorded value: a tensor, or several that make it up, such as a sparse tensor's indices and
//! values.

use std::sync::Arc;

use opscope_capture::{GraphInput, SelectedSlots};
use opscope_store::record::Operator;
use opscope_tensor::Tensor;

/// A recorded value.
pub(super) enum ShownValue {
    Whole(Tensor),
    /// Named tensors.
    Parts(Vec<(String, Tensor)>),
}

impl ShownValue {
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let (whole, parts) = match self {
            ShownValue::Whole(tensor) => (Some(tensor), [].as_slice()),
            ShownValue::Parts(parts) => (None, parts.as_slice()),
        };
        whole
            .into_iter()
            .chain(parts.iter().map(|(_, tensor)| tensor))
    }
}

/// Positions of an execution's tensors in its record, if some values have several.
pub(super) struct RecordSlots {
    pub(super) operator: Arc<Operator>,
    inputs: SlotNames,
    outputs: SlotNames,
}

/// One side of an operator.
struct SlotNames {
    names: Vec<String>,
    /// The first slot of each value, and the total at the end.
    starts: Vec<usize>,
}

impl SlotNames {
    fn new<'a>(names: &[String], shown: impl Fn(usize) -> Option<&'a ShownValue>) -> SlotNames {
        let mut side = SlotNames {
            names: Vec::with_capacity(names.len()),
            starts: vec![0],
        };
        for (position, name) in names.iter().enumerate() {
            match shown(position) {
                Some(ShownValue::Parts(parts)) => {
                    let parts = parts.iter().map(|(part, _)| format!("{name}.{part}"));
                    side.names.extend(parts);
                }
                Some(ShownValue::Whole(_)) | None => side.names.push(name.clone()),
            }
            side.starts.push(side.names.len());
        }
        side
    }

    fn slots(&self, position: usize) -> std::ops::Range<usize> {
        match (self.starts.get(position), self.starts.get(position + 1)) {
            (Some(&first), Some(&end)) => first..end,
            _ => 0..0,
        }
    }

    fn all(&self, positions: &[usize]) -> Vec<usize> {
        let slots = positions.iter().map(|&position| self.slots(position));
        slots.flatten().collect()
    }
}

impl RecordSlots {
    /// `input` and `output` return the value at a position of the operator.
    pub(super) fn new<'a>(
        operator: &Operator,
        input: impl Fn(usize) -> Option<&'a ShownValue>,
        output: impl Fn(usize) -> Option<&'a ShownValue>,
    ) -> RecordSlots {
        let inputs = SlotNames::new(&operator.inputs, input);
        let outputs = SlotNames::new(&operator.outputs, output);
        let operator = Operator {
            inputs: inputs.names.clone(),
            outputs: outputs.names.clone(),
            ..operator.clone()
        };
        RecordSlots {
            operator: Arc::new(operator),
            inputs,
            outputs,
        }
    }

    /// The first slot of an input.
    pub(super) fn input(&self, position: usize) -> usize {
        self.inputs.slots(position).start
    }

    /// The first slot of an output.
    pub(super) fn output(&self, position: usize) -> usize {
        self.outputs.slots(position).start
    }

    /// Returns the slots to keep, with values expanded to their tensors.
    pub(super) fn kept(&self, kept: &SelectedSlots) -> Arc<SelectedSlots> {
        Arc::new(SelectedSlots {
            inputs: self.inputs.all(&kept.inputs),
            outputs: self.outputs.all(&kept.outputs),
            graph_inputs: self.beside(&kept.graph_inputs),
            parameters: self.beside(&kept.parameters),
            role: kept.role,
            ..SelectedSlots::default()
        })
    }

    fn beside(&self, inputs: &[GraphInput]) -> Vec<GraphInput> {
        let mut beside = Vec::new();
        for input in inputs {
            for position in self.inputs.slots(input.position) {
                let mut operator = Operator::clone(&input.operator);
                operator.op_name.clone_from(&self.inputs.names[position]);
                operator.outputs = vec![operator.op_name.clone()];
                beside.push(GraphInput {
                    position,
                    operator: Arc::new(operator),
                });
            }
        }
        beside
    }
}
