//! `Scan`, whose body is executed as a separate graph, once for each slice of the scanned inputs.
//!
//! tract can only run it in a typed graph. There the operators of the body go another way than
//! those of the model: integers turn into symbols, nothing is put right that this adapter puts
//! right, and a `Scan` or a recurrent operator inside goes on with the state of the iteration
//! before.

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::scan::{InferenceScan, InputMapping};
use tract_onnx::tract_hir::ops::unimpl::UnimplementedOp;

use super::graph::TractGraph;
use super::observation::Observation;
use crate::EngineError;

const TOO_MANY: &str = "an output too many";

/// A `Scan` node's body, and how its values come from those of the node.
pub(super) struct ScanNode {
    body: TractGraph,
    inputs: Vec<InputMapping>,
    outputs: Vec<BodyOutput>,
    n_outputs: usize,
}

/// Where a result of the body goes.
struct BodyOutput {
    is_state: bool,
    /// The output of the node that has the last one.
    last_slot: Option<usize>,
    scanned: Option<StackedOutput>,
}

/// An output of the node that has the results of all iterations.
struct StackedOutput {
    slot: usize,
    axis: usize,
    is_reversed: bool,
    /// Its type and shape when there are no iterations, if the body says so.
    empty: Option<(DatumType, TVec<usize>)>,
}

/// Takes the operators of all `Scan` nodes out of `model`; returns them with their node ids.
pub(super) fn take_out(model: &mut InferenceModel) -> Vec<(usize, Box<InferenceScan>)> {
    let mut taken = Vec::new();
    for node in model.nodes_mut() {
        if let Some(scan) = node.op_as::<InferenceScan>() {
            let scan = Box::new(scan.clone());
            // The plan needs a node with as many outputs at this place.
            let placeholder = UnimplementedOp::new(node.outputs.len(), "Scan", "taken out");
            node.op = Box::new(placeholder);
            taken.push((node.id, scan));
        }
    }
    taken
}

impl ScanNode {
    /// A node whose body is planned already.
    pub(super) fn new(scan: &InferenceScan, body: TractGraph, n_outputs: usize) -> ScanNode {
        let outputs = scan.output_mapping.iter().enumerate();
        let outputs = outputs.map(|(i, mapping)| BodyOutput {
            is_state: mapping.state,
            last_slot: mapping.last_value_slot,
            scanned: mapping.scan.map(|(slot, info)| StackedOutput {
                slot,
                axis: info.axis,
                is_reversed: info.chunk < 0,
                empty: empty(&scan.body, i, info.axis),
            }),
        });
        ScanNode {
            body,
            inputs: scan.input_mapping.clone(),
            outputs: outputs.collect(),
            n_outputs,
        }
    }

    /// Evaluates the node; the outer error is about the node itself.
    pub(super) fn eval(
        &self,
        inputs: &TVec<TValue>,
        observation: Observation<'_>,
    ) -> TractResult<Result<TVec<TValue>, EngineError>> {
        // ONNX has no count of iterations: all scanned inputs have to be equally long.
        let n_iterations = self.n_iterations(inputs)?;
        let states = self
            .inputs
            .iter()
            .zip(inputs)
            .filter(|(mapping, _)| mapping.is_state());
        let mut states: Vec<TValue> = states.map(|(_, value)| value.clone()).collect();
        let mut stacks: Vec<Vec<TValue>> = self.outputs.iter().map(|_| Vec::new()).collect();
        for iteration in 0..n_iterations {
            let inputs = self.body_inputs(inputs, &states, iteration, n_iterations)?;
            // Operators of the body are not shown, so it runs without a tap.
            let results = match self.body.run(inputs, observation.untapped()) {
                Ok(results) => results,
                Err(error) => return Ok(Err(error)),
            };
            states.clear();
            for ((output, result), stack) in self.outputs.iter().zip(results).zip(&mut stacks) {
                if output.is_state {
                    states.push(result.clone());
                }
                if output.scanned.is_some() {
                    stack.push(result);
                }
            }
        }
        self.results(states, stacks).map(Ok)
    }

    /// How long all that is scanned is.
    fn n_iterations(&self, inputs: &TVec<TValue>) -> TractResult<usize> {
        let mut length = None;
        for (mapping, value) in self.inputs.iter().zip(inputs) {
            let Some(info) = mapping.as_scan() else {
                continue;
            };
            let own = value.shape().get(info.axis).copied();
            let own = own.context("a scanned input lacks the axis that is scanned")?;
            let known = *length.get_or_insert(own);
            ensure!(known == own, "scanned inputs of {known} and {own} slices");
        }
        length.context("nothing is scanned")
    }

    fn body_inputs(
        &self,
        inputs: &TVec<TValue>,
        states: &[TValue],
        iteration: usize,
        n_iterations: usize,
    ) -> TractResult<TVec<TValue>> {
        let mut states = states.iter();
        let mut own = tvec!();
        for (mapping, value) in self.inputs.iter().zip(inputs) {
            own.push(match mapping {
                InputMapping::State => states.next().context("a state is missing")?.clone(),
                InputMapping::Full => value.clone(),
                InputMapping::Scan(info) => {
                    let at = if info.chunk < 0 {
                        n_iterations - 1 - iteration
                    } else {
                        iteration
                    };
                    value.slice(info.axis, at, at + 1)?.into_tvalue()
                }
            });
        }
        Ok(own)
    }

    fn results(&self, states: Vec<TValue>, stacks: Vec<Vec<TValue>>) -> TractResult<TVec<TValue>> {
        let mut states = states.into_iter();
        let mut results: Vec<Option<TValue>> = vec![None; self.n_outputs];
        for (output, mut stack) in self.outputs.iter().zip(stacks) {
            if output.is_state {
                let state = states.next().context("a state is missing")?;
                if let Some(slot) = output.last_slot {
                    *results.get_mut(slot).context(TOO_MANY)? = Some(state);
                }
            }
            if let Some(scanned) = &output.scanned {
                // Results are put in from the end, while iterations still run in order.
                if scanned.is_reversed {
                    stack.reverse();
                }
                let slot = results.get_mut(scanned.slot).context(TOO_MANY)?;
                *slot = Some(scanned.join(&stack)?);
            }
        }
        let results = results.into_iter().collect::<Option<TVec<_>>>();
        results.context("an output is missing")
    }
}

impl StackedOutput {
    fn join(&self, results: &[TValue]) -> TractResult<TValue> {
        if results.is_empty() {
            let (datum_type, shape) = self.empty.as_ref().context(
                "there is nothing to scan, and the body does not say what shape its results have; \
                 ONNX Runtime can run this",
            )?;
            return Ok(Tensor::zero_dt(*datum_type, shape)?.into_tvalue());
        }
        let results: Vec<&Tensor> = results.iter().map(|value| &**value).collect();
        Ok(Tensor::stack_tensors(self.axis, &results)?.into_tvalue())
    }
}

/// The type of an output of the body, and its shape with nothing along `axis`, where both are
/// known.
fn empty(body: &InferenceModel, i: usize, axis: usize) -> Option<(DatumType, TVec<usize>)> {
    let fact = body.output_fact(i).ok()?;
    let mut shape = fact.shape.as_concrete_finite().ok()??;
    *shape.get_mut(axis)? = 0;
    Some((fact.datum_type.concretize()?, shape))
}
