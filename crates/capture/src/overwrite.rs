//! Finding who overwrites memory that is still in use.
//!
//! A watched operator's outputs are copied when it has run. After each suspect operator the memory
//! is compared with the copy. The comparison reads the engine's own memory through the engine's
//! reference, which stays valid while the value is watched, until the step ends. This takes one
//! copy of each watched value in addition to the queue.

mod difference;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_store::record::{Operator, Record};
use opscope_tensor::Tensor;

pub use self::difference::ByteDifference;

/// Maximum number of remembered changes; all are counted.
const N_OVERWRITES_MAX: usize = 1000;

/// A watched value that changed after its operator had run.
#[derive(Clone, Debug, PartialEq)]
pub struct OverwrittenValue {
    /// Execution of the model.
    pub step: u64,
    /// The operator after which the change was seen. Operators that the plan does not select are
    /// not looked after, so one of those that ran since the last look may have made it.
    pub seen_after: Arc<Operator>,
    /// The operator whose output changed.
    pub watched: Arc<Operator>,
    /// Which of its outputs.
    pub output: usize,
    /// The bytes of elements that changed, neighbours joined; the first ones if there are many.
    pub ranges: Vec<Range<u64>>,
    /// How many such ranges there are.
    pub n_ranges: u64,
    /// Bytes in all of them.
    pub n_bytes: u64,
    /// The first element that changed, counted through the tensor in memory order.
    pub first_element: u64,
    /// Its value before, as text; hexadecimal bytes where the type has no numbers.
    pub before: String,
    /// Its value now.
    pub after: String,
}

/// The changes that a session saw.
#[derive(Default)]
pub(crate) struct OverwriteLog {
    list: Vec<(u64, OverwrittenValue)>,
    n_total: u64,
}

/// The watched values of the current step.
#[derive(Default)]
pub(crate) struct Watcher {
    has_any: AtomicBool,
    values: Mutex<Vec<WatchedValue>>,
}

/// Contents of a watched operator's outputs now.
pub(crate) struct WatchedContents {
    pub(crate) watched: Arc<Operator>,
    pub(crate) outputs: Vec<(usize, Tensor)>,
}

struct WatchedValue {
    operator: Arc<Operator>,
    outputs: Vec<WatchedOutput>,
}

struct WatchedOutput {
    index: usize,
    /// The engine's memory.
    live: Tensor,
    /// The contents at the last comparison.
    copy: Tensor,
}

impl Watcher {
    /// Whether no watched operator has run in this step.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Relaxed)
    }

    /// Watches the outputs of `record` from now on; returns copies of them.
    pub(crate) fn watch(&self, record: &Record) -> Vec<(usize, Tensor)> {
        let outputs: Vec<WatchedOutput> = record
            .outputs
            .iter()
            .filter_map(|(index, live)| {
                Some(WatchedOutput {
                    index: *index,
                    live: live.clone(),
                    copy: copy(live)?,
                })
            })
            .collect();
        let copies = copies(&outputs);
        let mut values = self.values();
        // An operator in a loop runs again and writes where it wrote before: the latest execution
        // counts.
        values.retain(|value| value.operator.task_id != record.operator.task_id);
        values.push(WatchedValue {
            operator: record.operator.clone(),
            outputs,
        });
        self.has_any.store(true, Ordering::Relaxed);
        copies
    }

    /// Compares every watched value except the outputs of the operator of `record`, which has just
    /// run as number `order`. Values that changed since the last comparison go to `found`.
    pub(crate) fn look(
        &self,
        record: &Record,
        order: u64,
        found: &Mutex<OverwriteLog>,
    ) -> Vec<WatchedContents> {
        let mut looks = Vec::new();
        for value in self.values().iter_mut() {
            // An operator may write to its own outputs.
            if value.operator.task_id == record.operator.task_id {
                continue;
            }
            for output in &mut value.outputs {
                let Some(difference) = output.refresh() else {
                    continue;
                };
                let overwrite = OverwrittenValue {
                    step: record.step,
                    seen_after: record.operator.clone(),
                    watched: value.operator.clone(),
                    output: output.index,
                    ranges: difference.ranges,
                    n_ranges: difference.n_ranges,
                    n_bytes: difference.n_bytes,
                    first_element: difference.first_element,
                    before: difference.before,
                    after: difference.after,
                };
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.add(order, overwrite);
            }
            looks.push(WatchedContents {
                watched: value.operator.clone(),
                outputs: copies(&value.outputs),
            });
        }
        looks
    }

    fn values(&self) -> MutexGuard<'_, Vec<WatchedValue>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedOutput {
    /// Takes a new copy if the memory changed, and returns the change.
    fn refresh(&mut self) -> Option<ByteDifference> {
        // A comparison of memory, not of numbers: NaN equals itself here, and -0 differs from 0.
        if self.live.host_bytes() == self.copy.host_bytes() {
            return None;
        }
        let now = copy(&self.live)?;
        let difference =
            ByteDifference::between(self.copy.host_view().ok()?, now.host_view().ok()?)?;
        // The next operator is only accused of what changes from here on.
        self.copy = now;
        Some(difference)
    }
}

impl OverwriteLog {
    fn add(&mut self, order: u64, overwrite: OverwrittenValue) {
        self.n_total += 1;
        if self.list.len() < N_OVERWRITES_MAX {
            self.list.push((order, overwrite));
        }
    }

    /// The changes by order of execution, and how many there were.
    pub(crate) fn take(&mut self) -> (Vec<OverwrittenValue>, u64) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|(order, _)| *order);
        let list = list.into_iter().map(|(_, overwrite)| overwrite).collect();
        (list, self.n_total)
    }
}

fn copies(outputs: &[WatchedOutput]) -> Vec<(usize, Tensor)> {
    let copies = outputs.iter().map(|o| (o.index, o.copy.clone()));
    copies.collect()
}

/// A copy of the tensor. `None` if the size of the memory has changed.
fn copy(live: &Tensor) -> Option<Tensor> {
    let bytes = live.host_bytes().ok()?.to_vec();
    let copy = Tensor::from_vec(live.dtype(), live.shape().clone(), bytes).ok()?;
    Some(copy.with_layout(live.layout()))
}
