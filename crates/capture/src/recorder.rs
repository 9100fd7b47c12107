//! The fate of an execution that was shown, by the purpose of the session's plan.

mod failures;
mod limit;
mod non_finite;
mod overflow;
mod values;
mod watch;

use opscope_store::record::Record;

use crate::operator_context::{OperatorContext, ShownTensors};

pub(crate) use self::failures::FailureRecorder;
pub(crate) use self::limit::FindingLimit;
pub(crate) use self::non_finite::NonFiniteRecorder;
pub(crate) use self::overflow::OverflowRecorder;
pub(crate) use self::values::ValueRecorder;
pub(crate) use self::watch::WatchRecorder;

/// Decides on executions of selected operators; a session chooses one when it starts. Called on the
/// engine's threads.
pub(crate) trait PurposeRecorder: Send + Sync {
    /// Takes what an operator that went well has shown.
    fn record(&self, context: &OperatorContext, shown: ShownTensors);

    /// Takes what an operator had shown until it failed.
    fn record_failure(
        &self,
        _context: &OperatorContext,
        _record: &Record,
        _reason: &str,
        _notes: &str,
    ) {
    }

    /// Whether every selected execution is kept without inspecting its elements.
    fn keeps_everything(&self) -> bool {
        false
    }

    /// Whether tensors count as selected before their operator runs. Otherwise they do once
    /// something is found in them.
    fn selects_ahead(&self) -> bool {
        false
    }

    /// Whether the outputs of an operator that went well are of any use.
    fn wants_outputs(&self) -> bool {
        true
    }
}
