//! The dump of failing operators that the environment asks for, beside whatever else a run keeps.
//!
//! One run shows its operators to one dump only, as in a program of AscendCL: the step that failed is
//! repeated for this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Plan, Session, SessionOptions};
use opscope_config::Environment;
use opscope_config::dialect::acl::{self, AclDump, Mode};
use opscope_dump::AclSink;
use opscope_engine::EngineError;
use opscope_store::atomic_file::{Creator, Modes};
use opscope_tensor::Tensor;
use rustix::fs::{Access, access};

use super::{InputSource, Sinks, Subject, input_names};
use crate::exit::Failure;
use crate::progress;

/// Where a failing step is dumped.
pub(super) struct FailureDump {
    plan: Plan,
    sink: Arc<AclSink>,
}

/// The dump that the environment asks for, given the configuration file of the run.
#[derive(Default)]
pub(super) struct FollowedEnvironment {
    /// The run's own dump, where that is about failures.
    pub(super) dump: Option<AclDump>,
    /// The dump of failures beside another one.
    pub(super) beside: Option<AclDump>,
}

/// Follows the environment as the library does: it goes before a file that asks for failures too, and
/// joins any other.
pub(super) fn follow(file: Option<AclDump>, env: &Environment) -> FollowedEnvironment {
    let dumps = acl::failures_in_force(file.as_ref(), env);
    let n_dumps = dumps.len();
    let first = dumps.into_iter().find(|dump| place_of(dump).is_some());
    if acl::from_environment(env).is_some() && first.is_none() && n_dumps > 0 {
        progress::tell(
            "warning: no place that the environment names for failing operators can be written",
        );
    }
    match file {
        Some(file) if !matches!(file.mode, Mode::Failures(_)) => FollowedEnvironment {
            dump: Some(file),
            beside: first,
        },
        // Without a place the error of the file's own dump is told.
        file => FollowedEnvironment {
            dump: first.or(file),
            beside: None,
        },
    }
}

impl Sinks {
    /// Repeats the last of the steps that were begun, if it failed and nothing else keeps failures; where
    /// its files are.
    pub(super) fn repeat_failure(
        &self,
        subject: &mut Subject,
        inputs: &InputSource,
        n_steps_begun: u64,
        result: &Result<(), Failure>,
    ) -> Result<Option<PathBuf>, Failure> {
        let (Err(failure), Some(dump)) = (result, &self.failures) else {
            return Ok(None);
        };
        let step = n_steps_begun.saturating_sub(1);
        Ok(dump.repeat(subject, step, &inputs.step(step)?, failure))
    }
}

impl FailureDump {
    /// Nothing is created before an operator fails; `None` where no place can be written.
    pub(super) fn new(dump: &AclDump, modes: Modes) -> Option<FailureDump> {
        let place = place_of(dump)?;
        let creator = Arc::new(Creator::in_dump(place, modes));
        Some(FailureDump {
            plan: dump.plan.clone(),
            // Files of failures have no time in their path.
            sink: Arc::new(AclSink::lazy_by(creator, place, "")),
        })
    }

    /// Repeats the step that ended with `failure`, if an operator failed; where its files are.
    pub(super) fn repeat(
        &self,
        subject: &mut Subject,
        step: u64,
        inputs: &[Tensor],
        failure: &Failure,
    ) -> Option<PathBuf> {
        let error = failure.error.as_ref()?.downcast_ref::<EngineError>();
        if !matches!(error, Some(EngineError::Operator { .. })) {
            return None;
        }
        let model = &mut subject.model;
        if let Some(refusal) = model.refusal(self.plan.purpose) {
            progress::tell(&format!("warning: the failure is not dumped: {refusal}"));
            return None;
        }
        let options = SessionOptions {
            n_writers: 1,
            ..SessionOptions::default()
        };
        let told = match Session::start(self.plan.clone(), self.sink.clone(), options) {
            Ok(session) => {
                let graph_inputs = input_names(&**model);
                let id = Arc::new(subject.id.clone());
                let (mut tap, _) =
                    session.attach_graph(&id, model.description().graph(&graph_inputs));
                model.prepare(&tap);
                tap.begin_step(step);
                // That it fails again is what is looked for.
                let _ = model.run(inputs, Some(&tap));
                drop(tap);
                session.finish().first_error.map(|error| error.to_string())
            }
            Err(error) => Some(format!("cannot start a thread: {error}")),
        };
        if let Some(reason) = told {
            progress::tell(&format!("warning: the failure is not dumped: {reason}"));
        }
        let dir = self.sink.tree().failure_dir(subject.id.device);
        Some(dir).filter(|dir| dir.is_dir())
    }
}

/// The first place that is a directory to read and write, or can become one.
fn place_of(dump: &AclDump) -> Option<&PathBuf> {
    dump.places.iter().find(|place| {
        let existing = place.ancestors().find(|dir| dir.symlink_metadata().is_ok());
        let is_writable = |dir: &Path| {
            let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
            dir.is_dir() && access(dir, wanted).is_ok()
        };
        existing.is_some_and(is_writable)
    })
}
