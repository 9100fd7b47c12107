//! The capture settings of one execution.

use std::sync::Arc;

use opscope_capture::{Plan, Sink};
use opscope_store::run_file::RunFile;

/// A plan, and the sink of its records.
pub(crate) struct ExecutionCapture {
    pub(crate) plan: Plan,
    pub(crate) sink: Arc<dyn Sink>,
    /// The run record of its dump.
    pub(crate) run: Option<Arc<RunFile>>,
}
