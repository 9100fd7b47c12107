//! Two-stage operators.

use std::path::Path;
use std::sync::{Arc, Mutex};

use opscope_capture::Purpose;
use opscope_engine::{EngineError, FallbackModel, LoadOptions, ModelSource};
use opscope_store::file_format::ascend_codes::{dtype_from_graph_engine, layout_from_code};
use opscope_store::record::Operator;
use opscope_tensor::{Layout, Tensor};

use crate::aclnn::cache::LoadedGraph;
use crate::aclnn::call::{ComposedGraph, OperatorCall, Refusal, ResultSource};
use crate::aclnn::composed::{ComposedOperator, ShownTensor};
use crate::aclnn::executor::OperatorExecutor;
use crate::aclnn::object::{AclnnObjects, ScalarNumber, ScalarValue};
use crate::aclnn::parameter::{Argument, Parameter, ParameterKind, RawArgument, TensorArgument};
use crate::aclnn::row::OperatorRow;
use crate::aclnn::table;
use crate::aclnn::view::{gather, scatter};
use crate::handle::Handle;
use crate::lock::lock;
use crate::status::{ACLNN_INNER, ACLNN_PARAM_INVALID, ACLNN_PARAM_NULLPTR, ACLNN_RUNTIME_ERROR};
use crate::{AclProcess, Answer, Status};

/// Maximum number of threads per graph. Each loaded graph has separate threads.
const N_THREADS_MAX: usize = 8;
/// Maximum bytes per element during computation: as read, and in the graph's dtype.
const N_BYTES_OF_AN_ELEMENT: u64 = 16;
/// With fewer elements a single thread computes an operator.
const N_ELEMENTS_OF_A_THREAD: usize = 1 << 16;

impl AclProcess {
    /// `aclnnInit`: like [`AclProcess::init`] with the same configuration, unless that was called
    /// before.
    ///
    /// # Errors
    /// As for [`AclProcess::init`].
    pub fn init_aclnn(&self, config: Option<&Path>) -> Answer {
        if self.is_initialized() {
            return Ok(());
        }
        self.init(config)
    }

    /// Stage one of the operator `function`, such as `aclnnAdd`: checks the arguments and stores
    /// the call as an executor. Later changes of objects do not affect it, except an address set by
    /// [`AclProcess::set_executor_address`]. It needs no workspace.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for null, `ACLNN_PARAM_INVALID` for invalid handles and for
    /// unsupported types, shapes and numbers, `ACLNN_RUNTIME_ERROR` before [`AclProcess::init`],
    /// `ACLNN_INNER` if no engine can compute it.
    pub fn prepare_aclnn(&self, function: &str, arguments: &[RawArgument]) -> Answer<Handle> {
        let stage = format!("{function}GetWorkspaceSize");
        if !self.is_initialized() {
            let text = "an operator was used before aclInit";
            return Err(self.aclnn_refuse(ACLNN_RUNTIME_ERROR, &stage, text));
        }
        let prepared = self.prepared_executor(function, arguments);
        let executor =
            prepared.map_err(|refusal| self.aclnn_refuse(refusal.status, &stage, &refusal.text))?;
        let executor = Arc::new(Mutex::new(executor));
        let handle = self.handles.next();
        Ok(self.objects().executors.insert(handle, executor))
    }

    fn prepared_executor(
        &self,
        function: &str,
        raw: &[RawArgument],
    ) -> Result<OperatorExecutor, Refusal> {
        // Bindings are generated from the same table, so a mismatch is a bug here.
        let row = table::find(function).filter(|row| row.parameters.len() == raw.len());
        let row = row.ok_or_else(|| inner(format!("there is no operator `{function}`")))?;
        let arguments = self.arguments(row, raw)?;
        let call = OperatorCall::new(row.parameters, &arguments);
        (row.compose)(&call)?;
        let composed = call.finish();
        let operator = self.composed_operator(row, &arguments, composed)?;
        Ok(OperatorExecutor {
            row,
            arguments,
            operator,
            is_repeatable: false,
        })
    }

    fn arguments(&self, row: &OperatorRow, raw: &[RawArgument]) -> Result<Vec<Argument>, Refusal> {
        let objects = self.objects();
        let pairs = row.parameters.iter().zip(raw).enumerate();
        let arguments = pairs.map(|(i, (parameter, raw))| found(&objects.aclnn, parameter, raw, i));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        // The following code locks the memory table.
        drop(objects);
        for (parameter, argument) in row.parameters.iter().zip(&arguments) {
            let list: &[TensorArgument] = match argument {
                Argument::Tensor(argument) => std::slice::from_ref(argument),
                Argument::Tensors(list) => list,
                _ => continue,
            };
            for argument in list {
                self.check_view(parameter, argument)?;
            }
        }
        Ok(arguments)
    }

    /// Checks that a view stays within its storage and memory, and is writable if necessary.
    fn check_view(&self, parameter: &Parameter, argument: &TensorArgument) -> Result<(), Refusal> {
        let (name, view) = (parameter.name(), &argument.tensor);
        check_format(name, view.format)?;
        // A view with strides of 0 may be far larger than its storage, and is copied as a whole.
        let n_bytes = (argument.n_elements() as u64).saturating_mul(N_BYTES_OF_AN_ELEMENT);
        opscope_store::check_memory(n_bytes)
            .map_err(|error| Refusal::invalid(format!("`{name}` cannot be read: {error}")))?;
        let Some((_, last)) = view.range() else {
            return Ok(());
        };
        let storage = view
            .storage_dims
            .iter()
            .map(|&n| usize::try_from(n).unwrap_or(0));
        let n_storage: usize = storage.product();
        // Without a storage shape its size is unknown.
        let is_known = !view.storage_dims.is_empty() || view.dims.is_empty();
        if is_known && last >= n_storage {
            return Err(Refusal::invalid(format!(
                "the last element of `{name}` is at {last}, its storage has {n_storage}"
            )));
        }
        let width = argument.dtype.bytes().unwrap_or(1);
        let n_bytes = last.saturating_add(1).saturating_mul(width);
        if view.address != 0 && !self.memory.admits(view.address, n_bytes) {
            return Err(Refusal::invalid(format!(
                "`{name}` takes {n_bytes} bytes of memory, which has less"
            )));
        }
        let is_written = matches!(
            parameter.kind,
            ParameterKind::Out
                | ParameterKind::OptionalOut
                | ParameterKind::Inplace
                | ParameterKind::OptionalInplace
                | ParameterKind::OutList
        );
        if is_written && !view.is_injective() {
            return Err(Refusal::invalid(format!(
                "elements of `{name}` share memory; an output needs memory for each"
            )));
        }
        Ok(())
    }

    fn composed_operator(
        &self,
        row: &OperatorRow,
        arguments: &[Argument],
        composed: ComposedGraph,
    ) -> Result<ComposedOperator, Refusal> {
        let reads = shown_tensors(row, arguments, is_read);
        let writes = shown_tensors(row, arguments, is_written);
        let mut results = Vec::with_capacity(writes.len());
        for write in &writes {
            let result = composed
                .results
                .iter()
                .find(|(place, _)| *place == write.place);
            let result = result.ok_or_else(|| inner("an output was not composed".to_owned()))?;
            results.push(result.1.clone());
        }
        // Fills need no engine, and neither do empty outputs.
        let needs_engine = results
            .iter()
            .any(|result| !matches!(result, ResultSource::Fill(_)));
        let graph = if needs_engine {
            let bytes = composed
                .graph
                .to_onnx()
                .map_err(|error| inner(error.to_string()))?;
            let n_elements = reads.iter().map(|read| read.dims.iter().product::<usize>());
            Some(self.loaded_graph(bytes, n_elements.sum())?)
        } else {
            None
        };
        Ok(ComposedOperator {
            description: ComposedOperator::description(described(row, arguments)),
            reads,
            writes,
            feeds: composed.feeds,
            results,
            graph,
        })
    }

    /// The loaded graph with these bytes, for inputs with this many elements.
    fn loaded_graph(&self, bytes: Vec<u8>, n_elements: usize) -> Result<Arc<LoadedGraph>, Refusal> {
        if let Some(known) = lock(&self.graphs).find(&bytes) {
            return Ok(known);
        }
        // Other threads may load the same graph concurrently: the later one is cached. The threads
        // of many loaded graphs would idle for small work.
        let n_threads = if n_elements < N_ELEMENTS_OF_A_THREAD {
            1
        } else {
            let n_there = std::thread::available_parallelism().map_or(1, usize::from);
            n_there.min(N_THREADS_MAX)
        };
        let options = LoadOptions::with_threads(n_threads);
        let source = ModelSource::Memory(&bytes);
        let loaded = self.engine.load_for(source, &options, Purpose::Values);
        let FallbackModel { model, taken } = loaded.map_err(|error| match error {
            EngineError::Unsupported { .. } => inner(format!("no engine computes it: {error}")),
            _ => inner(error.to_string()),
        })?;
        let graph = Arc::new(LoadedGraph {
            model: Mutex::new(model),
            taken,
        });
        lock(&self.graphs).keep(bytes, graph.clone());
        Ok(graph)
    }

    /// Stage two of the operator `function`: runs a prepared call, and dumps it if the
    /// configuration in force includes operators outside models. The call is complete on return,
    /// and destroys the executor unless [`AclProcess::set_executor_repeatable`] was called.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for a null executor, `ACLNN_PARAM_INVALID` for a handle that is not,
    /// or no longer, an executor of this operator, and for tensors without an address or out of
    /// bounds, `ACLNN_RUNTIME_ERROR` if the stream is invalid or the operator fails.
    pub fn run_aclnn(&self, function: &str, executor: Handle, stream: Handle) -> Answer {
        let known = self.executor(function, "executor", executor)?;
        let mut known = lock(&known);
        // An executor has its operator's order of arguments.
        if known.row.function != function {
            let text = format!("`executor` was made for {}", known.row.function);
            return Err(self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text));
        }
        if self.check_stream(stream).is_err() {
            let text = "`stream` is not a stream of this thread's context";
            return Err(self.aclnn_refuse(ACLNN_RUNTIME_ERROR, function, text));
        }
        if !known.is_repeatable && self.objects().executors.remove(executor).is_none() {
            // Another thread has run it concurrently.
            let text = "`executor` has run already, and is not repeatable";
            return Err(self.aclnn_refuse(ACLNN_PARAM_INVALID, function, text));
        }
        self.run_executor(function, &mut known)
    }

    fn run_executor(&self, function: &str, executor: &mut OperatorExecutor) -> Answer {
        // All inputs are copied before any output is written, so that outputs may overlap them.
        let mut inputs = Vec::with_capacity(executor.operator.reads.len());
        for read in &executor.operator.reads {
            let view = executor.view(read.place);
            let tensor = view.and_then(|view| gather(&self.memory, view, read.dtype));
            inputs.push(tensor.ok_or_else(|| self.unreachable(function, executor.row, read))?);
        }
        let taken = executor.operator.graph.as_ref();
        let taken = taken.and_then(|graph| graph.taken.clone());
        executor
            .operator
            .rename(&self.next_name(executor.row.op_type));
        let outputs: Vec<Tensor> = self
            .run_alone(&mut executor.operator, &inputs, taken.as_ref())
            .map_err(|_| ACLNN_RUNTIME_ERROR)?;
        for (write, output) in executor.operator.writes.iter().zip(&outputs) {
            let view = executor.view(write.place);
            let part = view.and_then(|view| view.part(output.shape().dims()));
            let written = part
                .as_ref()
                .or(view)
                .and_then(|view| scatter(&self.memory, view, output));
            written.ok_or_else(|| self.unreachable(function, executor.row, write))?;
            // The program queries the tensor for the number of entries.
            if let (Some(part), Some(handle)) = (part, executor.handle(write.place))
                && let Some(known) = self.objects().aclnn.tensors.get_mut(handle)
            {
                (known.dims, known.strides) = (part.dims, part.strides);
            }
        }
        self.describe_operator(executor);
        Ok(())
    }

    fn unreachable(&self, function: &str, row: &OperatorRow, tensor: &ShownTensor) -> Status {
        let name = row
            .parameters
            .get(tensor.place.0)
            .map_or("", Parameter::name);
        let text = format!("`{name}` has no address, or leaves the memory at its address");
        self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text)
    }

    fn executor(
        &self,
        function: &str,
        parameter: &str,
        executor: Handle,
    ) -> Answer<Arc<Mutex<OperatorExecutor>>> {
        if executor == 0 {
            return Err(self.aclnn_null(function, parameter));
        }
        let known = self.objects().executors.get(executor).cloned();
        known.ok_or_else(|| {
            let text = format!("`{parameter}` is not, or no longer, an executor");
            self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text)
        })
    }

    /// `aclSetAclOpExecutorRepeatable`: lets an executor run until it is destroyed.
    ///
    /// # Errors
    /// `ACLNN_PARAM_NULLPTR` for null, `ACLNN_PARAM_INVALID` for a handle that is not an executor.
    pub fn set_executor_repeatable(&self, executor: Handle) -> Answer {
        let known = self.executor("aclSetAclOpExecutorRepeatable", "executor", executor)?;
        lock(&known).is_repeatable = true;
        Ok(())
    }

    /// `aclDestroyAclOpExecutor`.
    ///
    /// # Errors
    /// As for [`AclProcess::set_executor_repeatable`].
    pub fn destroy_executor(&self, executor: Handle) -> Answer {
        self.executor("aclDestroyAclOpExecutor", "executor", executor)?;
        let ended = self.objects().executors.remove(executor);
        drop(ended);
        Ok(())
    }

    /// `aclSetTensorAddr`, `aclSetInputTensorAddr` and `aclSetOutputTensorAddr`: sets the address
    /// of a tensor, and of its copies in the executor.
    ///
    /// # Errors
    /// As for [`AclProcess::set_executor_repeatable`], for the tensor too, and
    /// `ACLNN_PARAM_INVALID` if the executor was not made with it.
    pub fn set_executor_address(
        &self,
        function: &str,
        executor: Handle,
        tensor: Handle,
        address: usize,
    ) -> Answer {
        let known = self.executor(function, "executor", executor)?;
        if tensor == 0 {
            return Err(self.aclnn_null(function, "tensor"));
        }
        self.set_tensor_address(tensor, address)?;
        // The tensor's address changes in any case, for calls prepared later.
        if lock(&known).set_address(tensor, address) {
            return Ok(());
        }
        let text = "`tensor` is not an argument of the executor";
        Err(self.aclnn_refuse(ACLNN_PARAM_INVALID, function, text))
    }

    /// `aclSetDynamicTensorAddr` and so on: the same for a tensor at a position of a list.
    ///
    /// # Errors
    /// As for [`AclProcess::set_executor_address`].
    pub fn set_executor_list_address(
        &self,
        function: &str,
        executor: Handle,
        list: Handle,
        position: usize,
        address: usize,
    ) -> Answer {
        if list == 0 {
            return Err(self.aclnn_null(function, "tensors"));
        }
        let tensor = {
            let objects = self.objects();
            let tensors = objects.aclnn.tensor_lists.get(list);
            tensors.and_then(|list| list.get(position)).copied()
        };
        let tensor = tensor.ok_or_else(|| {
            let text = format!("`tensors` is not a list with a tensor at {position}");
            self.aclnn_refuse(ACLNN_PARAM_INVALID, function, &text)
        })?;
        self.set_executor_address(function, executor, tensor, address)
    }
}

fn inner(text: String) -> Refusal {
    Refusal {
        status: ACLNN_INNER,
        text,
    }
}

/// Checks that strides describe the memory of this format.
fn check_format(name: &str, format: i32) -> Result<(), Refusal> {
    let layout = u32::try_from(format).ok().and_then(layout_from_code);
    if layout.is_none_or(is_plain) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "`{name}` has the format {format}; expected one that names plain axes, or ND"
    )))
}

fn is_plain(layout: Layout) -> bool {
    use Layout::{Cn, Nc, Ncl, Nd};
    layout.n_named_axes().is_some() || matches!(layout, Nd | Ncl | Nc | Cn)
}

/// Looks up the object of an argument.
fn found(
    objects: &AclnnObjects,
    parameter: &Parameter,
    raw: &RawArgument,
    index: usize,
) -> Result<Argument, Refusal> {
    use ParameterKind::*;
    let name = parameter.name();
    let handle = match raw {
        RawArgument::Int(n) => return Ok(Argument::Int(*n)),
        RawArgument::Number(n) => return Ok(Argument::Number(*n)),
        RawArgument::Text(None) => return Ok(Argument::Absent),
        RawArgument::Text(Some(text)) => return Ok(Argument::Text(text.clone())),
        RawArgument::Object(0) if parameter.kind.is_optional() => return Ok(Argument::Absent),
        RawArgument::Object(0) => {
            return Err(Refusal {
                status: ACLNN_PARAM_NULLPTR,
                text: format!("`{name}` is a null pointer"),
            });
        }
        RawArgument::Object(handle) => *handle,
    };
    let argument = match parameter.kind {
        Tensor | OptionalTensor | Out | OptionalOut | Inplace | OptionalInplace => {
            tensor_argument(objects, handle, (index, 0)).map(Argument::Tensor)
        }
        TensorList | OutList => objects.tensor_lists.get(handle).and_then(|list| {
            let tensors = list.iter().enumerate();
            let tensors = tensors.map(|(i, &handle)| tensor_argument(objects, handle, (index, i)));
            tensors.collect::<Option<Vec<_>>>().map(Argument::Tensors)
        }),
        Scalar | OptionalScalar => objects.scalars.get(handle).cloned().map(Argument::Scalar),
        ScalarList => objects.scalar_lists.get(handle).and_then(|list| {
            let scalars = list
                .iter()
                .map(|&handle| objects.scalars.get(handle).cloned());
            scalars.collect::<Option<Vec<_>>>().map(Argument::Scalars)
        }),
        IntArray | OptionalIntArray => objects.int_arrays.get(handle).cloned().map(Argument::Ints),
        FloatArray => objects
            .float_arrays
            .get(handle)
            .cloned()
            .map(Argument::Floats),
        BoolArray => objects
            .bool_arrays
            .get(handle)
            .cloned()
            .map(Argument::Flags),
        Int | Int32 | Int8 | Unsigned | Double | Float | Flag | DataType | Text => None,
    };
    argument.ok_or_else(|| {
        let kind = parameter.kind.c_type();
        let kind = kind
            .trim_start_matches("const ")
            .trim_end_matches([' ', '*']);
        Refusal::invalid(format!("`{name}` is not, or no longer, of the type {kind}"))
    })
}

fn tensor_argument(
    objects: &AclnnObjects,
    handle: Handle,
    place: (usize, usize),
) -> Option<TensorArgument> {
    let tensor = objects.tensors.get(handle)?.clone();
    let dtype = dtype_from_graph_engine(tensor.data_type)?;
    Some(TensorArgument {
        handle,
        place,
        tensor,
        dtype,
    })
}

fn is_read(kind: ParameterKind) -> bool {
    use ParameterKind::{Inplace, OptionalInplace, OptionalTensor, Tensor, TensorList};
    matches!(
        kind,
        Tensor | OptionalTensor | Inplace | OptionalInplace | TensorList
    )
}

fn is_written(kind: ParameterKind) -> bool {
    use ParameterKind::{Inplace, OptionalInplace, OptionalOut, Out, OutList};
    matches!(
        kind,
        Out | OptionalOut | Inplace | OptionalInplace | OutList
    )
}

/// The tensors of one side. Positions include absent ones.
fn shown_tensors(
    row: &OperatorRow,
    arguments: &[Argument],
    is_side: fn(ParameterKind) -> bool,
) -> Vec<ShownTensor> {
    let mut tensors = Vec::new();
    let mut position = 0;
    let pairs = row.parameters.iter().zip(arguments);
    for (_, argument) in pairs.filter(|(parameter, _)| is_side(parameter.kind)) {
        let list: &[TensorArgument] = match argument {
            Argument::Tensor(argument) => std::slice::from_ref(argument),
            Argument::Tensors(list) => list,
            _ => {
                position += 1;
                continue;
            }
        };
        for argument in list {
            tensors.push(ShownTensor {
                place: argument.place,
                position,
                dtype: argument.dtype,
                dims: argument.dims().to_vec(),
            });
            position += 1;
        }
    }
    tensors
}

/// The operator as described in dumps.
fn described(row: &OperatorRow, arguments: &[Argument]) -> Operator {
    let mut operator = Operator {
        op_type: row.op_type.to_owned(),
        op_name: row.op_type.to_owned(),
        ..Operator::default()
    };
    for (parameter, argument) in row.parameters.iter().zip(arguments) {
        let name = parameter.name();
        let names: Vec<String> = match argument {
            Argument::Tensor(_) => vec![name.to_owned()],
            Argument::Tensors(list) => (0..list.len()).map(|i| format!("{name}{i}")).collect(),
            Argument::Absent if is_read(parameter.kind) || is_written(parameter.kind) => {
                vec![String::new()]
            }
            other => {
                if let Some(text) = attribute_text(other) {
                    operator.attributes.push((name.to_owned(), text));
                }
                continue;
            }
        };
        if is_read(parameter.kind) {
            operator.inputs.extend(names.iter().cloned());
        }
        if is_written(parameter.kind) {
            operator.outputs.extend(names);
        }
    }
    operator
}

fn scalar_text(scalar: &ScalarValue) -> String {
    match scalar.number {
        ScalarNumber::Int(n) => n.to_string(),
        ScalarNumber::Float(n) => n.to_string(),
    }
}

/// The text of an argument other than a tensor.
fn attribute_text(argument: &Argument) -> Option<String> {
    Some(match argument {
        Argument::Absent | Argument::Tensor(_) | Argument::Tensors(_) => return None,
        Argument::Scalar(scalar) => scalar_text(scalar),
        Argument::Scalars(list) => {
            let texts: Vec<String> = list.iter().map(scalar_text).collect();
            format!("[{}]", texts.join(", "))
        }
        Argument::Ints(list) => format!("{list:?}"),
        Argument::Floats(list) => format!("{list:?}"),
        Argument::Flags(list) => format!("{list:?}"),
        Argument::Int(n) => n.to_string(),
        Argument::Number(n) => n.to_string(),
        Argument::Text(text) => text.clone(),
    })
}
