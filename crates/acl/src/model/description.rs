//! What a program may ask of a model.

use std::path::Path;
use std::sync::{Arc, Mutex};

use opscope_engine::{Dim, LoadedModel, ModelSource, Signature, ValueInfo};
use opscope_store::record::Operator;
use opscope_tensor::{DType, Shape, Tensor};

use crate::data_type::{self, FORMAT_NCHW, FORMAT_ND, UNDEFINED};
use crate::handle::Handle;
use crate::process::lock;
use crate::status::{API_NOT_SUPPORT, INVALID_PARAM, STORAGE_OVER_LIMIT};
use crate::{Answer, Process};

/// The input that dynamic models have beside their own. It is found by name and not counted.
const SHAPE_INPUT: &str = "ascend_mbatch_shape_data";
/// The attribute of operators that can be asked for.
const ORIGINAL_NAMES: &str = "_datadump_original_op_names";
/// Most axes of a value.
const N_DIMS_MAX: usize = 128;
/// A name of this many bytes or more is replaced.
const NAME_BYTES_MAX: usize = 128;
/// Extents of a value whose number of axes is not known.
const UNKNOWN_RANK: i64 = -2;

/// Name and extents, as in `aclmdlIODims`; -1 stands for an extent that is not known, a single -2 for
/// an unknown number of axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims {
    /// The name, or a short one in place of a long one: see [`Process::real_name`].
    pub name: String,
    /// The extents.
    pub dims: Vec<i64>,
}

/// Inputs, outputs and operators of a model.
pub(crate) struct Description {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// The input with extents, if any extent is open.
    shape_input: Option<Value>,
    operators: Vec<Arc<Operator>>,
    /// Extents of the results of the latest execution.
    latest_outputs: Mutex<Option<Vec<Vec<i64>>>>,
}

/// An input or output.
struct Value {
    name: String,
    short_name: String,
    dtype: DType,
    dims: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Input,
    Output,
}

impl Value {
    fn new(info: &ValueInfo, model_id: Option<u32>, side: &str, index: usize) -> Value {
        let extent = |dim: &Dim| match dim {
            Dim::Fixed(n) => i64::try_from(*n).unwrap_or(i64::MAX),
            Dim::Named(_) | Dim::Unknown => -1,
        };
        let dims = info
            .dims
            .as_ref()
            .map(|dims| dims.iter().map(extent).collect());
        let name = info.name.clone();
        let short_name = if name.len() < NAME_BYTES_MAX {
            name.clone()
        } else {
            let id = model_id.unwrap_or(0);
            format!("acl_modelId_{id}_{side}_{index}")
        };
        Value {
            name,
            short_name,
            dtype: info.dtype,
            dims: dims.unwrap_or_else(|| vec![UNKNOWN_RANK]),
        }
    }

    fn is_open(&self) -> bool {
        self.dims.iter().any(|&n| n < 0)
    }

    /// Bytes; 0 if they are not known.
    fn size(&self) -> usize {
        let dims: Option<Vec<usize>> = self.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = dims.and_then(|dims| Shape::new(dims).ok());
        shape.map_or(0, |shape| shape.n_bytes(self.dtype).unwrap_or(0))
    }

    fn format(&self) -> i32 {
        if self.dims.len() == 4 {
            FORMAT_NCHW
        } else {
            FORMAT_ND
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.short_name == name
    }
}

impl Description {
    pub(crate) fn new(
        model_id: Option<u32>,
        signature: &Signature,
        outputs: Vec<ValueInfo>,
        operators: Vec<Arc<Operator>>,
    ) -> Description {
        let values = |infos: &[ValueInfo], side: &str| -> Vec<Value> {
            let infos = infos.iter().enumerate();
            infos
                .map(|(i, info)| Value::new(info, model_id, side, i))
                .collect()
        };
        let inputs = values(&signature.inputs, "input");
        let n_axes: usize = inputs.iter().map(|value| value.dims.len()).sum();
        let shape_input = inputs.iter().any(Value::is_open).then(|| Value {
            name: SHAPE_INPUT.to_owned(),
            short_name: SHAPE_INPUT.to_owned(),
            dtype: DType::I64,
            dims: vec![i64::try_from(n_axes).unwrap_or(i64::MAX)],
        });
        Description {
            inputs,
            outputs: values(&outputs, "output"),
            shape_input,
            operators,
            latest_outputs: Mutex::default(),
        }
    }

    /// Whether an input has an open extent.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.shape_input.is_some()
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Bytes of an output; 0 if they are not known before it is computed.
    pub(crate) fn output_bytes(&self, index: usize) -> usize {
        self.outputs.get(index).map_or(0, Value::size)
    }

    /// Notes the extents of an execution's results.
    pub(crate) fn note_outputs(&self, outputs: &[Tensor]) {
        let dims = |tensor: &Tensor| {
            let extents = tensor.shape().iter();
            extents
                .map(|&n| i64::try_from(n).unwrap_or(i64::MAX))
                .collect()
        };
        *lock(&self.latest_outputs) = Some(outputs.iter().map(dims).collect());
    }

    fn value(&self, which: Which, index: usize) -> Option<&Value> {
        match which {
            Which::Input if index == self.inputs.len() => self.shape_input.as_ref(),
            Which::Input => self.inputs.get(index),
            Which::Output => self.outputs.get(index),
        }
    }

    fn index(&self, which: Which, name: &str) -> Option<usize> {
        let values = match which {
            Which::Input => &self.inputs,
            Which::Output => &self.outputs,
        };
        let found = values.iter().position(|value| value.is_called(name));
        let is_shape_input = which == Which::Input && name == SHAPE_INPUT && self.is_dynamic();
        found.or(is_shape_input.then_some(self.inputs.len()))
    }

    fn dims(&self, which: Which, index: usize) -> Answer<Dims> {
        let value = self.value(which, index).ok_or(INVALID_PARAM)?;
        dims_of(value, &value.dims)
    }
}

fn dims_of(value: &Value, dims: &[i64]) -> Answer<Dims> {
    if dims.len() > N_DIMS_MAX {
        return Err(STORAGE_OVER_LIMIT);
    }
    Ok(Dims {
        name: value.short_name.clone(),
        dims: dims.to_vec(),
    })
}

/// A model's outputs. Where the file does not say what they are and every input is fixed, the model
/// is executed once, with zeroes, to see; if that fails they stay unknown.
pub(super) fn outputs(model: &mut dyn LoadedModel) -> Vec<ValueInfo> {
    let signature = model.signature();
    let outputs = signature.outputs.clone();
    let is_open = |dims: &Option<Vec<Dim>>| {
        let is_open = |dim: &Dim| !matches!(dim, Dim::Fixed(_));
        dims.as_ref().is_none_or(|dims| dims.iter().any(is_open))
    };
    let is_known = |value: &ValueInfo| value.dtype != DType::Undefined && !is_open(&value.dims);
    if outputs.iter().all(is_known) {
        return outputs;
    }
    let zeroes = |value: &ValueInfo| {
        let shape = opscope_engine::input::resolve_shape(value, None).ok()?;
        let n_bytes = shape.n_bytes(value.dtype).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(n_bytes).ok()?;
        bytes.resize(n_bytes, 0);
        Tensor::from_vec(value.dtype, shape, bytes).ok()
    };
    let inputs: Option<Vec<Tensor>> = signature.inputs.iter().map(zeroes).collect();
    let Some(results) = inputs.and_then(|inputs| model.run(&inputs, None).ok()) else {
        return outputs;
    };
    let seen = |(declared, result): (ValueInfo, &Tensor)| ValueInfo {
        dtype: result.dtype(),
        dims: Some(result.shape().iter().map(|&n| Dim::Fixed(n)).collect()),
        ..declared
    };
    if results.len() == outputs.len() {
        return outputs.into_iter().zip(&results).map(seen).collect();
    }
    outputs
}

impl Process {
    /// `aclmdlCreateDesc`: an empty description.
    pub fn create_desc(&self) -> Handle {
        let handle = self.handles.next();
        self.objects().model_descs.insert(handle, None)
    }

    /// `aclmdlDestroyDesc`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for what is no description, or no longer.
    pub fn destroy_desc(&self, desc: Handle) -> Answer {
        let removed = self.objects().model_descs.remove(desc);
        removed.map(drop).ok_or(INVALID_PARAM)
    }

    /// `aclmdlGetDesc`: fills a description. It stays valid when the model is unloaded.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no description, `GE_EXEC_NOT_INIT`, `GE_EXEC_MODEL_ID_INVALID`.
    pub fn fill_desc(&self, desc: Handle, model_id: u32) -> Answer {
        self.check_desc(desc)?;
        self.check_executor("a model's description was asked for")?;
        let description = self.model(model_id)?.description.clone();
        self.fill(desc, description)
    }

    /// `aclmdlGetDescFromFile`: loads the model to describe it.
    ///
    /// # Errors
    /// As for [`Process::load_from_file`], and `INVALID_PARAM` for what is no description.
    pub fn fill_desc_from_file(&self, desc: Handle, path: &Path) -> Answer {
        self.describe(desc, ModelSource::File(path))
    }

    /// `aclmdlGetDescFromMem`.
    ///
    /// # Errors
    /// As for [`Process::load_from_mem`], and `INVALID_PARAM` for what is no description.
    pub fn fill_desc_from_mem(&self, desc: Handle, bytes: &[u8]) -> Answer {
        super::check_bytes(bytes)?;
        self.describe(desc, ModelSource::Memory(bytes))
    }

    fn describe(&self, desc: Handle, source: ModelSource<'_>) -> Answer {
        self.check_desc(desc)?;
        self.check_executor("a model's description was asked for")?;
        let mut engine = self.load_engine(source)?;
        let outputs = outputs(&mut *engine);
        let operators = engine.operators().to_vec();
        let description = Description::new(None, engine.signature(), outputs, operators);
        self.fill(desc, Arc::new(description))
    }

    fn check_desc(&self, desc: Handle) -> Answer {
        let objects = self.objects();
        objects.model_descs.get(desc).map(drop).ok_or(INVALID_PARAM)
    }

    fn fill(&self, desc: Handle, description: Arc<Description>) -> Answer {
        let mut objects = self.objects();
        let slot = objects.model_descs.get_mut(desc).ok_or(INVALID_PARAM)?;
        *slot = Some(description);
        Ok(())
    }

    fn description(&self, desc: Handle) -> Option<Arc<Description>> {
        self.objects().model_descs.get(desc)?.clone()
    }

    fn value<T>(
        &self,
        desc: Handle,
        which: Which,
        index: usize,
        read: impl FnOnce(&Value) -> T,
    ) -> Option<T> {
        self.description(desc)?.value(which, index).map(read)
    }

    /// `aclmdlGetNumInputs`; 0 for what is no filled description.
    pub fn n_inputs(&self, desc: Handle) -> usize {
        self.description(desc).map_or(0, |known| known.inputs.len())
    }

    /// `aclmdlGetNumOutputs`; 0 for what is no filled description.
    pub fn n_outputs(&self, desc: Handle) -> usize {
        self.description(desc)
            .map_or(0, |known| known.outputs.len())
    }

    /// `aclmdlGetInputSizeByIndex`: bytes; 0 if there is no such input, or an extent is open.
    pub fn input_size(&self, desc: Handle, index: usize) -> usize {
        self.value(desc, Which::Input, index, Value::size)
            .unwrap_or(0)
    }

    /// `aclmdlGetOutputSizeByIndex`: bytes; 0 if there is no such output, or its size is not known
    /// before it is computed.
    pub fn output_size(&self, desc: Handle, index: usize) -> usize {
        self.value(desc, Which::Output, index, Value::size)
            .unwrap_or(0)
    }

    /// `aclmdlGetInputDims` and `aclmdlGetInputDimsV2`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or input, `STORAGE_OVER_LIMIT` for more axes
    /// than 128.
    pub fn input_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        self.description(desc)
            .ok_or(INVALID_PARAM)?
            .dims(Which::Input, index)
    }

    /// `aclmdlGetOutputDims`.
    ///
    /// # Errors
    /// As for [`Process::input_dims`].
    pub fn output_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        self.description(desc)
            .ok_or(INVALID_PARAM)?
            .dims(Which::Output, index)
    }

    /// `aclmdlGetCurOutputDims`: the extents that the latest execution gave.
    ///
    /// # Errors
    /// As for [`Process::input_dims`], and `API_NOT_SUPPORT` for a model with open extents that has
    /// not been executed.
    pub fn current_output_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        let description = self.description(desc).ok_or(INVALID_PARAM)?;
        let value = description
            .value(Which::Output, index)
            .ok_or(INVALID_PARAM)?;
        let latest = lock(&description.latest_outputs);
        match latest.as_ref().and_then(|latest| latest.get(index)) {
            Some(dims) => dims_of(value, dims),
            None if value.is_open() => Err(API_NOT_SUPPORT),
            None => dims_of(value, &value.dims),
        }
    }

    /// `aclmdlGetInputDimsRange`: the smallest and the largest extent of each axis; 1 and -1, which
    /// is no limit, where it is open.
    ///
    /// # Errors
    /// As for [`Process::input_dims`].
    pub fn input_dims_range(&self, desc: Handle, index: usize) -> Answer<Vec<(i64, i64)>> {
        let range = |n: i64| if n < 0 { (1, -1) } else { (n, n) };
        let dims = self.input_dims(desc, index)?.dims;
        Ok(dims.into_iter().map(range).collect())
    }

    /// `aclmdlGetInputNameByIndex`.
    pub fn input_name(&self, desc: Handle, index: usize) -> Option<String> {
        self.value(desc, Which::Input, index, |value| value.short_name.clone())
    }

    /// `aclmdlGetOutputNameByIndex`.
    pub fn output_name(&self, desc: Handle, index: usize) -> Option<String> {
        self.value(desc, Which::Output, index, |value| value.short_name.clone())
    }

    /// `aclmdlGetInputIndexByName`. The input that stands for open extents,
    /// `ascend_mbatch_shape_data`, is found after the last one.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or input.
    pub fn input_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        let description = self.description(desc).ok_or(INVALID_PARAM)?;
        description.index(Which::Input, name).ok_or(INVALID_PARAM)
    }

    /// `aclmdlGetOutputIndexByName`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or output.
    pub fn output_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        let description = self.description(desc).ok_or(INVALID_PARAM)?;
        description.index(Which::Output, name).ok_or(INVALID_PARAM)
    }

    /// `aclmdlGetInputFormat`: NCHW with four axes, otherwise ND; -1 if there is no such input.
    pub fn input_format(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, Which::Input, index, Value::format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOutputFormat`: as [`Process::input_format`].
    pub fn output_format(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, Which::Output, index, Value::format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetInputDataType`; -1 if there is no such input.
    pub fn input_data_type(&self, desc: Handle, index: usize) -> i32 {
        let number = |value: &Value| data_type::number(value.dtype);
        self.value(desc, Which::Input, index, number)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOutputDataType`; -1 if there is no such output, or it is not known.
    pub fn output_data_type(&self, desc: Handle, index: usize) -> i32 {
        let number = |value: &Value| data_type::number(value.dtype);
        self.value(desc, Which::Output, index, number)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOpAttr`: an operator's attribute. Only the names of the operators that it was fused
    /// from are known, each after its length in brackets; an operator that was not fused has none.
    pub fn operator_attribute(
        &self,
        desc: Handle,
        op_name: &str,
        attribute: &str,
    ) -> Option<String> {
        let description = self
            .description(desc)
            .filter(|_| attribute == ORIGINAL_NAMES)?;
        let mut operators = description.operators.iter();
        let operator = operators.find(|operator| operator.op_name == op_name)?;
        let names = operator.original_names.iter();
        Some(
            names
                .map(|name| format!("[{}]{name}", name.len()))
                .collect(),
        )
    }

    /// `aclmdlGetTensorRealName`: the whole name of an input or output, given it or the short name
    /// that stands for it. Names of 128 bytes and more go by a short one.
    pub fn real_name(&self, desc: Handle, name: &str) -> Option<String> {
        let description = self.description(desc)?;
        let mut values = description.inputs.iter().chain(&description.outputs);
        values
            .find(|value| value.is_called(name))
            .map(|value| value.name.clone())
    }
}
