//! A sink that writes the trees of MindSpore's data dump.
//!
//! CPU, GPU and Ascend kernel by kernel: one array file for each tensor, under
//! `rank_{rank}/{net_name}/{graph_id}/{iteration}`, with graph files and execution orders. Ascend
//! by whole graphs, and the graph engine: `{step}/{time}/{device}/…` with array files or with one
//! file for each operator. `docs/mindspore.md` has the trees and where they differ from those of
//! the framework.

mod device_statistics;
mod files;
mod graph;
mod options;
mod statistics;
mod tensors;
mod whole_graph;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    BatchPreparer, GraphView, OperatorFailure, SelectedOperators, Sink, SinkError, StepRemoval,
    StepRemover, TensorRules, TensorSummarizer, WrittenFiles,
};
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::execution_order::{self, IterationList};
use opscope_store::file_format::{ms_graph_ir, ms_graph_pb, ms_json};
use opscope_store::record::graph::Literal;
use opscope_store::record::{AttributeKind, ModelId, Operator, Record, SlotSide};
use opscope_store::temporary::LeftOvers;
use opscope_store::tree::mindspore::{
    CONSTANT, MindSporeTree, PARAMETER, TensorFileName, TreeTarget, kernel_args_file_name,
};
use opscope_tensor::{Tensor, TensorObserver};

use self::files::TensorFiles;
use self::graph::{GraphMaker, GraphValues};
use super::AclSink;
use super::ledger::StepKey;
use super::refusals::Refusals;

pub use options::{MindSporeOptions, RuntimeMode};

/// The version that `.dump_metadata` names: whose form of the tree this is.
const FRAMEWORK_VERSION: &str = "2.10.0";

/// Writes MindSpore's trees.
pub struct MindSporeSink {
    options: MindSporeOptions,
    /// Which tensors are written whole, if any are.
    tensors: TensorRules,
    tree: MindSporeTree,
    files: TensorFiles,
    /// Where whole graphs have the operators that failed.
    failures: AclSink,
    iterations: Mutex<IterationList>,
    graphs: Mutex<HashMap<u32, GraphMaker>>,
    values: Mutex<GraphValues>,
    /// By graph: whether an earlier dump has written its constants.
    earlier_constants: Mutex<HashMap<u32, bool>>,
    refusals: Refusals,
    /// By load: the operators that the runtime is configured to dump; `None` means all.
    runtime_names: Mutex<HashMap<u32, Option<Vec<String>>>>,
}

impl MindSporeSink {
    /// Creates the root directory, and what is in the tree before a model runs.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the directory or a file cannot be created.
    pub fn create(options: MindSporeOptions) -> Result<MindSporeSink, StoreError> {
        let creator = Arc::new(Creator::in_shared_dump(&options.path, options.modes));
        MindSporeSink::create_by(creator, options)
    }

    /// [`MindSporeSink::create`] by way of `creator`, which may be one that only pretends.
    ///
    /// # Errors
    /// As for [`MindSporeSink::create`].
    pub fn create_by(
        creator: Arc<Creator>,
        options: MindSporeOptions,
    ) -> Result<MindSporeSink, StoreError> {
        let tree = MindSporeTree::new(
            &options.path,
            options.target,
            options.rank,
            &options.net_name,
        );
        let sink = MindSporeSink {
            failures: AclSink::lazy_by(creator.clone(), &options.path, &options.time),
            files: TensorFiles::new(creator, options.dedup, &options.path),
            tensors: TensorRules::default(),
            tree,
            options,
            iterations: Mutex::default(),
            graphs: Mutex::default(),
            values: Mutex::default(),
            earlier_constants: Mutex::default(),
            refusals: Refusals::default(),
            runtime_names: Mutex::default(),
        };
        sink.files.create_dir(&sink.tree.rank_dir())?;
        if let Some((dir, short, long)) = sink.tree.long_net_name() {
            sink.files.map_name(&dir, short, long)?;
        }
        if sink.options.target.has_metadata() {
            // Only trees of CPU and GPU have this file.
            let device = match sink.options.target {
                TreeTarget::Gpu => "GPU",
                _ => "CPU",
            };
            let producer = ms_json::producer(device, FRAMEWORK_VERSION);
            let copy = sink.tree.configuration_copy();
            sink.files.create(&copy, &sink.options.configuration)?;
            sink.files
                .create(&sink.tree.producer_file(), producer.as_bytes())?;
        }
        Ok(sink)
    }

    /// The same sink that writes only those tensors whole that `rules` choose; where an operator
    /// has one file, all of its tensors if they choose one. Statistics are not affected.
    #[must_use]
    pub fn with_tensors_where(self, rules: TensorRules) -> MindSporeSink {
        MindSporeSink {
            tensors: rules,
            ..self
        }
    }

    /// The directories that are written to.
    pub fn tree(&self) -> &MindSporeTree {
        &self.tree
    }

    /// The directory of one execution of `model`.
    pub fn step_dir(&self, model: &ModelId, step: u64) -> PathBuf {
        if self.options.target.has_ranks() {
            self.tree
                .iteration_dir(graph_id(model), self.iteration(step))
        } else {
            self.run_dir(model, step)
        }
    }

    /// The directory of operators that failed in one execution of `model`.
    pub fn failure_dir(&self, model: &ModelId, step: u64) -> PathBuf {
        if self.options.target.has_ranks() {
            self.step_dir(model, step)
        } else {
            self.failures.tree().failure_dir(model.device)
        }
    }

    /// Why tensors were left out, and how many for each reason.
    pub fn refused(&self) -> Vec<(String, u64)> {
        let mut all = self.refusals.all();
        for (reason, n) in self.failures.refused() {
            *all.entry(reason).or_default() += n;
        }
        all.into_iter().collect()
    }

    /// The directory below which everything is written.
    pub fn path(&self) -> &Path {
        &self.options.path
    }

    /// Returns the counts of files that killed processes left where this dump writes: those removed
    /// and those kept.
    pub fn left_overs(&self) -> LeftOvers {
        self.files.left_overs()
    }

    fn iteration(&self, step: u64) -> u64 {
        step.saturating_add(self.options.first_iteration)
    }

    fn refuse(&self, reason: String) -> WrittenFiles {
        self.refusals.refuse(reason)
    }

    /// The tensors of a record; each of them has a different microsecond.
    fn write_slots<'r>(
        &self,
        record: &'r Record,
        slots: impl Iterator<Item = (SlotSide, usize, &'r Tensor)>,
    ) -> Result<WrittenFiles, SinkError> {
        // The graph files are rewritten at the end, with the types from the records.
        lock(&self.values).learn(record);
        let operator = &*record.operator;
        let dir = if operator.op_type == CONSTANT {
            self.constants_dir(record)
        } else {
            self.step_dir(&record.model, record.step)
        };
        let mut rows = String::new();
        let written =
            (record.timestamp_us..)
                .zip(slots)
                .map(|(timestamp, (side, index, tensor))| {
                    let name = TensorFileName {
                        side,
                        slot: u32::try_from(index).unwrap_or(u32::MAX),
                        timestamp,
                        ..self.file_name(operator)
                    };
                    self.write_tensor(&dir, operator, name, tensor, &mut rows)
                });
        let written = written.reduce(|sum, next| Ok(sum? + next?));
        // Rows of tensors before one that fails are true all the same.
        let of_rows = self.write_rows(&dir, &rows);
        Ok(written.unwrap_or_else(|| Ok(WrittenFiles::default()))? + of_rows?)
    }

    fn constants_dir(&self, record: &Record) -> PathBuf {
        if self.options.target.has_ranks() {
            self.tree.constants_dir(graph_id(&record.model))
        } else {
            self.run_constants_dir(&record.model, record.step)
        }
    }

    /// Constants are written once for each graph, and not where an earlier dump has written them.
    fn has_place_for_constant(&self, record: &Record) -> bool {
        let id = graph_id(&record.model);
        // Looked up once for each graph, before this dump's own constants make the directory.
        !*lock(&self.earlier_constants)
            .entry(id)
            .or_insert_with(|| self.files.exists(&self.constants_dir(record)))
            && lock(&self.values).claim_constant(id, &record.operator.op_name)
    }

    fn write_graphs(&self, maker: &GraphMaker) -> Result<WrittenFiles, SinkError> {
        let graph = maker.graph(&lock(&self.values));
        let text = ms_graph_ir::encode(&graph);
        let bytes = ms_graph_pb::encode(&graph);
        let mut written = WrittenFiles::default();
        for (extension, bytes) in [("ir", text.as_bytes()), ("pb", &bytes)] {
            let path = self.tree.graph_file(graph.id, extension);
            written = written + self.files.replace(&path, bytes)?;
        }
        Ok(written)
    }
}

impl Sink for MindSporeSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let record = &*without_iterations(record);
        if record.operator.op_type == CONSTANT {
            // Array files in all trees: the document has no other format for constants.
            return if self.has_place_for_constant(record) {
                self.write_slots(record, record.slots())
            } else {
                // Every selected tensor has to be accounted for, so those that were written earlier
                // count as refused.
                Ok(WrittenFiles {
                    n_refused: record.n_slots(),
                    ..WrittenFiles::default()
                })
            };
        }
        if self.options.is_bin && !self.options.target.has_ranks() {
            return self.write_operator_file(record);
        }
        let written = self.write_slots(record, record.slots())?;
        Ok(written + self.write_kernel_args(record)?)
    }

    /// Whole graphs have a record of the overflow too, which is written first.
    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        if self.options.target.has_ranks() {
            return self.write(record);
        }
        let record = &*without_iterations(record);
        let written = self.write_overflow_record(record, overflow)?;
        Ok(written + self.write(record)?)
    }

    /// Kernel by kernel the inputs are written like any others; whole graphs have separate files
    /// for operators that fail.
    fn write_failure(
        &self,
        record: &Record,
        failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        if !self.options.target.has_ranks() {
            return self.failures.write_failure(record, failure);
        }
        let record = &*without_iterations(record);
        let has_inputs = self.options.runtime != RuntimeMode::Values("output");
        let inputs = record.inputs.iter().filter(|_| has_inputs);
        self.write_slots(
            record,
            inputs.map(|(i, tensor)| (SlotSide::Input, *i, tensor)),
        )
    }

    fn open_model(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        if !self.options.target.has_ranks() {
            return self.tell_runtime(model, graph, selected);
        }
        let id = graph_id(model);
        let names = graph.operators.iter().map(|operator| &*operator.op_name);
        let order = execution_order::encode(names);
        let path = self.tree.execution_order_file(id);
        let written = self.files.replace(&path, order.as_bytes())?;
        lock(&self.values).assume(id, graph.types);
        let maker = GraphMaker::new(id, graph);
        let of_graphs = self.write_graphs(&maker)?;
        lock(&self.graphs).insert(id, maker);
        Ok(written + of_graphs)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.begin_ledger(model, step);
        // Engines free most tensors at the end of a step; entries about them would only fill the
        // table.
        self.files.forget_dead();
        if !self.options.target.has_ranks() {
            return self.tell_runtime_step(model, step);
        }
        if !self.options.target.has_metadata() || self.options.has_parameters_only {
            return Ok(WrittenFiles::default());
        }
        let mut iterations = lock(&self.iterations);
        let Some(line) = iterations.line(self.iteration(step)) else {
            return Ok(WrittenFiles::default());
        };
        let path = self.tree.global_execution_order_file(graph_id(model));
        Ok(self.files.append(&path, "", &line)?)
    }

    /// Types and shapes of values are known only now.
    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        self.files.remove_upper_dirs()?;
        for maker in lock(&self.graphs).values() {
            // The files were counted when they were first written.
            self.write_graphs(maker)?;
        }
        Ok(WrittenFiles::default())
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        // Of samples other numbers are wanted than of the tensors that they come from.
        let is_whole = self.options.n_samples.is_none();
        (self.options.statistics.is_some() && is_whole).then_some(self)
    }

    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        let categories = self.options.statistics.as_deref().unwrap_or_default();
        statistics::has_digest(categories).then_some(self)
    }

    /// Files outside the steps stay: graphs, execution orders, constants, the operators that
    /// failed.
    fn step_remover(&self) -> Option<&dyn StepRemover> {
        Some(self)
    }
}

impl TensorSummarizer for MindSporeSink {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        let Some(categories) = &self.options.statistics else {
            return false;
        };
        let is_host = self.options.device_statistics.is_none();
        if is_host && statistics::has_digest(categories) {
            // Digests are computed by the writers, several at once.
            let _ = tensor.sequential_stats();
            return false;
        }
        self.cells(tensor, categories);
        !self.options.has_tensors || self.tensors.rule_out(tensor)
    }
}

impl BatchPreparer for MindSporeSink {
    fn batch_size(&self) -> usize {
        statistics::N_HASHED_AT_ONCE
    }

    fn prepare_batch(&self, records: &[&Record]) {
        if let Some(categories) = &self.options.statistics
            && self.options.n_samples.is_none()
        {
            statistics::prepare(records, categories);
        }
    }
}

impl StepRemover for MindSporeSink {
    fn remember_steps(&self) {
        self.files.ledger.open();
    }

    fn remove_step(&self, model: &ModelId, step: u64) -> Result<StepRemoval, SinkError> {
        Ok(self.files.remove_step(&self.step_key(model, step))?)
    }

    fn keep_step(&self, model: &ModelId, step: u64) {
        self.files.ledger.keep(&self.step_key(model, step));
    }
}

impl MindSporeSink {
    /// In trees of whole graphs only, the step is the first directory of all.
    fn begin_ledger(&self, model: &ModelId, step: u64) {
        let key = self.step_key(model, step);
        let shared = match self.options.target {
            TreeTarget::AscendGraph => self.options.path.clone(),
            _ => key.0.parent().unwrap_or(&key.0).to_owned(),
        };
        self.files.ledger.begin(key, &shared, &self.tree.rank_dir());
    }

    fn step_key(&self, model: &ModelId, step: u64) -> StepKey {
        (self.step_dir(model, step), 0)
    }

    fn write_kernel_args(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let operator: &Operator = &record.operator;
        let is_wanted = self.options.has_kernel_args
            && self.options.target == TreeTarget::AscendKernels
            && ![CONSTANT, PARAMETER].contains(&operator.op_type.as_str());
        if !is_wanted {
            return Ok(WrittenFiles::default());
        }
        let name = kernel_args_file_name(&operator.op_type, &operator.op_name);
        let dir = self.step_dir(&record.model, record.step);
        let arguments = operator.all_attributes().map(|(name, text, r#type)| {
            let value = match (Literal::from_text(text, r#type), r#type) {
                (Literal::Text(text), _) => text,
                // Python has printed it, and means it so.
                (_, AttributeKind::Python) => text.to_owned(),
                (value, _) => value.plain_text(),
            };
            (name.to_owned(), value)
        });
        let text = ms_json::kernel_args(&arguments.collect::<Vec<_>>());
        Ok(self.files.replace_named(&dir, &name, text.as_bytes())?)
    }
}

/// Returns the record under its operator's name without iterations: all runs of a loop share one
/// name here and differ in their time stamps.
fn without_iterations(record: &Record) -> Cow<'_, Record> {
    if record.operator.iterations.is_empty() {
        return Cow::Borrowed(record);
    }
    let operator = Operator {
        op_name: record.operator.name_in_file().to_owned(),
        iterations: Vec::new(),
        ..Operator::clone(&record.operator)
    };
    Cow::Owned(Record {
        operator: Arc::new(operator),
        ..record.clone()
    })
}

/// Graphs are numbered from 0 in the order in which they are loaded.
fn graph_id(model: &ModelId) -> u32 {
    model.load.unwrap_or(1).saturating_sub(1)
}

/// Values behind these locks stay consistent after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
