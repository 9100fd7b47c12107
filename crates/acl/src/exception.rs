//! The dump of operators that fail, and the facts that a program is told of them.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::{FailureDetail, Plan};
use opscope_store::tree::acl::failure_root;

/// The dump of operators that fail. It is configured once in a process.
#[derive(Debug)]
pub(crate) struct ExceptionDump {
    pub(crate) plan: Plan,
    pub(crate) place: PathBuf,
    pub(crate) detail: FailureDetail,
    /// Whether the environment asks for it, for as long as the process runs.
    pub(crate) is_of_environment: bool,
    pub(crate) is_on: bool,
}

/// The facts told of an operator that failed, as in `aclrtExceptionInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionInfo {
    /// The operator's position in its model.
    pub task_id: u32,
    /// The stream; always 0.
    pub stream_id: u32,
    /// The system's number of the thread that ran it; 0 where the system does not tell.
    pub thread_id: u32,
    /// The device; always 0.
    pub device_id: u32,
    /// `ACL_ERROR_RT_AICPU_EXCEPTION`.
    pub error_code: u32,
}

/// Is told of operators that fail.
pub type ExceptionCallback = Arc<dyn Fn(&ExceptionInfo) + Send + Sync>;

/// A tensor of a program's, with the numbers of `acldumpTensorInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTensor {
    /// 0 input, 1 output, 2 workspace.
    pub kind: i32,
    /// Bytes.
    pub size: usize,
    /// The number of `aclFormat`.
    pub format: i32,
    /// The number of `aclDataType`.
    pub data_type: i32,
    /// Where it lies.
    pub address: usize,
    /// The kind of the address; only 2, the address itself, is taken.
    pub address_kind: i32,
    /// Whose memory it is in; only 0, the device's, is taken.
    pub placement: i32,
    /// Its position among the operator's arguments.
    pub args_offset: u32,
    /// Number of extents as declared: `shape` holds them if there are at most 25.
    pub shape_num: u32,
    /// The same for `origin_shape`.
    pub origin_shape_num: u32,
    /// Extents.
    pub shape: Vec<u64>,
    /// Extents before the layout was changed.
    pub origin_shape: Vec<u64>,
}

impl ExceptionDump {
    /// Switches the dump off, unless it keeps full detail or the environment asks for it.
    pub(crate) fn switch_off(&mut self) {
        if !self.is_of_environment && self.detail != FailureDetail::Full {
            self.is_on = false;
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        failure_root(&self.place)
    }
}
