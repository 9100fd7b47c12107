//! The dump that is in force, and which part each model has in it.

mod run;
mod sink;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Plan, Purpose};
use opscope_config::dialect::acl::Content;
use opscope_config::dialect::acl::{AclDump, Mode};
use opscope_dump::{dump_times, free_time};
use opscope_store::run_file::RunFile;

pub(crate) use self::run::{SwitchedOff, note_execution, note_taken_engine};
use crate::exception::ExceptionDump;
use crate::model::Model;
use crate::process::lock;
use crate::{Answer, Process};

/// `acldumpType`: dumps of values, and of overflows.
const DATA_DUMP: i32 = 4;
const OVERFLOW_DUMP: i32 = 5;

/// The dumps that were configured. Several modes may be switched on one after the other; models
/// follow the latest.
#[derive(Default)]
pub(crate) struct Dump {
    /// The configuration that models loaded from now on follow.
    current: Option<Arc<Settings>>,
    /// The configuration that operators outside models follow.
    single_operators: Option<Arc<Settings>>,
    /// The latest dump of values, watched or not.
    values: Option<Arc<Settings>>,
    /// The latest dump of overflows.
    overflows: Option<Arc<Settings>>,
    /// The dump of operators that fail.
    pub(crate) failures: Option<ExceptionDump>,
    /// Directories of earlier configurations of this process, which may not exist.
    taken: HashSet<PathBuf>,
    /// The records of configurations that were accepted since dumps were last switched off.
    runs: Vec<Arc<RunFile>>,
}

/// A configuration that was accepted.
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) plan: Plan,
    pub(crate) content: Content,
    pub(crate) dump_path: PathBuf,
    /// `{time}`: when it was accepted.
    pub(crate) time: String,
    pub(crate) run: Arc<RunFile>,
}

/// A model's part in the dump.
#[derive(Default)]
pub(crate) struct Registration {
    /// The configuration in force when the model was loaded; `None` if there was none. It decides
    /// for good which operators are kept.
    selected_by: Option<Arc<Settings>>,
    /// The values to keep of the next execution, and the configuration that asks for them.
    current: Option<(Plan, Arc<Settings>)>,
}

impl Registration {
    fn at_load(current: Option<&Arc<Settings>>) -> Registration {
        Registration {
            selected_by: current.cloned(),
            current: current.map(|settings| (settings.plan.clone(), settings.clone())),
        }
    }

    /// Follows a configuration that was accepted after the model was loaded: with its place, time,
    /// mode, sides, steps and content, but the operators that the model was loaded with.
    fn follow(&mut self, settings: &Arc<Settings>) {
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
    pub(crate) fn replace(&mut self, settings: &Arc<Settings>) {
        *self = Registration::at_load(Some(settings));
    }

    /// Returns the values to keep of the next execution, and the configuration that asks for them.
    pub(crate) fn current(&self) -> Option<(Plan, Arc<Settings>)> {
        self.current.clone()
    }
}

impl Process {
    /// Puts an accepted configuration in force.
    pub(crate) fn configure_dump(&self, accepted: AclDump) -> Answer {
        if let Mode::Failures(_) = accepted.mode {
            let mut dump = lock(&self.dump);
            return self.configure_exception_dump(&mut dump.failures, accepted);
        }
        self.put_in_force(accepted, Registration::follow);
        Ok(())
    }

    /// Puts a configuration of another dump than one of failing operators in force. `follow` is done
    /// for each model that is loaded.
    pub(crate) fn put_in_force(
        &self,
        accepted: AclDump,
        follow: impl Fn(&mut Registration, &Arc<Settings>),
    ) {
        let mut dump = lock(&self.dump);
        let dump_path = accepted.places.first().cloned().unwrap_or_default();
        let time = dump.free_time(&dump_path);
        let run = self.run_of(&accepted, &dump_path, &time);
        dump.runs.push(run.clone());
        let settings = Arc::new(Settings {
            mode: accepted.mode,
            plan: accepted.plan,
            content: accepted.content,
            dump_path,
            time,
            run,
        });
        dump.single_operators = accepted.has_single_operators.then(|| settings.clone());
        let of_mode = match settings.mode {
            // Models go on with what they follow: to them this configuration says nothing.
            Mode::SingleOperators => return,
            Mode::Overflow => &mut dump.overflows,
            Mode::Operator | Mode::Watcher | Mode::Failures(_) => &mut dump.values,
        };
        *of_mode = Some(settings.clone());
        dump.current = Some(settings.clone());
        for model in lock(&self.models).by_id.values() {
            follow(&mut lock(&model.registration), &settings);
        }
    }

    /// Switches every dump off; [`Process::end_dumps`] has to follow.
    pub(crate) fn switch_dump_off(&self) -> SwitchedOff {
        let mut dump = lock(&self.dump);
        dump.current = None;
        dump.single_operators = None;
        dump.values = None;
        dump.overflows = None;
        if let Some(failures) = &mut dump.failures {
            failures.switch_off();
        }
        let runs = std::mem::take(&mut dump.runs);
        let models = lock(&self.models);
        let mut registered = Vec::new();
        for model in models.by_id.values() {
            if lock(&model.registration).current.take().is_some() {
                registered.push(model.clone());
            }
        }
        SwitchedOff {
            models: registered,
            runs,
        }
    }

    /// Makes a loaded model known and gives it its part in the dump, in one step: the model follows
    /// either the configuration before a concurrent change or the one after it.
    pub(crate) fn register_model(&self, build: impl FnOnce(u32, Registration) -> Model) -> u32 {
        let dump = lock(&self.dump);
        let mut models = lock(&self.models);
        models.n_loaded += 1;
        let id = models.n_loaded;
        let model = build(id, Registration::at_load(dump.current.as_ref()));
        models.by_id.insert(id, Arc::new(model));
        id
    }

    /// The configuration that operators outside a model follow.
    pub(crate) fn single_operator_dump(&self) -> Option<Arc<Settings>> {
        lock(&self.dump).single_operators.clone()
    }

    /// `acldumpGetPath`: where the dump of a kind goes, with a `/` at the end; `None` if none of that
    /// kind is on. The directory of dumps of failing operators is created.
    pub fn dump_path(&self, kind: i32) -> Option<String> {
        let dump = lock(&self.dump);
        let settings = match kind {
            DATA_DUMP => dump.values.as_ref(),
            OVERFLOW_DUMP => dump.overflows.as_ref(),
            1..=3 => return dump.failures.as_ref()?.create_root(self),
            _ => None,
        }?;
        let root = settings.dump_path.join(&settings.time);
        Some(format!("{}/", root.display()))
    }
}

impl Dump {
    /// The purpose for which models that are loaded now are dumped; `None` if they are not.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        Some(self.current.as_ref()?.plan.purpose)
    }

    /// The local time, or the next second whose directory below `dump_path` is free.
    fn free_time(&mut self, dump_path: &Path) -> String {
        let is_taken = |root: &Path| self.taken.contains(root);
        let time = free_time(dump_path, dump_times(), is_taken);
        self.taken.insert(dump_path.join(&time));
        time
    }
}
