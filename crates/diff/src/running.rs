//! A golden side that runs together with its target.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opscope_analysis::compare::side::ExecutionSlot;
use opscope_capture::{Sink, SinkError, WrittenFiles};
use opscope_dump::held::{HeldDump, describe_slots};
use opscope_engine::LoadedModel;
use opscope_store::record::{ModelId, Record};

/// The slots of an execution, inputs first.
pub(crate) type ShownSlots = Arc<[ExecutionSlot]>;

/// Holds a golden run, and passes each of its executions to the waiting target.
///
/// The target waits for the golden side, never the reverse, so there is no deadlock: the end of a
/// step shows that a missing execution will not come.
pub struct RunningGolden {
    held: Arc<HeldDump>,
    /// The operators of the model. The target does not wait for other names.
    names: HashSet<String>,
    shown: Mutex<ShownExecutions>,
    change: Condvar,
}

#[derive(Default)]
struct ShownExecutions {
    /// By name and step; none if several executions have the name: they are matched later.
    runs: HashMap<(String, u64), Option<ShownSlots>>,
    ended_steps: HashSet<u64>,
    is_over: bool,
}

/// Ends the run when dropped, also on a panic.
pub struct RunEnd<'a>(&'a RunningGolden);

impl RunningGolden {
    /// Holds the tensors of `model` in `held`.
    pub fn new(held: Arc<HeldDump>, model: &dyn LoadedModel) -> RunningGolden {
        let operators = &model.description().operators;
        RunningGolden {
            held,
            names: operators
                .iter()
                .map(|operator| operator.op_name.clone())
                .collect(),
            shown: Mutex::default(),
            change: Condvar::new(),
        }
    }

    /// Returns a guard: once it is dropped, waiting ends.
    pub fn end(&self) -> RunEnd<'_> {
        RunEnd(self)
    }

    /// The execution with the name and the step of a record, once it has run; none if it does not
    /// run in that step, or several do.
    pub(crate) fn find(&self, record: &Record) -> Option<ShownSlots> {
        let name = &record.operator.op_name;
        let key = (name.clone(), record.step);
        let is_expected = self.names.contains(name);
        let mut shown = self.lock();
        loop {
            if let Some(found) = shown.runs.get(&key) {
                return found.clone();
            }
            let has_ended = shown.is_over || shown.ended_steps.contains(&record.step);
            // Branches not taken, and operators only the target has, have no partner.
            if has_ended || !is_expected {
                return None;
            }
            let next = self.change.wait(shown);
            shown = next.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn show(&self, record: &Record, slots: ShownSlots) {
        let key = (record.operator.op_name.clone(), record.step);
        let mut shown = self.lock();
        let known = shown.runs.entry(key);
        known
            .and_modify(|slots_of_name| *slots_of_name = None)
            .or_insert(Some(slots));
        drop(shown);
        self.change.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ShownExecutions> {
        // Each change is a single insertion, so a panic leaves no partial state.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.change.notify_all();
    }
}

impl Sink for RunningGolden {
    fn keeps_tensors(&self) -> bool {
        true
    }

    fn wants_non_finite(&self) -> bool {
        false
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let elements = self.held.hold_all(record)?;
        let tensors = describe_slots(record, elements);
        let slots = tensors.iter().cloned().map(ExecutionSlot::of_held);
        // This precedes the push of the record, as the target may be waiting for it.
        self.show(record, slots.collect());
        Ok(self.held.push(record, tensors))
    }

    fn end_step(&self, _model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.lock().ended_steps.insert(step);
        self.change.notify_all();
        Ok(WrittenFiles::default())
    }
}
