//! A loaded model of one node, with the operands that its description has.
//!
//! The values that the operator reads and produces are the model's own inputs and outputs. So they
//! are shown here, as they were described, and the engine runs without a tap: a dump has the same
//! values, names and layouts whichever engine computes them.

use std::sync::Arc;

use opscope_capture::{Probe, Purpose, Tap};
use opscope_store::record::graph::TensorType;
use opscope_store::record::{Operator, SlotSide};
use opscope_tensor::{DType, Layout, Tensor};

use super::axes::OperandChange;
use super::gemm::GEMM;
use super::lowering::OnnxLowering;
use super::operator::SingleOperator;
use crate::onnx::layout_of;
use crate::{DeclaredDim, EngineError, LoadedModel, ModelDescription, ModelSignature, ValueInfo};

/// One operator, ready to run.
pub struct SingleOperatorModel {
    model: Box<dyn LoadedModel>,
    lowered: OnnxLowering,
    description: ModelDescription,
}

impl SingleOperatorModel {
    pub(super) fn new(lowered: OnnxLowering, model: Box<dyn LoadedModel>) -> SingleOperatorModel {
        let engine = model.description();
        let first = engine.operators.first();
        let description = ModelDescription {
            signature: signature(&lowered, &engine.signature),
            operators: first
                .map(|operator| Arc::new(described(&lowered.described, operator)))
                .into_iter()
                .collect(),
            value_types: value_types(&lowered.described, &engine.value_types),
            // The only node of the model is in no body.
            carried: Vec::new(),
            ..engine.clone()
        };
        SingleOperatorModel {
            model,
            lowered,
            description,
        }
    }

    /// Gives the operator another name, for later runs.
    pub fn rename(&mut self, op_name: &str) {
        for operator in &mut self.description.operators {
            op_name.clone_into(&mut Arc::make_mut(operator).op_name);
        }
    }

    fn failed(&self, reason: String) -> EngineError {
        let (op_type, op_name) = match self.description.operators.first() {
            Some(operator) => (operator.op_type.clone(), operator.op_name.clone()),
            None => <(String, String)>::default(),
        };
        EngineError::Operator {
            op_type,
            op_name,
            reason,
        }
    }

    /// Returns the tensors that the operator reads, by position.
    fn read(&self, inputs: &[Tensor]) -> Vec<Option<Tensor>> {
        let mut given = inputs.iter();
        self.lowered
            .described
            .inputs
            .iter()
            .map(|operand| {
                let operand = operand.as_ref()?;
                let constant = operand.constant.as_ref();
                // Constants are part of the model and are shown with the inputs all the same.
                constant.or_else(|| given.next()).cloned()
            })
            .collect()
    }

    /// Returns the inputs for the engine: those that are not constants, converted.
    fn engine_inputs(&self, read: &[Option<Tensor>]) -> Result<Vec<Tensor>, EngineError> {
        let mut given = Vec::new();
        let operands = self.lowered.onnx.inputs.iter().zip(&self.lowered.inputs);
        for (i, (operand, change)) in operands.enumerate() {
            let Some(tensor) = read.get(i).and_then(Option::as_ref) else {
                continue;
            };
            if operand
                .as_ref()
                .is_none_or(|operand| operand.constant.is_some())
            {
                continue;
            }
            given.push(match change {
                None => tensor.clone(),
                Some(change) => change
                    .to_engine(tensor)
                    .map_err(|reason| self.failed(format!("input {i}: {reason}")))?,
            });
        }
        Ok(given)
    }

    /// Returns the engine's results, by position, as described.
    fn produced(&self, results: &[Tensor]) -> Result<Vec<Option<Tensor>>, EngineError> {
        let mut results = results.iter();
        let mut produced = Vec::new();
        let operands = self.lowered.onnx.outputs.iter().zip(&self.lowered.outputs);
        for (i, (operand, change)) in operands.enumerate() {
            let result = operand.as_ref().and_then(|_| results.next());
            produced.push(match (result, change) {
                (None, _) => None,
                (Some(result), None) => Some(result.clone()),
                (Some(result), Some(change)) => Some(
                    change
                        .to_described(result)
                        .map_err(|reason| self.failed(format!("output {i}: {reason}")))?,
                ),
            });
        }
        Ok(produced)
    }

    fn show(&self, probe: &mut Probe, side: SlotSide, tensors: &[Option<Tensor>]) {
        let described = &self.lowered.described;
        let (operands, is_output) = match side {
            SlotSide::Input => (&described.inputs, false),
            SlotSide::Output => (&described.outputs, true),
        };
        let shown = tensors.iter().zip(operands).enumerate();
        for (i, (tensor, operand)) in shown {
            let (Some(tensor), Some(operand)) = (tensor, operand) else {
                continue;
            };
            let n_axes = tensor.shape().dims().len();
            let layout = match operand.layout.n_named_axes() {
                Some(named) if named == n_axes => operand.layout,
                // The layout does not match the shape.
                Some(_) => Layout::Nd,
                None => layout_of(&self.lowered.onnx.op_type, is_output, i, n_axes),
            };
            let tensor = tensor.clone().with_layout(layout);
            match side {
                SlotSide::Input => probe.input(i, tensor),
                SlotSide::Output => probe.output(i, tensor),
            }
        }
    }
}

/// The engine's operator under the description's name and with its operands.
fn described(description: &SingleOperator, engine: &Operator) -> Operator {
    let [inputs, outputs] = [&description.inputs, &description.outputs].map(|operands| {
        let names = operands
            .iter()
            .map(|operand| operand.as_ref().map(|operand| operand.name.clone()));
        names.map(Option::unwrap_or_default).collect()
    });
    let op_name = match description.op_name.as_str() {
        "" => engine.op_name.clone(),
        name => name.to_owned(),
    };
    let described = Operator {
        op_name,
        inputs,
        outputs,
        ..engine.clone()
    };
    if description.op_type != GEMM {
        return described;
    }
    // The first of several nodes says nothing of the operator that they compute.
    Operator {
        op_type: description.op_type.clone(),
        attributes: Vec::new(),
        attribute_types: Vec::new(),
        default_attributes: Arc::default(),
        ..described
    }
}

/// Returns the inputs and outputs of the description; types and dimensions of results come from the
/// engine.
fn signature(lowered: &OnnxLowering, engine: &ModelSignature) -> ModelSignature {
    let described = &lowered.described;
    let inputs = described.inputs.iter().flatten();
    let inputs = inputs.filter(|operand| operand.constant.is_none());
    let changes = lowered.outputs.iter().zip(&lowered.onnx.outputs);
    let changes = changes.filter_map(|(change, operand)| operand.as_ref().map(|_| change));
    ModelSignature {
        inputs: inputs
            .map(|operand| ValueInfo {
                name: operand.name.clone(),
                dtype: operand.dtype,
                dims: operand.dims.clone(),
            })
            .collect(),
        outputs: engine
            .outputs
            .iter()
            .zip(changes)
            .map(|(value, change)| {
                let dims = value.dims.as_deref().map(|dims| match change {
                    Some(change) => change.dims_from_engine(dims),
                    None => dims.to_vec(),
                });
                let dtype = match change {
                    Some(OperandChange::Positions) => DType::I32,
                    _ => value.dtype,
                };
                ValueInfo {
                    dtype,
                    dims,
                    ..value.clone()
                }
            })
            .collect(),
        ..engine.clone()
    }
}

/// Types by name, with the dimensions of the description.
fn value_types(
    described: &SingleOperator,
    known: &[(String, TensorType)],
) -> Vec<(String, TensorType)> {
    let known = known.iter().cloned().map(|(name, mut value)| {
        let mut operands = described.inputs.iter().chain(&described.outputs).flatten();
        let operand = operands.find(|operand| operand.name == name);
        if operand.is_some_and(|operand| operand.dtype == DType::I32) {
            value.dtype = DType::I32;
        }
        if let Some(dims) = operand.and_then(|operand| operand.dims.as_ref()) {
            value.shape = dims
                .iter()
                .map(|dim| match dim {
                    DeclaredDim::Fixed(n) => i64::try_from(*n).unwrap_or(i64::MAX),
                    DeclaredDim::Named(_) | DeclaredDim::Unknown => -1,
                })
                .collect();
        }
        (name, value)
    });
    known.collect()
}

impl LoadedModel for SingleOperatorModel {
    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn refusal(&self, purpose: Purpose) -> Option<EngineError> {
        self.model.refusal(purpose)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.model.take_warnings()
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        let tap = tap.filter(|tap| tap.is_active());
        if tap.is_some_and(Tap::is_stopped) {
            return Err(EngineError::Stopped);
        }
        let read = self.read(inputs);
        let given = self.engine_inputs(&read)?;
        let operator = self.description.operators.first();
        let mut probe = tap
            .zip(operator)
            .and_then(|(tap, operator)| tap.open(operator));
        if let Some(probe) = &mut probe {
            self.show(probe, SlotSide::Input, &read);
        }
        // The values are shown here in their described layout, so that the engine itself gets no
        // tap.
        let produced = match self.model.run(&given, None) {
            Ok(results) => self.produced(&results),
            // The engine knows the operator by its ONNX type, the user by the one of the
            // description.
            Err(EngineError::Operator { reason, .. }) => Err(self.failed(reason)),
            Err(error) => Err(error),
        };
        match (produced, probe) {
            (Ok(produced), None) => Ok(produced.into_iter().flatten().collect()),
            (Ok(produced), Some(mut probe)) => {
                self.show(&mut probe, SlotSide::Output, &produced);
                probe.submit();
                Ok(produced.into_iter().flatten().collect())
            }
            (Err(error), probe) => {
                if let (Some(probe), EngineError::Operator { reason, .. }) = (probe, &error) {
                    probe.fail(reason);
                }
                Err(error)
            }
        }
    }
}
