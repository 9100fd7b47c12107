//! Runs and dumps one operator as a model with one node.

use std::sync::{Arc, Mutex};

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    Exclusion, ModelSelection, OperatorFailure, OperatorSelection, Plan, Purpose, SessionOptions,
    Sink, SinkError, Steps, WrittenFiles,
};
use opscope_engine::single_operator::{
    Operand, OperatorAttribute, OperatorError, SingleOperator, numbered_name,
};
use opscope_engine::{
    DeclaredDim, EngineError, FallbackEngine, FallbackModel, LoadedModel, ModelSource,
};
use opscope_store::file_format::ascend_codes::{dtype_from_graph_engine, layout_from_code};
use opscope_store::record::{Operator, Record};
use opscope_store::tree::acl::UNKNOWN_ID;
use opscope_tensor::{DType, Layout, Tensor};

use super::execution::EngineExecution;
use crate::capture::ExecutionCapture;
use crate::data::{DataBuffer, TensorDesc};
use crate::data_type::{self, UNDEFINED};
use crate::handle::Handle;
use crate::lock::lock;
use crate::operator::RunnableOperator;
use crate::status::{
    FORMAT_NOT_MATCH, GE_PARAM_INVALID, INVALID_PARAM, OP_ATTR_NOT_MATCH, OP_LOAD_FAILED,
    OP_NOT_FOUND, UNINITIALIZE, UNSUPPORTED_DATA_TYPE,
};
use crate::{AclProcess, Answer};

/// Maximum number of inputs or outputs of an operator.
const N_OPERANDS_MAX: usize = 1 << 16;

impl AclProcess {
    pub(super) fn prepare(
        &self,
        op_type: &str,
        inputs: &[Handle],
        outputs: &[Handle],
        attributes: Handle,
    ) -> Answer<RunnableOperator> {
        self.check_operators()?;
        if op_type.is_empty() || inputs.len().max(outputs.len()) > N_OPERANDS_MAX {
            return Err(INVALID_PARAM);
        }
        let objects = self.objects();
        let inputs = objects.tensor_descs.find_all(inputs)?;
        let outputs = objects.tensor_descs.find_all(outputs)?;
        let attributes = match attributes {
            0 => Vec::new(),
            handle => {
                let attributes = objects.op_attributes.find(handle)?;
                attributes.lower().map_err(|name| {
                    let reason = "a list of lists has no counterpart in ONNX";
                    self.refuse(OP_ATTR_NOT_MATCH, "EH0001", &[&name, "attr", reason])
                })?
            }
        };
        drop(objects);
        self.prepare_described(op_type, inputs, outputs, attributes)
    }

    fn check_operators(&self) -> Answer {
        if self.is_initialized() {
            return Ok(());
        }
        Err(self.inner_error(UNINITIALIZE, "an operator was used before aclInit"))
    }

    /// An operator with descriptions that are not objects of the program.
    pub(super) fn prepare_described(
        &self,
        op_type: &str,
        inputs: Vec<TensorDesc>,
        outputs: Vec<TensorDesc>,
        attributes: Vec<(String, OperatorAttribute)>,
    ) -> Answer<RunnableOperator> {
        self.check_operators()?;
        let operator = SingleOperator {
            op_type: op_type.to_owned(),
            // Each execution has a separate name.
            op_name: op_type.to_owned(),
            opset: opscope_engine::single_operator::OPSET_DEFAULT,
            inputs: self.operands("x", &inputs, true)?,
            outputs: self.operands("y", &outputs, false)?,
            attributes,
        };
        let operator = operator.for_engine().map_err(|error| {
            let status = match error {
                OperatorError::Format { .. } => FORMAT_NOT_MATCH,
                _ => OP_ATTR_NOT_MATCH,
            };
            self.inner_error(status, &error.to_string())
        })?;
        let loaded = self.load_for(ModelSource::Memory(operator.bytes()), Purpose::Values);
        let FallbackModel { model, taken } = loaded.map_err(|error| {
            let status = match error {
                EngineError::Unsupported { .. } => OP_NOT_FOUND,
                _ => OP_LOAD_FAILED,
            };
            self.inner_error(status, &error.to_string())
        })?;
        let is_changed = operator.is_changed();
        Ok(RunnableOperator {
            op_type: op_type.to_owned(),
            inputs,
            outputs,
            is_changed,
            taken,
            operator: Mutex::new(operator.around(model)),
        })
    }

    /// The operands for an engine. A description without a type means an omitted operand.
    fn operands(
        &self,
        prefix: &str,
        descs: &[TensorDesc],
        is_input: bool,
    ) -> Answer<Vec<Option<Operand>>> {
        let mut operands = Vec::with_capacity(descs.len());
        for (i, desc) in descs.iter().enumerate() {
            if desc.data_type == UNDEFINED {
                operands.push(None);
                continue;
            }
            let dtype = dtype_from_graph_engine(desc.data_type).ok_or(UNSUPPORTED_DATA_TYPE)?;
            // The shape of an output derives from the inputs.
            let dims = if is_input {
                let shape = self.input_shape(desc)?;
                Some(shape.iter().map(|&n| DeclaredDim::Fixed(n)).collect())
            } else {
                None
            };
            operands.push(Some(Operand {
                name: format!("{prefix}{i}"),
                dtype,
                dims,
                constant: self.constant(desc, dtype)?,
                layout: self.layout(desc.format)?,
                origin_layout: match desc.origin_format {
                    UNDEFINED => None,
                    format => Some(self.layout(format)?),
                },
            }));
        }
        Ok(operands)
    }

    /// The layout of an `aclFormat`; undefined for the undefined one.
    fn layout(&self, format: i32) -> Answer<Layout> {
        if format == UNDEFINED {
            return Ok(Layout::Nd);
        }
        let known = u32::try_from(format).ok().and_then(layout_from_code);
        known.ok_or_else(|| {
            let reason = "expected a format that names plain axes, such as NCHW, NHWC or ND";
            let placeholders = [&format.to_string(), "format", reason];
            self.refuse(FORMAT_NOT_MATCH, "EH0001", &placeholders)
        })
    }

    fn input_shape(&self, desc: &TensorDesc) -> Answer<opscope_tensor::Shape> {
        desc.shape().ok_or_else(|| {
            let dims = format!("{:?}", desc.dims);
            let reason = "an input needs a known shape that fits into memory";
            self.refuse(INVALID_PARAM, "EH0001", &[&dims, "inputDesc", reason])
        })
    }

    fn constant(&self, desc: &TensorDesc, dtype: DType) -> Answer<Option<Tensor>> {
        let Some(bytes) = &desc.constant else {
            return Ok(None);
        };
        let tensor = Tensor::from_vec(dtype, self.input_shape(desc)?, bytes.clone());
        tensor.map(Some).map_err(|error| {
            let reason = error.to_string();
            self.refuse(INVALID_PARAM, "EH0001", &["constant", "inputDesc", &reason])
        })
    }

    pub(super) fn run_prepared(
        &self,
        prepared: &RunnableOperator,
        inputs: &[Handle],
        outputs: &[Handle],
    ) -> Answer {
        if inputs.len() != prepared.inputs.len() || outputs.len() != prepared.outputs.len() {
            return Err(INVALID_PARAM);
        }
        let objects = self.objects();
        let buffers = objects.buffers.find_all(inputs)?;
        let output_buffers = objects.buffers.find_all(outputs)?;
        drop(objects);
        let outputs: Vec<_> = outputs.iter().copied().zip(output_buffers).collect();
        self.run_on_buffers(prepared, buffers, &outputs)
    }

    /// Runs an operator on the same number of buffers as operands; outputs come with the program's
    /// handles.
    pub(super) fn run_on_buffers(
        &self,
        prepared: &RunnableOperator,
        buffers: Vec<DataBuffer>,
        outputs: &[(Handle, DataBuffer)],
    ) -> Answer {
        let mut tensors = Vec::new();
        for (desc, buffer) in prepared.inputs.iter().zip(buffers) {
            // A constant is part of the operator's model, which has no input for it.
            if desc.data_type != UNDEFINED && desc.constant.is_none() {
                tensors.push(self.read_operand(desc, buffer)?);
            }
        }
        let mut operator = prepared.operator();
        operator.rename(&self.next_name(&prepared.op_type));
        let results = self.run_alone(&mut *operator, &tensors, prepared.taken.as_ref())?;
        let present = prepared.outputs.iter().enumerate();
        let present = present.filter(|(_, desc)| desc.data_type != UNDEFINED);
        for ((i, desc), result) in present.zip(&results) {
            // The program would read the bytes as the type that it described.
            if data_type::number(result.dtype()) != desc.data_type {
                let (found, said) = (result.dtype(), desc.data_type);
                let text = format!("output {i} is {found}, described as type {said}");
                return Err(self.inner_error(GE_PARAM_INVALID, &text));
            }
            // A result with permuted axes has the same number of bytes as the described one.
            if prepared.is_changed {
                self.check_shape(i, desc, result)?;
            }
            let (handle, buffer) = outputs[i];
            self.check_buffer_and_write(i, handle, buffer, result)?;
        }
        Ok(())
    }

    /// Runs an engine with one operator, under the dumps of operators outside models.
    ///
    /// # Errors
    /// As for [`AclProcess::engine_error`], which reports it.
    pub(super) fn run_alone(
        &self,
        operator: &mut dyn LoadedModel,
        inputs: &[Tensor],
        taken: Option<&FallbackEngine>,
    ) -> Answer<Vec<Tensor>> {
        let (values, failures) = if self.is_dump_enabled() {
            (self.operator_capture(), self.failure_capture())
        } else {
            (None, None)
        };
        let execution = EngineExecution {
            engine: operator,
            inputs,
            model: &Arc::default(),
            graph_inputs: &[],
            step: None,
            taken,
            options: SessionOptions {
                n_writers: 1,
                ..SessionOptions::default()
            },
        };
        let values = values.map(without_tasks);
        let outcome = self.run_dumped(execution, values, failures.map(without_tasks));
        if let Some(error) = outcome.dump_error {
            self.dump_failed(&format!("the operator runs without it only: {error}"));
        }
        outcome.results.map_err(|error| {
            self.call_exception_callback(operator.operators(), &error);
            self.engine_error(&error)
        })
    }

    /// The name of the next execution: the type, and the number of previous executions of that
    /// type, dumped or not.
    pub(super) fn next_name(&self, op_type: &str) -> String {
        let mut counts = lock(&self.op_counts);
        let count = counts.entry(op_type.to_owned()).or_default();
        let name = numbered_name(op_type, *count);
        *count += 1;
        name
    }

    /// A result with permuted axes must have the shape that the program described.
    fn check_shape(&self, index: usize, desc: &TensorDesc, result: &Tensor) -> Answer {
        let found = result.shape();
        // A description with open dimensions accepts any result.
        if desc.shape().is_none_or(|described| described == *found) {
            return Ok(());
        }
        let (found, described) = (found.dims(), &desc.dims);
        let text = format!("output {index} has the shape {found:?}, described as {described:?}");
        Err(self.inner_error(GE_PARAM_INVALID, &text))
    }

    fn read_operand(&self, desc: &TensorDesc, buffer: DataBuffer) -> Answer<Tensor> {
        let dtype = dtype_from_graph_engine(desc.data_type).ok_or(UNSUPPORTED_DATA_TYPE)?;
        let shape = self.input_shape(desc)?;
        let n_bytes = shape.n_bytes(dtype).map_err(|_| UNSUPPORTED_DATA_TYPE)?;
        self.check_operand_length(n_bytes, buffer)?;
        let bytes = self.read_padded(buffer, n_bytes)?;
        Tensor::from_vec(dtype, shape, bytes).map_err(|_| INVALID_PARAM)
    }

    fn check_operand_length(&self, n_bytes: usize, buffer: DataBuffer) -> Answer {
        if buffer.size >= n_bytes {
            return Ok(());
        }
        let text = format!(
            "an input takes {n_bytes} bytes, its buffer has {}",
            buffer.size
        );
        Err(self.inner_error(GE_PARAM_INVALID, &text))
    }

    /// The dump of values of operators outside models, if any.
    fn operator_capture(&self) -> Option<ExecutionCapture> {
        let settings = self.single_operator_dump()?;
        let plan = Plan {
            models: ModelSelection::Every(OperatorSelection::every()),
            // Operators that leave no file within a graph are dumped when called individually.
            excluded: exclusions_of_tensors(&settings.plan.excluded),
            // Steps count executions of a model, and graph inputs belong to a model.
            steps: Steps::every(),
            has_graph_inputs: false,
            ..settings.plan.clone()
        };
        let sink = self.dump_sink(&settings)?;
        let run = Some(settings.run.clone());
        Some(ExecutionCapture { plan, sink, run })
    }
}

/// The exclusions of single tensors.
fn exclusions_of_tensors(excluded: &[Exclusion]) -> Vec<Exclusion> {
    let of_tensors = excluded
        .iter()
        .filter(|exclusion| exclusion.slots.is_some());
    of_tensors.cloned().collect()
}

fn without_tasks(capture: ExecutionCapture) -> ExecutionCapture {
    ExecutionCapture {
        sink: Arc::new(TasklessSink(capture.sink)),
        ..capture
    }
}

/// A sink for operators outside of a model: their task is unknown.
struct TasklessSink(Arc<dyn Sink>);

impl TasklessSink {
    fn without_task(record: &Record) -> Record {
        let operator = Operator {
            task_id: UNKNOWN_ID,
            ..(*record.operator).clone()
        };
        Record {
            operator: Arc::new(operator),
            ..record.clone()
        }
    }
}

impl Sink for TasklessSink {
    fn keeps_tensors(&self) -> bool {
        self.0.keeps_tensors()
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        self.0.write(&TasklessSink::without_task(record))
    }

    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        self.0
            .write_overflow(&TasklessSink::without_task(record), overflow)
    }

    fn write_failure(
        &self,
        record: &Record,
        failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        self.0
            .write_failure(&TasklessSink::without_task(record), failure)
    }
}
