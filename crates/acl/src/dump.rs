//! The dump that is in force, and which part each model has in it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Plan, Purpose};
use opscope_config::dialect::acl::{AclContent, DumpMode};
use opscope_dump::{dump_times, free_time};
use opscope_store::run_file::RunFile;

use crate::exception::ExceptionDump;

/// The dumps that were configured. Several modes may be switched on one after the other; models
/// follow the latest.
#[derive(Default)]
pub(crate) struct ProcessDumps {
    /// The configuration that models loaded from now on follow.
    pub(crate) current: Option<Arc<AcceptedDump>>,
    /// The configuration that operators outside models follow.
    pub(crate) single_operators: Option<Arc<AcceptedDump>>,
    /// The latest dump of values, watched or not.
    pub(crate) values: Option<Arc<AcceptedDump>>,
    /// The latest dump of overflows.
    pub(crate) overflows: Option<Arc<AcceptedDump>>,
    /// The dump of operators that fail.
    pub(crate) failures: Option<ExceptionDump>,
    /// Directories of earlier configurations of this process, which may not exist.
    pub(crate) taken: HashSet<PathBuf>,
    /// The records of configurations that were accepted since dumps were last switched off.
    pub(crate) runs: Vec<Arc<RunFile>>,
}

/// A configuration that was accepted.
pub(crate) struct AcceptedDump {
    pub(crate) mode: DumpMode,
    pub(crate) plan: Plan,
    pub(crate) content: AclContent,
    pub(crate) dump_path: PathBuf,
    /// `{time}`: when it was accepted.
    pub(crate) time: String,
    pub(crate) run: Arc<RunFile>,
}

/// A model's part in the dump.
#[derive(Default)]
pub(crate) struct DumpRegistration {
    /// The configuration in force when the model was loaded; `None` if there was none. It decides
    /// for good which operators are kept.
    pub(crate) selected_by: Option<Arc<AcceptedDump>>,
    /// The values to keep of the next execution, and the configuration that asks for them.
    pub(crate) current: Option<(Plan, Arc<AcceptedDump>)>,
}

impl DumpRegistration {
    pub(crate) fn at_load(current: Option<&Arc<AcceptedDump>>) -> DumpRegistration {
        DumpRegistration {
            selected_by: current.cloned(),
            current: current.map(|settings| (settings.plan.clone(), settings.clone())),
        }
    }

    /// Follows a configuration that was accepted after the model was loaded: with its place, time,
    /// mode, sides, steps and content, but the operators that the model was loaded with.
    pub(crate) fn follow(&mut self, settings: &Arc<AcceptedDump>) {
        let Some(at_load) = &self.selected_by else {
            return;
        };
        let mut plan = settings.plan.clone();
        // The selection of another mode says nothing about this one.
        if at_load.mode == settings.mode {
            plan.models = at_load.plan.models.clone();
            plan.excluded = at_load.plan.excluded.clone();
        }
        self.current = Some((plan, settings.clone()));
    }

    /// Follows a configuration from the control file: as if the model were loaded now.
    pub(crate) fn replace(&mut self, settings: &Arc<AcceptedDump>) {
        *self = DumpRegistration::at_load(Some(settings));
    }

    /// Returns the values to keep of the next execution, and the configuration that asks for them.
    pub(crate) fn current(&self) -> Option<(Plan, Arc<AcceptedDump>)> {
        self.current.clone()
    }
}

impl ProcessDumps {
    /// The purpose for which models that are loaded now are dumped; `None` if they are not.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        Some(self.current.as_ref()?.plan.purpose)
    }

    /// The local time, or the next second whose directory below `dump_path` is free.
    pub(crate) fn free_time(&mut self, dump_path: &Path) -> String {
        let time = free_time(dump_path, dump_times(), |root| self.taken.contains(root));
        self.taken.insert(dump_path.join(&time));
        time
    }
}
