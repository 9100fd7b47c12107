//! The record of a program's dump: one for each accepted configuration, from its first file to
//! `aclmdlFinalizeDump` or `aclFinalize`.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::SessionSummary;
use opscope_config::dialect::acl::AclDump;
use opscope_dump::{DumpDialect, DumpPlace, add_steps, note_engine, now};
use opscope_engine::{FallbackEngine, GraphKind};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::run_json::{ModelFile, RunRecord, RunState};
use opscope_store::record::ModelId;
use opscope_store::run_file::RunFile;

use crate::AclProcess;
use crate::model::AclModel;

/// The unfinished parts of dumps that were switched off: dumped models, and open records.
pub(crate) struct EndedDumps {
    pub(crate) models: Vec<Arc<AclModel>>,
    pub(crate) runs: Vec<Arc<RunFile>>,
}

impl AclProcess {
    /// A new record of a dump below `{dump_path}/{time}`.
    pub(super) fn run_of(&self, accepted: &AclDump, dump_path: &Path, time: &str) -> Arc<RunFile> {
        let place = DumpPlace {
            dialect: DumpDialect::Acl,
            dump_path: dump_path.to_owned(),
            root: dump_path.join(time),
            modes: PermissionModes::default(),
        };
        let mut record = RunRecord {
            command: "AscendCL".to_owned(),
            engine_graph: Some(GraphKind::Original.name().to_owned()),
            ..RunRecord::default()
        };
        note_engine(&mut record, &*self.engine);
        place.run_file(&accepted.plan, record)
    }

    /// Waits until the dumps that were switched off are written, and closes their records.
    pub(crate) fn end_dumps(&self, ended: &EndedDumps) {
        ended.models.iter().for_each(|model| model.wait());
        for run in &ended.runs {
            if let Err(error) = run.finish(RunState::Finished, now()) {
                self.dump_failed(&error.to_string());
            }
        }
    }
}

/// Records that a model ran on an engine other than the process's.
pub(crate) fn note_taken_engine(run: Option<&RunFile>, taken: Option<&FallbackEngine>) {
    if let (Some(run), Some(taken)) = (run, taken) {
        run.update(|record| note_engine(record, &*taken.engine));
    }
}

/// Adds an execution to the record.
pub(crate) fn note_execution(run: Option<&RunFile>, model: &ModelId, summary: &SessionSummary) {
    let Some(run) = run else {
        return;
    };
    add_steps(run, 1, summary);
    run.update(|record| {
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
