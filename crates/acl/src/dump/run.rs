//! The record of a program's dump: one for each accepted configuration, from its first file to
//! `aclmdlFinalizeDump` or `aclFinalize`.

use std::sync::Arc;

use opscope_capture::Summary;
use opscope_config::dialect::acl::AclDump;
use opscope_dump::{add_summary, now, plan_in_short};
use opscope_engine::{Engine, GraphKind, TakenEngine};
use opscope_store::file_format::run_json::{ModelFile, Program, RunRecord, RunState};
use opscope_store::record::ModelId;
use opscope_store::run_file::{RunFile, this_host};

use super::sink::MODES;
use crate::Process;
use crate::model::Model;

/// The unfinished parts of dumps that were switched off: models that were dumped, and records without an end.
pub(crate) struct SwitchedOff {
    pub(crate) models: Vec<Arc<Model>>,
    pub(crate) runs: Vec<Arc<RunFile>>,
}

impl Process {
    /// A record of a dump below `{dump_path}/{time}` that was accepted now.
    pub(super) fn run_of(
        &self,
        accepted: &AclDump,
        dump_path: &std::path::Path,
        time: &str,
    ) -> Arc<RunFile> {
        let engine: &dyn Engine = &*self.engine;
        let record = RunRecord {
            tool: Program {
                name: "opscope".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            host: this_host(),
            started: now(),
            command: "AscendCL".to_owned(),
            dialect: "acl".to_owned(),
            plan: plan_in_short(&accepted.plan),
            engine: Program {
                name: engine.name().to_owned(),
                version: engine.version().map(str::to_owned),
            },
            engine_library: engine.library().map(|path| path.display().to_string()),
            engine_graph: Some(GraphKind::Original.name().to_owned()),
            ..RunRecord::default()
        };
        let root = dump_path.join(time);
        Arc::new(RunFile::new(dump_path, &root, MODES, record))
    }

    /// Waits until everything of what was switched off is written, and says in the records that it is.
    pub(crate) fn end_dumps(&self, ended: &SwitchedOff) {
        ended.models.iter().for_each(|model| model.wait());
        for run in &ended.runs {
            if let Err(error) = run.finish(RunState::Finished, now()) {
                self.dump_failed(&error.to_string());
            }
        }
    }
}

/// Says in the record that another engine ran a model than the one that the process has chosen.
pub(crate) fn note_engine(run: Option<&RunFile>, taken: Option<&TakenEngine>) {
    let (Some(run), Some(taken)) = (run, taken) else {
        return;
    };
    run.update(|record| {
        record.engine = Program {
            name: taken.engine.name().to_owned(),
            version: taken.engine.version().map(str::to_owned),
        };
        let library = taken.engine.library();
        record.engine_library = library.map(|path| path.display().to_string());
    });
}

/// Adds an execution to the record.
pub(crate) fn note_execution(run: Option<&RunFile>, model: &ModelId, summary: &Summary) {
    let Some(run) = run else {
        return;
    };
    run.update(|record| {
        record.n_steps += 1;
        add_summary(record, summary);
        let is_known =
            |known: &ModelFile| known.name == model.file_stem && known.graph == model.graph_name;
        if !record.models.iter().any(is_known) {
            record.models.push(ModelFile {
                name: model.file_stem.clone(),
                graph: model.graph_name.clone(),
                ..ModelFile::default()
            });
        }
    });
}
