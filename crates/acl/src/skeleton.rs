//! Interface to come.
#![allow(
    clippy::unimplemented,
    unused_variables,
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments
)]

use std::path::Path;
use std::sync::Arc;

use opscope_engine::Engine;

use crate::{Answer, Status};

/// An object behind an opaque pointer. 0 is the null pointer; no number is given out twice.
pub type Handle = usize;

/// An engine that models are loaded with.
pub type SharedEngine = Arc<dyn Engine + Send + Sync>;

/// Everything that AscendCL keeps between calls.
pub struct Process(());

/// One piece of a file that a dump callback receives; `is_last` ends the file.
pub struct Chunk<'a> {
    /// The path that the file would have had, absolute.
    pub file_name: &'a str,
    /// The next bytes of it.
    pub bytes: &'a [u8],
    pub is_last: bool,
}
/// Receives what would be written; its number is not used.
pub type DumpCallback = Arc<dyn Fn(&Chunk<'_>) -> i32 + Send + Sync>;

/// A tensor given to `acldumpSaveExceptionInfo`; numbers as in `acldumpTensorInfo`.
pub struct ExceptionTensor {
    pub kind: i32,
    pub size: usize,
    pub format: i32,
    pub data_type: i32,
    pub address: usize,
    pub address_kind: i32,
    pub placement: i32,
    /// Length as declared; `shape` holds at most 25 of them.
    pub shape_num: u32,
    pub origin_shape_num: u32,
    pub shape: Vec<u64>,
    pub origin_shape: Vec<u64>,
}

/// What `aclrtExceptionInfo` is asked for.
#[derive(Clone, Copy)]
pub struct ExceptionInfo {
    pub task_id: u32,
    pub stream_id: u32,
    pub thread_id: u32,
    pub device_id: u32,
    pub error_code: u32,
}
pub type ExceptionCallback = Arc<dyn Fn(&ExceptionInfo) + Send + Sync>;

/// Name and extents, as in `aclmdlIODims`; -1 where an extent is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims {
    pub name: String,
    pub dims: Vec<i64>,
}

/// A value of `aclmdlSetConfigOpt`.
pub enum ConfigValue<'a> {
    Number(u64),
    Path(&'a Path),
    Address(usize),
}

/// A value of an operator's attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Bool(bool),
    Int(i64),
    Float(f32),
    String(String),
    DataType(i32),
    Bools(Vec<bool>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<String>),
    DataTypes(Vec<i32>),
    IntLists(Vec<Vec<i64>>),
}

/// Life cycle and dump.
impl Process {
    /// A process of its own (tests). Reads `ASCEND_*`, `NPU_COLLECT_PATH` now.
    pub fn new(engine: SharedEngine) -> Process {
        unimplemented!()
    }
    /// The one that bindings share; `engine` is asked once, by the first caller.
    pub fn global(engine: impl FnOnce() -> SharedEngine) -> &'static Process {
        unimplemented!()
    }
    /// `aclInit`
    pub fn init(&self, config: Option<&Path>) -> Answer {
        unimplemented!()
    }
    /// `aclFinalize`
    pub fn finalize(&self) -> Answer {
        unimplemented!()
    }
    /// `aclFinalizeReference`: the remaining count (to be stored where the pointer is not NULL), and the answer.
    pub fn finalize_reference(&self) -> (u64, Answer) {
        unimplemented!()
    }
    pub fn init_dump(&self) -> Answer {
        unimplemented!()
    }
    pub fn set_dump(&self, config: Option<&Path>) -> Answer {
        unimplemented!()
    }
    pub fn finalize_dump(&self) -> Answer {
        unimplemented!()
    }
    /// `acldumpRegCallback`; NULL is `None`
    pub fn register_callback(&self, callback: Option<DumpCallback>, flag: i32) -> Answer {
        unimplemented!()
    }
    pub fn unregister_callback(&self) {
        unimplemented!()
    }
    /// `acldumpGetPath`; `None` is NULL. The binding keeps the text alive.
    pub fn dump_path(&self, kind: i32) -> Option<String> {
        unimplemented!()
    }
    /// `acldumpGetExceptionInfoPath`; NULL buffer first: `null_argument`. The text fits `max_len` with its NUL.
    pub fn exception_info_path(&self, max_len: usize) -> Answer<String> {
        unimplemented!()
    }
    /// `acldumpSaveExceptionInfo`; `None` is NULL
    pub fn save_exception_info(
        &self,
        file_name: Option<&str>,
        user_tag: Option<&str>,
        tensors: Option<&[ExceptionTensor]>,
    ) -> Answer {
        unimplemented!()
    }
    pub fn start_dump_args(&self, kind: u32, path: Option<&Path>) -> Answer {
        unimplemented!()
    }
    pub fn stop_dump_args(&self, kind: u32) -> Answer {
        unimplemented!()
    }
    /// `aclGetRecentErrMsg`: newest first; reading clears.
    pub fn recent_error(&self) -> Option<String> {
        unimplemented!()
    }
    /// For bindings: reports a null pointer argument; the answer is INVALID_PARAM.
    pub fn null_argument(&self, function: &'static str, parameter: &'static str) -> Status {
        unimplemented!()
    }
    pub fn set_exception_callback(&self, callback: Option<ExceptionCallback>) -> Answer {
        unimplemented!()
    }
}

/// Runtime.
impl Process {
    pub fn set_device(&self, device: i32) -> Answer {
        unimplemented!()
    }
    pub fn reset_device(&self, device: i32) -> Answer {
        unimplemented!()
    }
    pub fn device(&self) -> Answer<i32> {
        unimplemented!()
    }
    pub fn n_devices(&self) -> u32 {
        unimplemented!()
    }
    pub fn synchronize_device(&self) -> Answer {
        unimplemented!()
    }
    pub fn create_context(&self, device: i32) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn destroy_context(&self, context: Handle) -> Answer {
        unimplemented!()
    }
    pub fn set_current_context(&self, context: Handle) -> Answer {
        unimplemented!()
    }
    pub fn current_context(&self) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn create_stream(&self) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn create_stream_with_config(&self, priority: u32, flag: u32) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn destroy_stream(&self, stream: Handle) -> Answer {
        unimplemented!()
    }
    pub fn synchronize_stream(&self, stream: Handle) -> Answer {
        unimplemented!()
    }
    /// -1 waits without end
    pub fn synchronize_stream_with_timeout(&self, stream: Handle, timeout_ms: i32) -> Answer {
        unimplemented!()
    }
    pub fn create_event(&self) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn destroy_event(&self, event: Handle) -> Answer {
        unimplemented!()
    }
    pub fn record_event(&self, event: Handle, stream: Handle) -> Answer {
        unimplemented!()
    }
    pub fn synchronize_event(&self, event: Handle) -> Answer {
        unimplemented!()
    }
    /// 0 complete, 1 not ready
    pub fn query_event(&self, event: Handle) -> Answer<i32> {
        unimplemented!()
    }
    pub fn event_elapsed_ms(&self, start: Handle, end: Handle) -> Answer<f32> {
        unimplemented!()
    }
    pub fn stream_wait_event(&self, stream: Handle, event: Handle) -> Answer {
        unimplemented!()
    }
    /// `thread` is what `pthread_self` gives in the thread that calls `process_report`
    pub fn subscribe_report(&self, thread: u64, stream: Handle) -> Answer {
        unimplemented!()
    }
    pub fn unsubscribe_report(&self, thread: u64, stream: Handle) -> Answer {
        unimplemented!()
    }
    pub fn launch_callback(
        &self,
        work: Box<dyn FnOnce() + Send>,
        block_type: i32,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
    /// Runs the work of the streams that `thread`, the calling one, has subscribed to.
    pub fn process_report(&self, thread: u64, timeout_ms: i32) -> Answer {
        unimplemented!()
    }
    /// ACL_HOST
    pub fn run_mode(&self) -> i32 {
        unimplemented!()
    }
    /// free and total bytes
    pub fn mem_info(&self, attr: i32) -> Answer<(usize, usize)> {
        unimplemented!()
    }
    pub fn soc_name(&self) -> &'static str {
        unimplemented!()
    }
    pub fn malloc(&self, size: usize, policy: u32) -> Answer<usize> {
        unimplemented!()
    }
    pub fn malloc_host(&self, size: usize) -> Answer<usize> {
        unimplemented!()
    }
    pub fn free(&self, address: usize) -> Answer {
        unimplemented!()
    }
    pub fn free_host(&self, address: usize) -> Answer {
        unimplemented!()
    }
    pub fn memcpy(&self, to: usize, to_max: usize, from: usize, count: usize, kind: i32) -> Answer {
        unimplemented!()
    }
    pub fn memcpy_async(
        &self,
        to: usize,
        to_max: usize,
        from: usize,
        count: usize,
        kind: i32,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
    pub fn memset(&self, to: usize, to_max: usize, value: i32, count: usize) -> Answer {
        unimplemented!()
    }
    pub fn memset_async(
        &self,
        to: usize,
        to_max: usize,
        value: i32,
        count: usize,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
}

/// Models and their descriptions.
impl Process {
    pub fn load_from_file(&self, path: &Path) -> Answer<u32> {
        unimplemented!()
    }
    pub fn load_from_mem(&self, bytes: &[u8]) -> Answer<u32> {
        unimplemented!()
    }
    /// bytes of work and weight memory
    pub fn query_size(&self, path: &Path) -> Answer<(usize, usize)> {
        unimplemented!()
    }
    pub fn query_size_from_mem(&self, bytes: &[u8]) -> Answer<(usize, usize)> {
        unimplemented!()
    }
    pub fn unload(&self, model_id: u32) -> Answer {
        unimplemented!()
    }
    pub fn create_config_handle(&self) -> Handle {
        unimplemented!()
    }
    pub fn set_config_option(&self, config: Handle, attr: i32, value: ConfigValue<'_>) -> Answer {
        unimplemented!()
    }
    pub fn destroy_config_handle(&self, config: Handle) -> Answer {
        unimplemented!()
    }
    pub fn load_with_config(&self, config: Handle) -> Answer<u32> {
        unimplemented!()
    }
    pub fn create_desc(&self) -> Handle {
        unimplemented!()
    }
    pub fn destroy_desc(&self, desc: Handle) -> Answer {
        unimplemented!()
    }
    /// `aclmdlGetDesc`: fills it
    pub fn fill_desc(&self, desc: Handle, model_id: u32) -> Answer {
        unimplemented!()
    }
    pub fn fill_desc_from_file(&self, desc: Handle, path: &Path) -> Answer {
        unimplemented!()
    }
    pub fn fill_desc_from_mem(&self, desc: Handle, bytes: &[u8]) -> Answer {
        unimplemented!()
    }
    pub fn n_inputs(&self, desc: Handle) -> usize {
        unimplemented!()
    }
    pub fn n_outputs(&self, desc: Handle) -> usize {
        unimplemented!()
    }
    pub fn input_size(&self, desc: Handle, index: usize) -> usize {
        unimplemented!()
    }
    pub fn output_size(&self, desc: Handle, index: usize) -> usize {
        unimplemented!()
    }
    pub fn input_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        unimplemented!()
    }
    pub fn output_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        unimplemented!()
    }
    pub fn current_output_dims(&self, desc: Handle, index: usize) -> Answer<Dims> {
        unimplemented!()
    }
    /// smallest and largest extent of each axis; -1: no limit
    pub fn input_dims_range(&self, desc: Handle, index: usize) -> Answer<Vec<(i64, i64)>> {
        unimplemented!()
    }
    pub fn input_name(&self, desc: Handle, index: usize) -> Option<String> {
        unimplemented!()
    }
    pub fn output_name(&self, desc: Handle, index: usize) -> Option<String> {
        unimplemented!()
    }
    pub fn input_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        unimplemented!()
    }
    pub fn output_index(&self, desc: Handle, name: &str) -> Answer<usize> {
        unimplemented!()
    }
    pub fn input_format(&self, desc: Handle, index: usize) -> i32 {
        unimplemented!()
    }
    pub fn output_format(&self, desc: Handle, index: usize) -> i32 {
        unimplemented!()
    }
    pub fn input_data_type(&self, desc: Handle, index: usize) -> i32 {
        unimplemented!()
    }
    pub fn output_data_type(&self, desc: Handle, index: usize) -> i32 {
        unimplemented!()
    }
    pub fn dynamic_batches(&self, desc: Handle) -> Answer<Vec<u64>> {
        unimplemented!()
    }
    pub fn dynamic_sizes(&self, desc: Handle, index: usize) -> Answer<Vec<[u64; 2]>> {
        unimplemented!()
    }
    pub fn n_dynamic_gears(&self, desc: Handle, index: usize) -> Answer<usize> {
        unimplemented!()
    }
    pub fn dynamic_gears(&self, desc: Handle, index: usize) -> Answer<Vec<Dims>> {
        unimplemented!()
    }
    /// `aclmdlGetOpAttr`
    pub fn operator_attribute(
        &self,
        desc: Handle,
        op_name: &str,
        attribute: &str,
    ) -> Option<String> {
        unimplemented!()
    }
    /// `aclmdlGetTensorRealName`
    pub fn real_name(&self, desc: Handle, name: &str) -> Option<String> {
        unimplemented!()
    }
    pub fn execute(&self, model_id: u32, inputs: Handle, outputs: Handle) -> Answer {
        unimplemented!()
    }
    /// Runs before it returns.
    pub fn execute_async(
        &self,
        model_id: u32,
        inputs: Handle,
        outputs: Handle,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
    pub fn set_dynamic_batch_size(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        n: u64,
    ) -> Answer {
        unimplemented!()
    }
    pub fn set_dynamic_hw_size(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        height: u64,
        width: u64,
    ) -> Answer {
        unimplemented!()
    }
    pub fn set_input_dynamic_dims(
        &self,
        model_id: u32,
        inputs: Handle,
        index: usize,
        dims: &[i64],
    ) -> Answer {
        unimplemented!()
    }
}

/// Data, tensor descriptions, operators.
impl Process {
    pub fn create_dataset(&self) -> Handle {
        unimplemented!()
    }
    pub fn destroy_dataset(&self, dataset: Handle) -> Answer {
        unimplemented!()
    }
    pub fn add_dataset_buffer(&self, dataset: Handle, buffer: Handle) -> Answer {
        unimplemented!()
    }
    pub fn dataset_n_buffers(&self, dataset: Handle) -> usize {
        unimplemented!()
    }
    pub fn dataset_buffer(&self, dataset: Handle, index: usize) -> Option<Handle> {
        unimplemented!()
    }
    pub fn set_dataset_tensor_desc(&self, dataset: Handle, desc: Handle, index: usize) -> Answer {
        unimplemented!()
    }
    pub fn dataset_tensor_desc(&self, dataset: Handle, index: usize) -> Option<Handle> {
        unimplemented!()
    }
    pub fn create_data_buffer(&self, address: usize, size: usize) -> Handle {
        unimplemented!()
    }
    pub fn destroy_data_buffer(&self, buffer: Handle) -> Answer {
        unimplemented!()
    }
    /// 0 for a wrong handle
    pub fn data_buffer_address(&self, buffer: Handle) -> usize {
        unimplemented!()
    }
    pub fn data_buffer_size(&self, buffer: Handle) -> usize {
        unimplemented!()
    }
    pub fn update_data_buffer(&self, buffer: Handle, address: usize, size: usize) -> Answer {
        unimplemented!()
    }
    /// `None` (NULL) for a negative extent other than -1, -2 or too many
    pub fn create_tensor_desc(&self, data_type: i32, dims: &[i64], format: i32) -> Option<Handle> {
        unimplemented!()
    }
    pub fn destroy_tensor_desc(&self, desc: Handle) -> Answer {
        unimplemented!()
    }
    pub fn tensor_desc_data_type(&self, desc: Handle) -> i32 {
        unimplemented!()
    }
    pub fn tensor_desc_format(&self, desc: Handle) -> i32 {
        unimplemented!()
    }
    pub fn tensor_desc_size(&self, desc: Handle) -> usize {
        unimplemented!()
    }
    pub fn tensor_desc_n_elements(&self, desc: Handle) -> usize {
        unimplemented!()
    }
    pub fn tensor_desc_n_dims(&self, desc: Handle) -> usize {
        unimplemented!()
    }
    pub fn tensor_desc_dim(&self, desc: Handle, index: usize) -> Answer<i64> {
        unimplemented!()
    }
    pub fn tensor_desc_name(&self, desc: Handle) -> Option<String> {
        unimplemented!()
    }
    pub fn set_tensor_desc_name(&self, desc: Handle, name: &str) -> Answer {
        unimplemented!()
    }
    pub fn set_tensor_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        unimplemented!()
    }
    pub fn set_tensor_origin_shape(&self, desc: Handle, dims: &[i64]) -> Answer {
        unimplemented!()
    }
    pub fn set_tensor_format(&self, desc: Handle, format: i32) -> Answer {
        unimplemented!()
    }
    pub fn set_tensor_origin_format(&self, desc: Handle, format: i32) -> Answer {
        unimplemented!()
    }
    pub fn set_tensor_const(&self, desc: Handle, bytes: &[u8]) -> Answer {
        unimplemented!()
    }
    pub fn create_op_attr(&self) -> Handle {
        unimplemented!()
    }
    pub fn destroy_op_attr(&self, attr: Handle) -> Answer {
        unimplemented!()
    }
    pub fn set_op_attr(&self, attr: Handle, name: &str, value: AttributeValue) -> Answer {
        unimplemented!()
    }
    /// Tensor descriptions and data buffers, pairwise. `attr` may be 0.
    pub fn execute_op(
        &self,
        op_type: &str,
        inputs: &[(Handle, Handle)],
        outputs: &[(Handle, Handle)],
        attr: Handle,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
    /// Checks that the operator can run.
    pub fn compile_op(
        &self,
        op_type: &str,
        inputs: &[Handle],
        outputs: &[Handle],
        attr: Handle,
    ) -> Answer {
        unimplemented!()
    }
    pub fn create_op_handle(
        &self,
        op_type: &str,
        inputs: &[Handle],
        outputs: &[Handle],
        attr: Handle,
    ) -> Answer<Handle> {
        unimplemented!()
    }
    pub fn destroy_op_handle(&self, handle: Handle) -> Answer {
        unimplemented!()
    }
    pub fn execute_op_handle(
        &self,
        handle: Handle,
        inputs: &[Handle],
        outputs: &[Handle],
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
    /// `aclopCast`
    pub fn cast(
        &self,
        from: (Handle, Handle),
        to: (Handle, Handle),
        truncate: u8,
        stream: Handle,
    ) -> Answer {
        unimplemented!()
    }
}

/// `aclDataTypeSize`
pub fn data_type_size(data_type: i32) -> usize {
    unimplemented!()
}
/// `aclFloat16ToFloat`
pub fn float16_to_float(value: u16) -> f32 {
    unimplemented!()
}
/// `aclFloatToFloat16`
pub fn float_to_float16(value: f32) -> u16 {
    unimplemented!()
}
