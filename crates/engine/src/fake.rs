//! A model made of closures: an engine for tests and examples, without dependencies.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_capture::{Probe, Tap};
use opscope_store::record::{Operator, SlotSide};
use opscope_tensor::{Tensor, TensorView};

use crate::{
    EngineError, LoadedModel, ModelDescription, ModelSignature, ResultRounding, ResultSurvey,
};

/// Computes an operator's outputs from its inputs, or says why it cannot.
pub type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>, String> + Send>;

/// A chain of operators that run one after the other.
#[derive(Default)]
pub struct FakeModel {
    description: ModelDescription,
    functions: Vec<Function>,
    /// The memory in which tensors are shown, if not in their own.
    lent: Option<Vec<u8>>,
}

/// The byte that fills lent memory once a tensor has been shown.
const OVERWRITTEN: u8 = 0xa5;

impl FakeModel {
    /// A model with no operators yet.
    pub fn new(signature: ModelSignature) -> FakeModel {
        FakeModel {
            description: ModelDescription {
                signature,
                ..ModelDescription::default()
            },
            ..FakeModel::default()
        }
    }

    /// Adds an operator that reads and produces values by name.
    #[must_use]
    pub fn with(
        mut self,
        op_type: &str,
        op_name: &str,
        inputs: &[&str],
        outputs: &[&str],
        function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>, String> + Send + 'static,
    ) -> FakeModel {
        let operators = &mut self.description.operators;
        operators.push(Arc::new(Operator {
            task_id: u32::try_from(operators.len()).unwrap_or(u32::MAX),
            op_type: op_type.to_owned(),
            op_name: op_name.to_owned(),
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            outputs: outputs.iter().map(|name| (*name).to_owned()).collect(),
            ..Operator::default()
        }));
        self.functions.push(Box::new(function));
        self
    }

    /// The same model in an engine that reuses its memory at once: all tensors are shown one after
    /// the other in one buffer, which is overwritten as soon as each call returns.
    #[must_use]
    pub fn in_place(self) -> FakeModel {
        let lent = Some(Vec::new());
        FakeModel { lent, ..self }
    }
}

/// Shows tensors as they are, or lends them.
fn show(probe: &mut Probe, side: SlotSide, tensors: &[Tensor], lent: Option<&mut Vec<u8>>) {
    let Some(lent) = lent else {
        for (i, tensor) in tensors.iter().enumerate() {
            match side {
                SlotSide::Input => probe.input(i, tensor.clone()),
                SlotSide::Output => probe.output(i, tensor.clone()),
            }
        }
        return;
    };
    for (i, tensor) in tensors.iter().enumerate() {
        let Ok(whole) = tensor.host_view() else {
            continue;
        };
        // One buffer for all tensors, as an engine has it that plans its memory: who keeps a
        // reference sees other values.
        lent.clear();
        lent.extend_from_slice(whole.bytes);
        let view = TensorView {
            bytes: lent,
            ..whole
        };
        // The session counts what it cannot accept.
        let _ = match side {
            SlotSide::Input => probe.input_borrowed(i, view),
            SlotSide::Output => probe.output_borrowed(i, view),
        };
        // A copy that is taken too late then shows in the values and cannot pass by chance.
        lent.fill(OVERWRITTEN);
    }
}

impl LoadedModel for FakeModel {
    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        self.execute(inputs, tap, |_, _| {})
    }

    fn survey_results(&mut self, inputs: &[Tensor]) -> Result<ResultSurvey, EngineError> {
        let mut survey = ResultSurvey::default();
        self.execute(inputs, None, |operator, produced| {
            let dtypes = produced.iter().map(Tensor::dtype).enumerate();
            survey.note(operator).dtypes.extend(dtypes);
        })?;
        Ok(survey)
    }

    fn run_rounded(
        &mut self,
        inputs: &[Tensor],
        rounding: &ResultRounding,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.execute(inputs, None, |operator, produced| {
            let task_id = operator.task_id;
            if rounding.rounds(task_id) {
                let produced = produced.iter_mut();
                produced.for_each(|tensor| round(tensor, rounding, task_id));
            }
        })
    }
}

/// Rounds a tensor of floats.
fn round(tensor: &mut Tensor, rounding: &ResultRounding, task_id: u32) {
    let Ok(bytes) = tensor.host_bytes() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    rounding.round(task_id, tensor.dtype(), &mut bytes);
    if let Ok(rounded) = Tensor::from_vec(tensor.dtype(), tensor.shape().clone(), bytes) {
        *tensor = rounded;
    }
}

impl FakeModel {
    /// Runs the operators; `take_results` may change what each has produced.
    fn execute(
        &mut self,
        inputs: &[Tensor],
        tap: Option<&Tap>,
        mut take_results: impl FnMut(&Arc<Operator>, &mut Vec<Tensor>),
    ) -> Result<Vec<Tensor>, EngineError> {
        let tap = tap.filter(|tap| tap.is_active());
        let ModelDescription {
            signature,
            operators,
            ..
        } = &self.description;
        let names = signature.inputs.iter().map(|value| value.name.clone());
        let mut values: HashMap<String, Tensor> = names.zip(inputs.iter().cloned()).collect();
        for (operator, function) in operators.iter().zip(&self.functions) {
            // Asked between operators only, as the real engines do it.
            if tap.is_some_and(Tap::is_stopped) {
                return Err(EngineError::Stopped);
            }
            let fail = |reason: String| EngineError::Operator {
                op_type: operator.op_type.clone(),
                op_name: operator.op_name.clone(),
                reason,
            };
            let mut read = Vec::with_capacity(operator.inputs.len());
            for name in &operator.inputs {
                let value = values.get(name).cloned();
                read.push(value.ok_or_else(|| fail(format!("`{name}` has no value")))?);
            }
            let mut probe = tap.and_then(|tap| tap.open(operator));
            if let Some(probe) = &mut probe {
                show(probe, SlotSide::Input, &read, self.lent.as_mut());
            }
            let mut produced = match function(&read) {
                Ok(produced) => produced,
                Err(reason) => {
                    if let Some(probe) = probe {
                        probe.fail(&reason);
                    }
                    return Err(fail(reason));
                }
            };
            take_results(operator, &mut produced);
            if let Some(mut probe) = probe {
                show(&mut probe, SlotSide::Output, &produced, self.lent.as_mut());
                probe.submit();
            }
            values.extend(operator.outputs.iter().cloned().zip(produced));
        }
        Ok(signature
            .outputs
            .iter()
            .filter_map(|value| values.get(&value.name).cloned())
            .collect())
    }
}
