//! Trees of whole graphs: runtime options, files of operators, records of overflow.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{GraphView, SelectedOperators, SinkError, WholeTensors, WrittenFiles};
use opscope_store::file_format::dump_data;
use opscope_store::file_format::ms_json::{self, RuntimeDump};
use opscope_store::file_format::op_debug::OverflowRecord;
use opscope_store::record::{ModelId, Record};
use opscope_store::tree::acl::clean_name;
use opscope_store::tree::acl::{DumpFileName, op_debug_file_name, stream_id, task_id};
use opscope_store::tree::mindspore::{GraphRun, TreeTarget};

use super::{MindSporeSink, RuntimeMode, lock};
use crate::sink::acl::parts;

/// Suffix that a record of overflow adds to the name of its operator's file.
const OVERFLOW_SUFFIX: &str = ".output.0.json";

impl MindSporeSink {
    pub(super) fn run_dir(&self, model: &ModelId, step: u64) -> PathBuf {
        self.tree.run_dir(&self.graph_run(model, step))
    }

    /// Constants lie where the first execution is that shows them.
    pub(super) fn run_constants_dir(&self, model: &ModelId, step: u64) -> PathBuf {
        self.tree.run_constants_dir(&self.graph_run(model, step))
    }

    fn graph_run<'a>(&'a self, model: &'a ModelId, step: u64) -> GraphRun<'a> {
        let name = if model.file_stem.is_empty() {
            &model.graph_name
        } else {
            &model.file_stem
        };
        GraphRun {
            step: self.iteration(step),
            time: &self.options.time,
            device: model.device,
            model_name: name,
            model_id: model.load.unwrap_or(0),
            iteration: self.iteration(step),
        }
    }

    /// One file with all tensors of an operator, as the runtime writes it.
    pub(super) fn write_operator_file(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        if record.n_bytes() == 0 {
            return Ok(WrittenFiles::default());
        }
        let (record, refused) = self.refusals.numbered(record);
        let record = &*record;
        // The tensors that were left out may be all that had elements.
        if record.n_bytes() == 0 {
            return Ok(refused);
        }
        let prelude = dump_data::prelude(record);
        let parts = parts(&prelude, record)?;
        let names = (record.timestamp_us..).map(|timestamp| {
            let name = DumpFileName {
                op_type: clean_name(&record.operator.op_type),
                op_name: clean_name(&record.operator.op_name),
                task_id: task_id(record),
                stream_id: Some(stream_id(&record.model)),
                timestamp: timestamp.to_string(),
                sub_task: None,
            };
            name.to_string()
        });
        let dir = self.run_dir(&record.model, record.step);
        let written = self.files.put(&dir, &names, &parts, None)?;
        let whole = WholeTensors::all(record);
        Ok(refused + WrittenFiles { whole, ..written })
    }

    /// A file that describes an operator's overflow: JSON with array files, binary with binary
    /// files.
    pub(super) fn write_overflow_record(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        let (stream_id, task_id) = (stream_id(&record.model), task_id(record));
        let model_id = record.model.load.unwrap_or(0);
        let block = overflow.to_record(model_id.into(), stream_id.into(), task_id.into());
        let (suffix, bytes) = if self.options.is_bin {
            let block = OverflowRecord::Blocks(block);
            ("", dump_data::op_debug_file(&block, record.timestamp_us))
        } else {
            (OVERFLOW_SUFFIX, ms_json::overflow(&block).into_bytes())
        };
        let names = (record.timestamp_us..)
            .map(|timestamp| op_debug_file_name(task_id, stream_id, timestamp) + suffix);
        let dir = self.run_dir(&record.model, record.step);
        self.files.put(&dir, &names, &[&bytes], None)
    }

    /// Writes the runtime's settings for a model, and makes it wait for the first selected step.
    pub(super) fn tell_runtime(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        let chosen = graph.operators.iter().filter(|operator| {
            let kept = selected.kept.get(&operator.task_id);
            kept.is_some_and(|kept| kept.n_slots() > 0)
        });
        let chosen: Vec<String> = chosen.map(|op| op.op_name.clone()).collect();
        let names = (!selected.is_every).then_some(chosen);
        lock(&self.runtime_names).insert(model.load.unwrap_or(0), names);
        self.write_runtime_file(model, None)
    }

    /// Notifies the runtime of a selected step.
    pub(super) fn tell_runtime_step(
        &self,
        model: &ModelId,
        step: u64,
    ) -> Result<WrittenFiles, SinkError> {
        let run = self.graph_run(model, step);
        if let Some((dir, short, long)) = self.tree.long_model_name(&run) {
            self.files.map_name(&dir, &short, &long)?;
        }
        // The file was counted when it was first written.
        self.write_runtime_file(model, Some(self.iteration(step)))
            .map(|_| WrittenFiles::default())
    }

    fn write_runtime_file(
        &self,
        model: &ModelId,
        iteration: Option<u64>,
    ) -> Result<WrittenFiles, SinkError> {
        // The graph engine gets options instead of a file.
        if self.options.target != TreeTarget::AscendGraph {
            return Ok(WrittenFiles::default());
        }
        let path = match iteration {
            None => self.options.path.clone(),
            Some(iteration) => self.options.path.join(iteration.to_string()),
        };
        let dump_path = &path.to_string_lossy();
        let names = lock(&self.runtime_names);
        let names = names.get(&model.load.unwrap_or(0)).cloned().flatten();
        let dump = match self.options.runtime {
            RuntimeMode::Overflow => RuntimeDump::Overflow { dump_path },
            RuntimeMode::Exceptions => RuntimeDump::Exceptions,
            RuntimeMode::Values(mode) => RuntimeDump::Operators {
                names: names.as_deref(),
                mode,
                dump_path,
                is_waiting: iteration.is_none(),
            },
        };
        let path = self.tree.acl_configuration(model.device);
        Ok(self.files.replace(&path, dump.to_json_text().as_bytes())?)
    }
}
