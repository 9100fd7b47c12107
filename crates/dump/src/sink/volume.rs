//! A sink that counts what another one writes: for each step and each operator.

use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    BatchPreparer, GraphView, OperatorFailure, SelectedOperators, Sink, SinkError, StepRemover,
    TensorSummarizer, WholeTensors, WrittenFiles,
};
use opscope_store::record::{ModelId, Operator, Record};

/// Passes everything on and counts the outcome.
pub struct VolumeSink {
    next: Arc<dyn Sink>,
    counted: Mutex<VolumeCounts>,
}

/// The amount written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Operators of the models.
    pub n_operators: u64,
    /// Operators with a selected tensor.
    pub n_operators_selected: u64,
    /// Amount written for each step, including files without tensors.
    pub steps: BTreeMap<u64, FileAmount>,
    /// Amount written of each operator, by type and name.
    pub operators: Vec<OperatorVolume>,
}

/// Numbers of files and of their contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAmount {
    /// Records of which something was written, mostly executions of operators.
    pub n_records: u64,
    /// Files that were created.
    pub n_files: u64,
    /// Bytes, headers included.
    pub n_bytes: u64,
    /// Tensors that were written with all elements.
    pub whole: WholeTensors,
}

/// The amount written of one operator in all steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorVolume {
    /// The operator.
    pub operator: Arc<Operator>,
    /// The amount.
    pub amount: FileAmount,
}

#[derive(Default)]
struct VolumeCounts {
    n_operators: u64,
    n_operators_selected: u64,
    steps: BTreeMap<u64, FileAmount>,
    /// By type, name and task.
    operators: HashMap<(String, String, u32), OperatorVolume>,
}

impl VolumeSink {
    /// Counts what `next` writes.
    pub fn new(next: Arc<dyn Sink>) -> VolumeSink {
        VolumeSink {
            next,
            counted: Mutex::default(),
        }
    }

    /// Returns the amounts written so far and resets the counters.
    pub fn take(&self) -> Volume {
        let counted = std::mem::take(&mut *self.lock());
        let mut operators: Vec<_> = counted.operators.into_iter().collect();
        // A hash map has no order, and sums by type require operators of one type to be adjacent.
        operators.sort_by(|(a, _), (b, _)| a.cmp(b));
        Volume {
            n_operators: counted.n_operators,
            n_operators_selected: counted.n_operators_selected,
            steps: counted.steps,
            operators: operators.into_iter().map(|(_, volume)| volume).collect(),
        }
    }

    fn count(
        &self,
        record: &Record,
        written: Result<WrittenFiles, SinkError>,
    ) -> Result<WrittenFiles, SinkError> {
        let written = written?;
        // Rows that join a table are bytes without a new file.
        let is_written = written.n_files > 0 || written.n_bytes > 0;
        let amount = FileAmount {
            n_records: is_written.into(),
            ..FileAmount::from_written(written)
        };
        let mut counted = self.lock();
        *counted.steps.entry(record.step).or_default() += amount;
        let operator = &record.operator;
        let key = (
            operator.op_type.clone(),
            operator.op_name.clone(),
            operator.task_id,
        );
        let volume = counted
            .operators
            .entry(key)
            .or_insert_with(|| OperatorVolume {
                operator: operator.clone(),
                amount: FileAmount::default(),
            });
        volume.amount += amount;
        Ok(written)
    }

    fn lock(&self) -> MutexGuard<'_, VolumeCounts> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileAmount {
    fn from_written(written: WrittenFiles) -> FileAmount {
        FileAmount {
            n_records: 0,
            n_files: written.n_files,
            n_bytes: written.n_bytes,
            whole: written.whole,
        }
    }
}

impl AddAssign for FileAmount {
    fn add_assign(&mut self, other: FileAmount) {
        *self = FileAmount {
            n_records: self.n_records + other.n_records,
            n_files: self.n_files + other.n_files,
            n_bytes: self.n_bytes + other.n_bytes,
            whole: self.whole + other.whole,
        };
    }
}

impl Sink for VolumeSink {
    fn keeps_tensors(&self) -> bool {
        self.next.keeps_tensors()
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        self.count(record, self.next.write(record))
    }

    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        self.count(record, self.next.write_overflow(record, overflow))
    }

    fn write_failure(
        &self,
        record: &Record,
        failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        self.count(record, self.next.write_failure(record, failure))
    }

    fn open_model(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        let kept = graph.operators.iter().filter(|operator| {
            let kept = selected.kept.get(&operator.task_id);
            kept.is_some_and(|kept| kept.n_slots() > 0)
        });
        let mut counted = self.lock();
        counted.n_operators += graph.operators.len() as u64;
        counted.n_operators_selected += kept.count() as u64;
        drop(counted);
        self.next.open_model(model, graph, selected)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let written = self.next.begin_step(model, step)?;
        *self.lock().steps.entry(step).or_default() += FileAmount::from_written(written);
        Ok(written)
    }

    fn end_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let written = self.next.end_step(model, step)?;
        *self.lock().steps.entry(step).or_default() += FileAmount::from_written(written);
        Ok(written)
    }

    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        self.next.finish()
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        self.next.summarizer()
    }

    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        self.next.batch_preparer()
    }

    /// The amounts of a removed step stay counted.
    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.next.step_remover()
    }
}
