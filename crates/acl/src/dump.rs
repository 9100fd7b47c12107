//! The dumps in force, and each model's share in them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Plan, Purpose};
use opscope_config::dialect::acl::{AclContent, DumpMode};
use opscope_dump::{dump_times, free_time};
use opscope_store::run_file::RunFile;

use crate::exception::ExceptionDump;

/// The configured dumps. Several modes may be enabled one after the other; models follow the
/// latest.
#[derive(Default)]
pub(crate) struct ProcessDumps {
    /// The configuration for models loaded from now on.
    pub(crate) current: Option<Arc<AcceptedDump>>,
    /// The configuration for operators outside models.
    pub(crate) single_operators: Option<Arc<AcceptedDump>>,
    /// The latest dump of values, watched or not.
    pub(crate) values: Option<Arc<AcceptedDump>>,
    /// The latest dump of overflows.
    pub(crate) overflows: Option<Arc<AcceptedDump>>,
    /// The dump of failing operators.
    pub(crate) failures: Option<ExceptionDump>,
    /// Directories of this process's earlier configurations, which may not exist.
    pub(crate) taken: HashSet<PathBuf>,
    /// The records of the configurations accepted since dumps were last switched off.
    pub(crate) runs: Vec<Arc<RunFile>>,
}

/// An accepted configuration.
pub(crate) struct AcceptedDump {
    pub(crate) mode: DumpMode,
    pub(crate) plan: Plan,
    pub(crate) content: AclContent,
    pub(crate) dump_path: PathBuf,
    /// `{time}`: when it was accepted.
    pub(crate) time: String,
    pub(crate) run: Arc<RunFile>,
}

/// A model's share in the dump.
#[derive(Default)]
pub(crate) struct DumpRegistration {
    /// The configuration in force when the model was loaded, if any. It permanently decides which
    /// operators are selected.
    pub(crate) selected_by: Option<Arc<AcceptedDump>>,
    /// The selection for the next execution, and its configuration.
    pub(crate) current: Option<(Plan, Arc<AcceptedDump>)>,
}

impl DumpRegistration {
    pub(crate) fn at_load(current: Option<&Arc<AcceptedDump>>) -> DumpRegistration {
        DumpRegistration {
            selected_by: current.cloned(),
            current: current.map(|settings| (settings.plan.clone(), settings.clone())),
        }
    }

    /// Follows a configuration accepted after the model was loaded: with its directory, time, mode,
    /// sides, steps and content, but the operators selected at load time.
    pub(crate) fn follow(&mut self, settings: &Arc<AcceptedDump>) {
        let Some(at_load) = &self.selected_by else {
            return;
        };
        let mut plan = settings.plan.clone();
        // The selection of another mode does not apply here.
        if at_load.mode == settings.mode {
            plan.models = at_load.plan.models.clone();
            plan.excluded = at_load.plan.excluded.clone();
        }
        self.current = Some((plan, settings.clone()));
    }

    /// Follows a configuration of the control file, as if the model were loaded now.
    pub(crate) fn replace(&mut self, settings: &Arc<AcceptedDump>) {
        *self = DumpRegistration::at_load(Some(settings));
    }

    /// Returns the selection for the next execution, and its configuration.
    pub(crate) fn current(&self) -> Option<(Plan, Arc<AcceptedDump>)> {
        self.current.clone()
    }
}

impl ProcessDumps {
    /// The dump purpose for models loaded now; `None` if they are not dumped.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        Some(self.current.as_ref()?.plan.purpose)
    }

    /// The local time, or the next second whose directory below `dump_path` does not exist.
    pub(crate) fn free_time(&mut self, dump_path: &Path) -> String {
        let time = free_time(dump_path, dump_times(), |root| self.taken.contains(root));
        self.taken.insert(dump_path.join(&time));
        time
    }
}
