//! Runs an engine under the dumps in force, for models and for single operators.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use opscope_capture::{CaptureSession, SessionOptions, Tap};
use opscope_engine::{EngineError, FallbackEngine, LoadedModel, ValueInfo};
use opscope_store::record::ModelId;
use opscope_tensor::Tensor;

use super::dump_run::{note_execution, note_taken_engine};
use crate::AclProcess;
use crate::capture::ExecutionCapture;
use crate::message::AclReport;

/// An engine about to run, and its description for dumps.
pub(super) struct EngineExecution<'a> {
    pub(super) engine: &'a mut dyn LoadedModel,
    pub(super) inputs: &'a [Tensor],
    pub(super) model: &'a Arc<ModelId>,
    /// The inputs of the model, as opposed to those of an operator.
    pub(super) graph_inputs: &'a [ValueInfo],
    /// The number of the execution; `None` for operators outside models, which have no steps.
    pub(super) step: Option<u64>,
    /// The engine, if it is not the process's.
    pub(super) taken: Option<&'a FallbackEngine>,
    pub(super) options: SessionOptions,
}

/// The outcome of an execution.
pub(super) struct ExecutionOutcome {
    pub(super) results: Result<Vec<Tensor>, EngineError>,
    /// The error under a dump, if the engine only runs without it.
    pub(super) dump_error: Option<EngineError>,
    /// Number of tensors that the engine cannot show to a dump, after a success.
    pub(super) n_not_shown: u64,
}

impl AclProcess {
    /// Runs an engine under the dump of values and the dump of failing operators, if any.
    pub(super) fn run_dumped(
        &self,
        mut execution: EngineExecution<'_>,
        values: Option<ExecutionCapture>,
        failures: Option<ExecutionCapture>,
    ) -> ExecutionOutcome {
        let has_values = values.is_some();
        let (first, second) = match values.or_else(|| self.overflow_status_capture()) {
            Some(first) => (Some(first), failures),
            None => (failures, None),
        };
        let is_captured = first.is_some();
        let mut outcome = self.run_captured(&mut execution, first);
        if has_values && outcome.results.is_ok() {
            self.take_overflow_status(&mut execution);
        }
        if let (Err(EngineError::Operator { .. }), Some(failures)) = (&outcome.results, second) {
            // A run has one tap: the failing run is repeated for the other dump.
            let _ = self.run_captured(&mut execution, Some(failures));
        }
        if outcome.results.is_err() && is_captured {
            // If it succeeds without a tap, the dump caused the failure, and the program gets the
            // results.
            let again = run_guarded(execution.engine, execution.inputs, None);
            if again.is_ok() {
                outcome.dump_error = std::mem::replace(&mut outcome.results, again).err();
            }
        }
        outcome
    }

    /// Runs once more to detect overflows, if the program reads the overflow status: a run has one
    /// tap, and the previous one was for a dump of values.
    fn take_overflow_status(&self, execution: &mut EngineExecution<'_>) {
        let Some(capture) = self.overflow_status_capture() else {
            return;
        };
        if let Err(error) = self.run_captured(execution, Some(capture)).results {
            self.status_unknown(&error);
        }
    }

    fn status_unknown(&self, error: &EngineError) {
        let text = format!("aclrtGetOverflowStatus does not cover an execution: {error}");
        self.log.error(&text);
        self.reports.push(AclReport::inner(&text));
    }

    fn run_captured(
        &self,
        execution: &mut EngineExecution<'_>,
        capture: Option<ExecutionCapture>,
    ) -> ExecutionOutcome {
        let EngineExecution { engine, inputs, .. } = execution;
        let Some(ExecutionCapture { plan, sink, run }) = capture else {
            return ExecutionOutcome::without_dump(run_guarded(*engine, inputs, None));
        };
        // Each execution has a session: when it ends the files are complete, whatever the program
        // does next, and no thread waits in between.
        let session = match CaptureSession::start(plan, sink, execution.options) {
            Ok(session) => session,
            Err(error) => {
                self.dump_failed(&format!("no thread could be started to write it: {error}"));
                return ExecutionOutcome::without_dump(run_guarded(*engine, inputs, None));
            }
        };
        let graph_inputs = execution.graph_inputs.iter();
        let graph_inputs: Vec<String> = graph_inputs.map(|value| value.name.clone()).collect();
        let (mut tap, _) = session.attach(execution.model, engine.operators(), &graph_inputs);
        if let Some(step) = execution.step {
            tap.begin_step(step);
        }
        let results = run_guarded(*engine, inputs, Some(&tap));
        drop(tap);
        let summary = session.finish();
        if summary.first_overflow.is_some() {
            self.overflow_status.note_overflow();
        }
        note_execution(run.as_deref(), execution.model, &summary);
        note_taken_engine(run.as_deref(), execution.taken);
        self.check_written(&summary);
        let n_not_shown = if results.is_ok() {
            summary.counters.dropped.n_not_shown
        } else {
            // A failing execution ends early, and reports that itself.
            0
        };
        ExecutionOutcome {
            results,
            dump_error: None,
            n_not_shown,
        }
    }
}

impl ExecutionOutcome {
    fn without_dump(results: Result<Vec<Tensor>, EngineError>) -> ExecutionOutcome {
        ExecutionOutcome {
            results,
            dump_error: None,
            n_not_shown: 0,
        }
    }
}

/// Runs an engine; a panic becomes an error.
fn run_guarded(
    engine: &mut dyn LoadedModel,
    inputs: &[Tensor],
    tap: Option<&Tap>,
) -> Result<Vec<Tensor>, EngineError> {
    catch_unwind(AssertUnwindSafe(|| engine.run(inputs, tap))).unwrap_or_else(|_| {
        Err(EngineError::Engine {
            engine: "the engine",
            reason: "it panicked".into(),
        })
    })
}
