//! A sink that compares each tensor with its golden partner while both are likely to be in a cache.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_analysis::compare::measure::{MeasuredPairs, StreamedDifference};
use opscope_analysis::compare::result::VerdictLevel;
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

/// Where the tensors of the target go.
pub enum TargetStore {
    /// They are held in this process; those that equal their golden partners share their elements.
    Held(Arc<HeldDump>),
    /// A sink of a dump on disk.
    Dump(Arc<dyn Sink>),
    /// Nothing is kept.
    Nothing,
}

/// Things to look for while a target runs.
#[derive(Default)]
pub struct WatchOptions {
    /// Further numbers to compute of each pair of tensors.
    pub difference: DifferenceOptions,
    /// Ends the run at the first operator with an output beyond these limits.
    pub stop_beyond: Option<Thresholds>,
    /// Whether every operator that is not the same bit for bit is noted.
    pub notes_operators: bool,
}

/// An operator of which something is not the same as on the golden side.
#[derive(Clone, Debug)]
pub struct StreamedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// Which execution of the model.
    pub step: u64,
    /// When it ran, for an order of execution.
    pub timestamp_us: u64,
    /// Whether every tensor that it was shown with has a partner to be compared with.
    pub is_whole: bool,
    /// Its tensors that are not the same, inputs first.
    pub slots: Vec<StreamedSlot>,
}

/// A tensor that is not the same as on the golden side.
#[derive(Clone, Debug)]
pub struct StreamedSlot {
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub index: usize,
    /// The relative distance of both, where there is one.
    pub rel_l2: f64,
}

/// Compares what a target shows with the golden side, and keeps it.
///
/// Nothing of the result depends on the order in which writers hand records over.
pub struct ComparingSink {
    golden: GoldenSlots,
    store: TargetStore,
    options: WatchOptions,
    measured: MeasuredPairs,
    operators: Mutex<Vec<StreamedOperator>>,
    is_stopped: Mutex<Option<Arc<AtomicBool>>>,
    beyond: Mutex<Option<FirstBeyond>>,
}

/// The first operator of a run with an output beyond the limits, in order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstBeyond {
    /// Which execution of the model.
    pub step: u64,
    /// When it ran, in microseconds since 1970-01-01 UTC.
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

    /// Takes the flag that stops the run.
    pub fn set_stop_flag(&self, flag: Arc<AtomicBool>) {
        *lock(&self.is_stopped) = Some(flag);
    }

    /// The first operator with an output beyond the limits, if the run was to stop there. It may
    /// have gone on for a while.
    pub fn first_beyond(&self) -> Option<FirstBeyond> {
        *lock(&self.beyond)
    }

    /// The pairs that were measured.
    pub fn measured(&self) -> &MeasuredPairs {
        &self.measured
    }

    /// Operators of which something is not the same, in order of execution.
    pub fn take_operators(&self) -> Vec<StreamedOperator> {
        let mut operators = std::mem::take(&mut *lock(&self.operators));
        operators.sort_by_key(|one| (one.step, one.timestamp_us));
        operators
    }

    /// Compares the tensors of a record, and holds them if that is asked for.
    fn compare(&self, record: &Record) -> Result<Vec<HeldElements>, SinkError> {
        let run = self.golden.find(record);
        // Slots of one operator often lie in one file of a golden dump, which stays open for them.
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
            // A tensor that cannot be compared here may have a partner of another name.
            match (golden, &found) {
                (Some(golden), Some(found)) => {
                    if !found.is_identical {
                        let rel_l2 = found.difference.rel_l2;
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
            // Only now, as a tensor that equals its partner takes no memory of its own.
            if let TargetStore::Held(held) = &self.store {
                elements.push(self.hold(held, tensor, golden.zip(found.as_ref()))?);
            }
        }
        if self.options.notes_operators && !(noted.slots.is_empty() && noted.is_whole) {
            lock(&self.operators).push(noted);
        }
        Ok(elements)
    }

    /// Tells the sink of a dump on disk, if there is one.
    fn forward(
        &self,
        tell: impl FnOnce(&dyn Sink) -> Result<WrittenFiles, SinkError>,
    ) -> Result<WrittenFiles, SinkError> {
        match &self.store {
            TargetStore::Dump(sink) => tell(&**sink),
            TargetStore::Held(_) | TargetStore::Nothing => Ok(WrittenFiles::default()),
        }
    }

    /// Holds a tensor: what is the same as its golden partner shares that one's elements.
    fn hold(
        &self,
        held: &HeldDump,
        tensor: &Tensor,
        golden: Option<(&ExecutionSlot, &StreamedDifference)>,
    ) -> Result<HeldElements, SinkError> {
        // A golden dump on disk holds nothing that could be shared.
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

    /// Stops the run behind an output that is beyond the limits, if that is asked for.
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
        // An input that differs was an output before, or comes from outside and shows in one.
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
            // Two writers may come out of order, and the earlier operator counts.
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

    /// The comparison counts what is not finite; a dump that stays tells of it by itself.
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

/// Values behind these locks stay whole whatever panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
