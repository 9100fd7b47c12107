//! Puts dumps in force, and switches them off.

use std::sync::Arc;

use opscope_config::dialect::acl::{AclDump, DumpMode};

use super::dump_run::EndedDumps;
use crate::dump::{AcceptedDump, DumpRegistration};
use crate::lock::lock;
use crate::model::AclModel;
use crate::{AclProcess, Answer};

/// `acldumpType`: dumps of values, and of overflows.
const DATA_DUMP: i32 = 4;
const OVERFLOW_DUMP: i32 = 5;

impl AclProcess {
    /// Puts an accepted configuration in force.
    pub(crate) fn configure_dump(&self, accepted: AclDump) -> Answer {
        if let DumpMode::Failures(_) = accepted.mode {
            let mut dump = lock(&self.dump);
            return self.configure_exception_dump(&mut dump.failures, accepted);
        }
        self.put_in_force(accepted, DumpRegistration::follow);
        Ok(())
    }

    /// Puts a configuration in force, other than one for failing operators. `follow` is called for
    /// each loaded model.
    pub(crate) fn put_in_force(
        &self,
        accepted: AclDump,
        follow: impl Fn(&mut DumpRegistration, &Arc<AcceptedDump>),
    ) {
        let mut dump = lock(&self.dump);
        let dump_path = accepted.places.first().cloned().unwrap_or_default();
        let time = dump.free_time(&dump_path);
        let run = self.run_of(&accepted, &dump_path, &time);
        dump.runs.push(run.clone());
        let settings = Arc::new(AcceptedDump {
            mode: accepted.mode,
            plan: accepted.plan,
            content: accepted.content,
            dump_path,
            time,
            run,
        });
        dump.single_operators = accepted.has_single_operators.then(|| settings.clone());
        let of_mode = match settings.mode {
            // Models keep their dump: this configuration does not concern them.
            DumpMode::SingleOperators => return,
            DumpMode::Overflow => &mut dump.overflows,
            DumpMode::Operator | DumpMode::Watcher | DumpMode::Failures(_) => &mut dump.values,
        };
        *of_mode = Some(settings.clone());
        dump.current = Some(settings.clone());
        // The dump stays locked, so that a model loaded concurrently follows one or the other.
        for model in lock(&self.models).by_id.values() {
            follow(&mut lock(&model.registration), &settings);
        }
    }

    /// Switches every dump off; [`AclProcess::end_dumps`] must follow.
    pub(crate) fn switch_dump_off(&self) -> EndedDumps {
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
        EndedDumps {
            models: registered,
            runs,
        }
    }

    /// Registers a loaded model and its share in the dump in one step: the model follows either the
    /// configuration before a concurrent change or the one after it.
    pub(crate) fn register_model(
        &self,
        build: impl FnOnce(u32, DumpRegistration) -> AclModel,
    ) -> u32 {
        let dump = lock(&self.dump);
        let mut models = lock(&self.models);
        models.n_loaded += 1;
        let id = models.n_loaded;
        let model = build(id, DumpRegistration::at_load(dump.current.as_ref()));
        models.by_id.insert(id, Arc::new(model));
        id
    }

    /// The configuration for operators outside a model.
    pub(crate) fn single_operator_dump(&self) -> Option<Arc<AcceptedDump>> {
        lock(&self.dump).single_operators.clone()
    }

    /// `acldumpGetPath`: the directory of a kind of dump, with a trailing `/`; `None` if none of
    /// that kind is on. The directory of dumps of failing operators is created.
    pub fn dump_path(&self, kind: i32) -> Option<String> {
        let dump = lock(&self.dump);
        let settings = match kind {
            DATA_DUMP => dump.values.as_ref(),
            OVERFLOW_DUMP => dump.overflows.as_ref(),
            1..=3 => return self.create_exception_root(dump.failures.as_ref()?),
            _ => None,
        }?;
        let root = settings.dump_path.join(&settings.time);
        Some(format!("{}/", root.display()))
    }
}
