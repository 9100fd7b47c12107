//! The dump of failing operators, and the information about a failure.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::{FailureDetail, Plan};
use opscope_store::tree::acl::failure_root;

/// The dump of failing operators. A process configures it once.
#[derive(Debug)]
pub(crate) struct ExceptionDump {
    pub(crate) plan: Plan,
    pub(crate) place: PathBuf,
    pub(crate) detail: FailureDetail,
    /// Whether the environment requests it, for the life of the process.
    pub(crate) is_of_environment: bool,
    pub(crate) is_on: bool,
}

/// The information about a failed operator, as in `aclrtExceptionInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionInfo {
    /// The operator's position in its model.
    pub task_id: u32,
    /// The stream; always 0.
    pub stream_id: u32,
    /// The thread ID of the system; 0 if unknown.
    pub thread_id: u32,
    /// The device; always 0.
    pub device_id: u32,
    /// `ACL_ERROR_RT_AICPU_EXCEPTION`.
    pub error_code: u32,
}

/// Called for failing operators.
pub type ExceptionCallback = Arc<dyn Fn(&ExceptionInfo) + Send + Sync>;

/// A tensor of the program, with the fields of `acldumpTensorInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTensor {
    /// 0 input, 1 output, 2 workspace.
    pub kind: i32,
    /// Bytes.
    pub size: usize,
    /// The `aclFormat`.
    pub format: i32,
    /// The `aclDataType`.
    pub data_type: i32,
    /// Its address.
    pub address: usize,
    /// The kind of the address; only 2, the address itself, is supported.
    pub address_kind: i32,
    /// The memory's owner; only 0, the device, is supported.
    pub placement: i32,
    /// Its index among the operator's arguments.
    pub args_offset: u32,
    /// Number of dimensions as declared; `shape` holds them if there are at most 25.
    pub shape_num: u32,
    /// The same for `origin_shape`.
    pub origin_shape_num: u32,
    /// The shape.
    pub shape: Vec<u64>,
    /// The shape before the change of layout.
    pub origin_shape: Vec<u64>,
}

impl ExceptionDump {
    /// Switches the dump off, unless it has full detail or the environment requests it.
    pub(crate) fn switch_off(&mut self) {
        if !self.is_of_environment && self.detail != FailureDetail::Full {
            self.is_on = false;
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        failure_root(&self.place)
    }
}
