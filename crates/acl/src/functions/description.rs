//! Queries of a model's description.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::Purpose;
use opscope_engine::ModelSource;

use super::model::check_bytes;
use crate::data_type::UNDEFINED;
use crate::handle::Handle;
use crate::lock::lock;
use crate::model::{ModelDesc, ModelGears, ModelSide, ModelValue, NamedDims, dims_of, outputs};
use crate::status::{API_NOT_SUPPORT, INVALID_PARAM};
use crate::{AclProcess, Answer};

/// The only operator attribute that can be queried.
const ORIGINAL_NAMES: &str = "_datadump_original_op_names";

impl AclProcess {
    /// `aclmdlCreateDesc`: an empty description.
    pub fn create_desc(&self) -> Handle {
        let handle = self.handles.next();
        self.objects().model_descs.insert(handle, None)
    }

    /// `aclmdlDestroyDesc`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a description.
    pub fn destroy_desc(&self, desc: Handle) -> Answer {
        let ended = self.objects().model_descs.take(desc);
        ended.map(drop)
    }

    /// `aclmdlGetDesc`: fills a description. It stays valid after the model is unloaded.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a description, `GE_EXEC_NOT_INIT`,
    /// `GE_EXEC_MODEL_ID_INVALID`.
    pub fn fill_desc(&self, desc: Handle, model_id: u32) -> Answer {
        self.check_desc(desc)?;
        self.check_executor("a model's description was asked for")?;
        let description = self.model(model_id)?.description.clone();
        self.fill(desc, description)
    }

    /// `aclmdlGetDescFromFile`: loads the model temporarily to describe it.
    ///
    /// # Errors
    /// As for [`AclProcess::load_from_file`], and `INVALID_PARAM` for a handle that is not a
    /// description.
    pub fn fill_desc_from_file(&self, desc: Handle, path: &Path) -> Answer {
        self.describe(desc, ModelSource::File(path))
    }

    /// `aclmdlGetDescFromMem`.
    ///
    /// # Errors
    /// As for [`AclProcess::load_from_mem`], and `INVALID_PARAM` for a handle that is not a
    /// description.
    pub fn fill_desc_from_mem(&self, desc: Handle, bytes: &[u8]) -> Answer {
        check_bytes(bytes)?;
        self.describe(desc, ModelSource::Memory(bytes))
    }

    fn describe(&self, desc: Handle, source: ModelSource<'_>) -> Answer {
        // An invalid handle is detected before the model is loaded, which takes long.
        self.check_desc(desc)?;
        self.check_executor("a model's description was asked for")?;
        let file = match source {
            ModelSource::File(path) | ModelSource::Part { path, .. } => Some(path),
            ModelSource::Memory(_) => None,
        };
        let mut engine = self.load_engine(source, Purpose::Values)?.model;
        let gears = self.gears(file, engine.signature())?;
        let outputs = outputs(&mut *engine);
        let operators = engine.operators().to_vec();
        let description = ModelDesc::new(None, engine.signature(), &outputs, operators, gears);
        self.fill(desc, Arc::new(description))
    }

    fn check_desc(&self, desc: Handle) -> Answer {
        self.objects().model_descs.find(desc).map(drop)
    }

    fn fill(&self, desc: Handle, description: Arc<ModelDesc>) -> Answer {
        let mut objects = self.objects();
        let slot = objects.model_descs.find_mut(desc)?;
        *slot = Some(description);
        Ok(())
    }
}

impl AclProcess {
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a filled description.
    fn description(&self, desc: Handle) -> Answer<Arc<ModelDesc>> {
        let objects = self.objects();
        objects.model_descs.find(desc)?.clone().ok_or(INVALID_PARAM)
    }

    fn value<T>(
        &self,
        desc: Handle,
        which: ModelSide,
        index: usize,
        read: impl FnOnce(&ModelValue) -> T,
    ) -> Option<T> {
        self.description(desc).ok()?.value(which, index).map(read)
    }

    /// `aclmdlGetNumInputs`; 0 for a handle that is not a filled description. A model with gears
    /// has one more, `ascend_mbatch_shape_data`.
    pub fn n_inputs(&self, desc: Handle) -> usize {
        let description = self.description(desc);
        description.map_or(0, |known| known.n_counted_inputs())
    }

    /// `aclmdlGetNumOutputs`; 0 for a handle that is not a filled description.
    pub fn n_outputs(&self, desc: Handle) -> usize {
        let description = self.description(desc);
        description.map_or(0, |known| known.outputs.len())
    }

    /// `aclmdlGetInputSizeByIndex`: bytes, the maximum over all gears; 0 if there is no such input,
    /// or a dimension is open and the model has no gears.
    pub fn input_size(&self, desc: Handle, index: usize) -> usize {
        self.value(desc, ModelSide::Input, index, ModelValue::size)
            .unwrap_or(0)
    }

    /// `aclmdlGetOutputSizeByIndex`: bytes; 0 if there is no such output, or its size is known only
    /// after the computation.
    pub fn output_size(&self, desc: Handle, index: usize) -> usize {
        self.value(desc, ModelSide::Output, index, ModelValue::size)
            .unwrap_or(0)
    }

    /// `aclmdlGetInputDims`. For an input with AIPP they are those of the unprocessed picture:
    /// batch, height, width and channels.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or input, `STORAGE_OVER_LIMIT` for more axes
    /// than 128.
    pub fn input_dims(&self, desc: Handle, index: usize) -> Answer<NamedDims> {
        self.description(desc)?.dims(ModelSide::Input, index)
    }

    /// `aclmdlGetInputDimsV2`: the same, but for planar pictures the height counts all planes, so
    /// that the product of the dimensions is the number of bytes.
    ///
    /// # Errors
    /// As for [`AclProcess::input_dims`].
    pub fn input_dims_in_bytes(&self, desc: Handle, index: usize) -> Answer<NamedDims> {
        let description = self.description(desc)?;
        let value = description.value(ModelSide::Input, index);
        let value = value.ok_or(INVALID_PARAM)?;
        dims_of(value, value.dims_in_bytes())
    }

    /// `aclmdlGetOutputDims`.
    ///
    /// # Errors
    /// As for [`AclProcess::input_dims`].
    pub fn output_dims(&self, desc: Handle, index: usize) -> Answer<NamedDims> {
        self.description(desc)?.dims(ModelSide::Output, index)
    }

    /// `aclmdlGetCurOutputDims`: the shape of the latest execution.
    ///
    /// # Errors
    /// As for [`AclProcess::input_dims`], and `API_NOT_SUPPORT` for a model with open dimensions
    /// that has not been executed.
    pub fn current_output_dims(&self, desc: Handle, index: usize) -> Answer<NamedDims> {
        let description = self.description(desc)?;
        let value = description
            .value(ModelSide::Output, index)
            .ok_or(INVALID_PARAM)?;
        let latest = lock(&description.latest_outputs);
        match latest.as_ref().and_then(|latest| latest.get(index)) {
            Some(dims) => dims_of(value, dims),
            None if value.is_open() => Err(API_NOT_SUPPORT),
            None => dims_of(value, &value.dims),
        }
    }

    /// `aclmdlGetInputDimsRange`: the smallest and the largest size of each axis; 1 and -1, which
    /// means no limit, if it is open.
    ///
    /// # Errors
    /// As for [`AclProcess::input_dims`].
    pub fn input_dims_range(&self, desc: Handle, index: usize) -> Answer<Vec<(i64, i64)>> {
        let description = self.description(desc)?;
        if let Some(gears) = &description.gears
            && index < description.inputs.len()
        {
            return Ok(match description.aipp(index) {
                Some(aipp) => aipp.ranges(),
                None => gears.input_range(index),
            });
        }
        let dims = self.input_dims(desc, index)?.dims.into_iter();
        Ok(dims.map(|n| if n < 0 { (1, -1) } else { (n, n) }).collect())
    }

    /// `aclmdlGetDynamicBatch`: the supported batch sizes; empty without gears of the kind.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a filled description.
    pub fn dynamic_batches(&self, desc: Handle) -> Answer<Vec<u64>> {
        self.with_gears(desc, ModelGears::batches)
    }

    /// `aclmdlGetDynamicHW`: heights and widths, likewise.
    ///
    /// # Errors
    /// As for [`AclProcess::dynamic_batches`].
    pub fn dynamic_sizes(&self, desc: Handle) -> Answer<Vec<[u64; 2]>> {
        self.with_gears(desc, ModelGears::sizes)
    }

    /// `aclmdlGetInputDynamicGearCount` and `aclmdlGetInputDynamicDims`: concatenated shapes of all
    /// inputs, likewise.
    ///
    /// # Errors
    /// As for [`AclProcess::dynamic_batches`].
    pub fn dynamic_dims(&self, desc: Handle) -> Answer<Vec<NamedDims>> {
        let extents = self.with_gears(desc, ModelGears::dims)?;
        let dims = extents.into_iter().map(|dims| NamedDims {
            name: String::new(),
            dims,
        });
        Ok(dims.collect())
    }

    fn with_gears<T>(
        &self,
        desc: Handle,
        read: impl FnOnce(&ModelGears) -> Vec<T>,
    ) -> Answer<Vec<T>> {
        self.check_desc(desc)?;
        // An empty description has no gears, which is not an error.
        let description = self.description(desc).ok();
        let gears = description.as_ref().and_then(|known| known.gears.as_ref());
        Ok(gears.map_or(Vec::new(), read))
    }

    /// `aclmdlGetInputNameByIndex`.
    pub fn input_name(&self, desc: Handle, index: usize) -> Option<String> {
        self.value(desc, ModelSide::Input, index, |value| {
            value.short_name.clone()
        })
    }

    /// `aclmdlGetOutputNameByIndex`.
    pub fn output_name(&self, desc: Handle, index: usize) -> Option<String> {
        self.value(desc, ModelSide::Output, index, |value| {
            value.short_name.clone()
        })
    }

    /// `aclmdlGetInputIndexByName`. The input for open dimensions, `ascend_mbatch_shape_data`, is
    /// found after the last one.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or input.
    pub fn input_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        let description = self.description(desc)?;
        description
            .index(ModelSide::Input, name)
            .ok_or(INVALID_PARAM)
    }

    /// `aclmdlGetOutputIndexByName`.
    ///
    /// # Errors
    /// `INVALID_PARAM` if there is no such description or output.
    pub fn output_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        let description = self.description(desc)?;
        description
            .index(ModelSide::Output, name)
            .ok_or(INVALID_PARAM)
    }

    /// `aclmdlGetInputFormat`: NCHW with four axes, otherwise ND; -1 if there is no such input.
    pub fn input_format(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, ModelSide::Input, index, ModelValue::format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOutputFormat`: like [`AclProcess::input_format`].
    pub fn output_format(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, ModelSide::Output, index, ModelValue::format)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetInputDataType`; -1 if there is no such input.
    pub fn input_data_type(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, ModelSide::Input, index, ModelValue::data_type)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOutputDataType`; -1 if there is no such output, or it is unknown.
    pub fn output_data_type(&self, desc: Handle, index: usize) -> i32 {
        self.value(desc, ModelSide::Output, index, ModelValue::data_type)
            .unwrap_or(UNDEFINED)
    }

    /// `aclmdlGetOpAttr`: an operator's attribute. Only the names of the operators that it was
    /// fused from are available, each after its length in brackets; an unfused operator has none.
    pub fn operator_attribute(
        &self,
        desc: Handle,
        op_name: &str,
        attribute: &str,
    ) -> Option<String> {
        if attribute != ORIGINAL_NAMES {
            return None;
        }
        let description = self.description(desc).ok()?;
        let mut operators = description.operators.iter();
        let operator = operators.find(|operator| operator.op_name == op_name)?;
        let names = operator.original_names.iter();
        Some(
            names
                .map(|name| format!("[{}]{name}", name.len()))
                .collect(),
        )
    }

    /// `aclmdlGetTensorRealName`: the full name of an input or output, given it or its short name.
    /// Names of 128 bytes and more have a short one.
    pub fn real_name(&self, desc: Handle, name: &str) -> Option<String> {
        let description = self.description(desc).ok()?;
        let mut values = description.inputs.iter().chain(&description.outputs);
        values
            .find(|value| value.is_called(name))
            .map(|value| value.name.clone())
    }
}
