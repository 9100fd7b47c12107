//! Policies for a sink that fails or falls behind.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SinkError;
use crate::counters::{DropReason, add};
use crate::queue::{Job, Work};
use crate::session::Shared;

/// Response to a failure of the sink: a full disk, a directory that is gone, a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The first failure ends capturing. What waits to be written and what is selected later is
    /// dropped, and the model runs to its end undisturbed.
    #[default]
    StopCapture,
    /// The record that failed is lost; the others go on.
    Drop,
    /// The first failure ends capturing, and the model stops before its next operator.
    StopRun,
}

/// Response to records that are produced faster than the sink takes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBehind {
    /// The model waits until there is room in the queue.
    #[default]
    Wait,
    /// The record that finds no room is dropped; the model never waits for the sink.
    Drop,
}

/// Whether capturing was ended by a failure.
pub(crate) struct Ending {
    on_failure: FailurePolicy,
    is_capture_ended: AtomicBool,
    is_run_ended: AtomicBool,
}

impl Ending {
    pub(crate) fn new(on_failure: FailurePolicy) -> Ending {
        Ending {
            on_failure,
            is_capture_ended: AtomicBool::new(false),
            is_run_ended: AtomicBool::new(false),
        }
    }

    /// Whether a failure has ended capturing.
    pub(crate) fn is_capture_ended(&self) -> bool {
        self.is_capture_ended.load(Ordering::Relaxed)
    }

    /// Whether the model is to stop because of it.
    pub(crate) fn is_run_ended(&self) -> bool {
        self.is_run_ended.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Remembers the first failure of the sink and does what the policy says about it.
    pub(crate) fn fail(&self, error: SinkError) {
        let mut first = self
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        drop(first);
        match self.ending.on_failure {
            FailurePolicy::Drop => return,
            FailurePolicy::StopCapture => {}
            FailurePolicy::StopRun => self.ending.is_run_ended.store(true, Ordering::Relaxed),
        }
        self.ending.is_capture_ended.store(true, Ordering::Relaxed);
        for job in self.queue.abandon() {
            self.count_lost(is_judged(&job), job.n_slots(), DropReason::Stopped);
        }
    }

    /// Queues a record; one that is not taken is counted.
    pub(crate) fn queue_or_drop(&self, job: Job) {
        let (is_judged, n_slots) = (is_judged(&job), job.n_slots());
        if let Err(reason) = self.queue.push(job) {
            self.count_lost(is_judged, n_slots, reason);
        }
    }

    fn count_lost(&self, is_judged: bool, n_slots: u64, reason: DropReason) {
        if is_judged {
            self.counters.drop(reason, n_slots);
        } else {
            add(&self.counters.n_operators_skipped, 1);
        }
    }
}

/// Whether the tensors of a record are counted as selected. Those of an operator that may have
/// overflowed are not, until a writer has looked.
fn is_judged(job: &Job) -> bool {
    !matches!(job.work, Work::WriteOverflow)
}
