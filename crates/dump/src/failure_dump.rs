//! The dump of failing operators that the environment requests, in addition to the run's other
//! dump.
//!
//! One run shows its operators to one dump only, as in a program of AscendCL: the step that failed
//! is repeated for this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{CaptureSession, Plan, SessionOptions};
use opscope_config::ConfigEnvironment;
use opscope_config::dialect::acl::{self, AclDump, DumpMode};
use opscope_engine::LoadedModel;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::record::ModelId;
use opscope_tensor::Tensor;
use rustix::fs::{Access, access};

use crate::model::input_names;
use crate::sink::AclSink;

/// Where a failing step is dumped.
pub struct FailureDump {
    plan: Plan,
    sink: Arc<AclSink>,
}

/// The dumps of a run once the environment is followed.
#[derive(Default)]
pub struct FollowedEnvironment {
    /// The run's own dump.
    pub dump: Option<AclDump>,
    /// A dump of failures in addition to another dump.
    pub beside: Option<AclDump>,
    /// Whether the environment asks for failing operators, and no place that it names can be
    /// written.
    pub has_no_place: bool,
}

/// Follows the environment as the library does: it takes precedence over a file that requests
/// failures too, and joins any other. `file` is the request in the run's configuration.
pub fn follow_environment(file: Option<AclDump>, env: &ConfigEnvironment) -> FollowedEnvironment {
    let dumps = acl::failures_in_force(file.as_ref(), env);
    let n_dumps = dumps.len();
    let first = dumps.into_iter().find(|dump| usable_place(dump).is_some());
    let is_asked_for = acl::from_environment(env).is_some();
    let has_no_place = is_asked_for && first.is_none() && n_dumps > 0;
    let (dump, beside) = match file {
        Some(file) if !matches!(file.mode, DumpMode::Failures(_)) => (Some(file), first),
        // Without a place, the error of the file's own dump is reported.
        file => (first.or(file), None),
    };
    FollowedEnvironment {
        dump,
        beside,
        has_no_place,
    }
}

impl FailureDump {
    /// Nothing is created before an operator fails; `None` where no place can be written.
    pub fn new(dump: &AclDump, modes: PermissionModes) -> Option<FailureDump> {
        let place = usable_place(dump)?;
        let creator = Arc::new(Creator::in_dump(place, modes));
        Some(FailureDump {
            plan: dump.plan.clone(),
            // Files of failures have no time in their path.
            sink: Arc::new(AclSink::lazy_by(creator, place, "")),
        })
    }

    /// Repeats a step of `model` in which an operator failed. Returns the directory of its files,
    /// if there is one, and why they are not complete.
    pub fn repeat(
        &self,
        model: &mut dyn LoadedModel,
        id: &ModelId,
        step: u64,
        inputs: &[Tensor],
    ) -> (Option<PathBuf>, Option<String>) {
        if let Some(refusal) = model.refusal(self.plan.purpose) {
            return (None, Some(refusal.to_string()));
        }
        let options = SessionOptions {
            // The plan keeps only the failing operator, so there is nothing for a second writer.
            n_writers: 1,
            ..SessionOptions::default()
        };
        let reason = match CaptureSession::start(self.plan.clone(), self.sink.clone(), options) {
            Ok(session) => {
                let names = input_names(model);
                let id = Arc::new(id.clone());
                let (mut tap, _) = session.attach_graph(&id, model.description().graph(&names));
                model.prepare(&tap);
                tap.begin_step(step);
                // Another failure is expected here.
                let _ = model.run(inputs, Some(&tap));
                drop(tap);
                session.finish().first_error.map(|error| error.to_string())
            }
            Err(error) => Some(format!("cannot start a thread: {error}")),
        };
        let dir = self.sink.tree().failure_dir(id.device);
        (Some(dir).filter(|dir| dir.is_dir()), reason)
    }
}

/// The first place that is a directory to read and write, or can become one.
fn usable_place(dump: &AclDump) -> Option<&PathBuf> {
    dump.places.iter().find(|place| {
        // A dangling link counts as existing: no directory can be created in its place, so such a
        // place is skipped.
        let existing = place.ancestors().find(|dir| dir.symlink_metadata().is_ok());
        existing.is_some_and(is_writable)
    })
}

fn is_writable(dir: &Path) -> bool {
    let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    dir.is_dir() && access(dir, wanted).is_ok()
}
