//! The wishes of a dump for one execution.

use std::sync::Arc;

use opscope_capture::{Plan, Sink};
use opscope_store::run_file::RunFile;

/// A plan, and where what it keeps goes.
pub(crate) struct ExecutionCapture {
    pub(crate) plan: Plan,
    pub(crate) sink: Arc<dyn Sink>,
    /// The record of the dump that it belongs to.
    pub(crate) run: Option<Arc<RunFile>>,
}
