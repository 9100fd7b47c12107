//! A sink that compares each tensor with its golden partner while both are likely to be in a cache.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_analysis::compare::measure::{MeasuredPairs, StreamedDifference};
use opscope_analysis::compare::result::{VerdictLevel, rel_l2};
use opscope_analysis::compare::side::ExecutionSlot;
use opscope_analysis::compare::verdict::{Thresholds, level_of_difference};
use opscope_analysis::elements::LastFile;
use opscope_capture::{GraphView, SelectedOperators, Sink, SinkError, WrittenFiles};
use opscope_dump::held::{HeldDump, describe_slots};
use opscope_store::HeldElements;
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_tensor::difference::DifferenceOptions;
use opscope_tensor::{DType, Tensor};

use crate::golden::GoldenSlots;

/// Where the tensors of the target are stored.
pub enum TargetStore {
    /// They are held in this process; tensors equal to their golden partners share their elements.
    Held(Arc<HeldDump>),
    /// A sink of a dump on disk.
    Dump(Arc<dyn Sink>),
    /// Nothing is stored.
    Nothing,
}

/// Options for comparing while a target runs.
#[derive(Default)]
pub struct WatchOptions {
    /// Further metrics to compute for each pair of tensors.
    pub difference: DifferenceOptions,
    /// Ends the run at the first operator with an output beyond these limits.
    pub stop_beyond: Option<Thresholds>,
    /// Whether every operator that is not bit-identical is recorded.
    pub notes_operators: bool,
}

/// An operator that differs from the golden side.
#[derive(Clone, Debug)]
pub struct StreamedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// Step of the execution.
    pub step: u64,
    /// Execution time, for the order of execution.
    pub timestamp_us: u64,
    /// Whether every tensor of the operator has a partner to be compared with.
    pub is_whole: bool,
    /// The tensors that differ, inputs first.
    pub slots: Vec<StreamedSlot>,
}

/// A tensor that differs from the golden side.
#[derive(Clone, Debug)]
pub struct StreamedSlot {
    /// Input or output.
    pub side: SlotSide,
    /// Index of the slot.
    pub index: usize,
    /// The relative distance of both, if defined.
    pub rel_l2: f64,
}

/// Compares the tensors of a target with the golden side, and stores them.
///
/// The result does not depend on the order of the records.
pub struct ComparingSink {
    golden: GoldenSlots,
    store: TargetStore,
    options: WatchOptions,
    measured: MeasuredPairs,
    operators: Mutex<Vec<StreamedOperator>>,
    is_stopped: Mutex<Option<Arc<AtomicBool>>>,
    beyond: Mutex<Option<FirstBeyond>>,
}

/// The first operator in execution order with an output beyond the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstBeyond {
    /// Step of the execution.
    pub step: u64,
    /// Execution time, in microseconds since 1970-01-01 UTC.
    pub timestamp_us: u64,
}

impl ComparingSink {
    /// Compares with `golden`.
    pub fn new(golden: GoldenSlots, store: TargetStore, options: WatchOptions) -> ComparingSink {
        ComparingSink {
            golden,
            store,
            options,
            measured: MeasuredPairs::default(),
            operators: Mutex::default(),
            is_stopped: Mutex::default(),
            beyond: Mutex::default(),
        }
    }

    /// Sets the flag that stops the run.
    pub fn set_stop_flag(&self, flag: Arc<AtomicBool>) {
        *lock(&self.is_stopped) = Some(flag);
    }

    /// The first operator with an output beyond the limits, if the run was to stop there. The run
    /// may have continued for a while.
    pub fn first_beyond(&self) -> Option<FirstBeyond> {
        *lock(&self.beyond)
    }

    /// The pairs that were measured.
    pub fn measured(&self) -> &MeasuredPairs {
        &self.measured
    }

    /// Operators that differ, in order of execution.
    pub fn take_operators(&self) -> Vec<StreamedOperator> {
        let mut operators = std::mem::take(&mut *lock(&self.operators));
        operators.sort_by_key(|operator| (operator.step, operator.timestamp_us));
        operators
    }

    /// Compares the tensors of a record, and holds them if requested.
    fn compare(&self, record: &Record) -> Result<Vec<HeldElements>, SinkError> {
        let run = self.golden.find(record);
        // Slots of one operator are often in one file of a golden dump, which stays open for them.
        let mut file = LastFile::default();
        let mut noted = StreamedOperator {
            operator: record.operator.clone(),
            step: record.step,
            timestamp_us: record.timestamp_us,
            is_whole: true,
            slots: Vec::new(),
        };
        let mut elements = Vec::new();
        for (side, index, tensor) in record.slots() {
            let golden = run.as_ref().and_then(|run| run.slot(side, index));
            let found = golden
                .zip(tensor.host_view().ok())
                .and_then(|(golden, view)| {
                    StreamedDifference::measure(view, golden, &mut file, self.options.difference)
                });
            // A tensor that cannot be compared here may have a partner with another name.
            match (golden, &found) {
                (Some(golden), Some(found)) => {
                    if !found.is_identical {
                        let rel_l2 = rel_l2(&found.difference);
                        noted.slots.push(StreamedSlot {
                            side,
                            index,
                            rel_l2,
                        });
                    }
                    self.judge(record, (side, tensor.dtype()), golden, found);
                }
                _ => noted.is_whole = false,
            }
            // Afterwards, because a tensor equal to its partner needs no memory.
            if let TargetStore::Held(held) = &self.store {
                elements.push(self.hold(held, tensor, golden.zip(found.as_ref()))?);
            }
        }
        if self.options.notes_operators && !(noted.slots.is_empty() && noted.is_whole) {
            lock(&self.operators).push(noted);
        }
        Ok(elements)
    }

    /// Passes the record to the sink of a dump on disk, if there is one.
    fn forward(
        &self,
        tell: impl FnOnce(&dyn Sink) -> Result<WrittenFiles, SinkError>,
    ) -> Result<WrittenFiles, SinkError> {
        match &self.store {
            TargetStore::Dump(sink) => tell(&**sink),
            TargetStore::Held(_) | TargetStore::Nothing => Ok(WrittenFiles::default()),
        }
    }

    /// Holds a tensor; a tensor equal to its golden partner shares its elements.
    fn hold(
        &self,
        held: &HeldDump,
        tensor: &Tensor,
        golden: Option<(&ExecutionSlot, &StreamedDifference)>,
    ) -> Result<HeldElements, SinkError> {
        // A golden dump on disk holds no elements to share.
        let shared = golden.filter(|(_, found)| found.is_identical);
        let shared = shared.and_then(|(golden, _)| golden.held());
        let elements = match shared {
            Some(shared) => held.hold_shared(tensor, shared),
            None => held.hold(tensor)?,
        };
        if let Some((golden, found)) = golden {
            self.measured
                .note((&elements, tensor.dtype()), golden, found);
        }
        Ok(elements)
    }

    /// Stops the run after an output beyond the limits, if requested.
    fn judge(
        &self,
        record: &Record,
        (side, dtype): (SlotSide, DType),
        golden: &ExecutionSlot,
        found: &StreamedDifference,
    ) {
        let Some(thresholds) = &self.options.stop_beyond else {
            return;
        };
        // A differing input is an earlier output, or comes from outside and affects an output.
        if side != SlotSide::Output || found.is_identical {
            return;
        }
        let operator = &record.operator;
        let names = (operator.op_type.as_str(), operator.op_name.as_str());
        let level = level_of_difference((golden, dtype), &found.difference, names, thresholds);
        if level == VerdictLevel::Fail {
            let found = FirstBeyond {
                step: record.step,
                timestamp_us: record.timestamp_us,
            };
            // Writers may finish out of order; the earlier operator counts.
            let mut beyond = lock(&self.beyond);
            *beyond = Some(beyond.map_or(found, |first| first.min(found)));
            drop(beyond);
            if let Some(flag) = &*lock(&self.is_stopped) {
                flag.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Sink for ComparingSink {
    fn keeps_tensors(&self) -> bool {
        match &self.store {
            TargetStore::Held(_) => true,
            TargetStore::Dump(sink) => sink.keeps_tensors(),
            TargetStore::Nothing => false,
        }
    }

    /// The comparison counts non-finite elements; a dump on disk reports them itself.
    fn wants_non_finite(&self) -> bool {
        matches!(self.store, TargetStore::Dump(_))
    }

    fn open_model(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        self.forward(|sink| sink.open_model(model, graph, selected))
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.forward(|sink| sink.begin_step(model, step))
    }

    fn end_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.forward(|sink| sink.end_step(model, step))
    }

    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        self.forward(|sink| sink.finish())
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let elements = self.compare(record)?;
        match &self.store {
            TargetStore::Held(held) => Ok(held.push(record, describe_slots(record, elements))),
            TargetStore::Dump(sink) => sink.write(record),
            TargetStore::Nothing => Ok(WrittenFiles::default()),
        }
    }
}

/// The data behind these locks stays consistent after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
