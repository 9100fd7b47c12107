//! Where records are taken in, on the engine's thread: within limits, stamped, and queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use opscope_store::record::Record;

use crate::budget::Budget;
use crate::counters::{DropReason, LiveCounters, add};
use crate::queue::{RecordWork, WriteJob};
use crate::record_order::RecordOrder;
use crate::running_step::StepTicket;
use crate::tensor_intake::TensorIntake;
use crate::writer::RecordWriter;

/// A time stamp on the last day of the year 9999, which ends the calendar. Time stamps that count
/// on from it are still times.
const TIMESTAMP_US_MAX: u64 = 253_402_214_399_999_999;

/// Takes records on their way from taps to writers.
pub(crate) struct RecordIntake {
    pub(crate) tensors: TensorIntake,
    pub(crate) budget: Budget,
    pub(crate) writer: Arc<RecordWriter>,
    /// The latest time stamp that was given out.
    last_timestamp_us: AtomicU64,
}

impl RecordIntake {
    pub(crate) fn new(
        tensors: TensorIntake,
        budget: Budget,
        writer: Arc<RecordWriter>,
    ) -> RecordIntake {
        RecordIntake {
            tensors,
            budget,
            writer,
            last_timestamp_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn counters(&self) -> &LiveCounters {
        &self.writer.counters
    }

    /// Whether tensors that turned out to be selected are taken, all of them.
    pub(crate) fn admit(&self, n_slots: u64, n_bytes: u64) -> Result<(), DropReason> {
        if self.writer.failures.is_capture_ended() {
            return Err(DropReason::Stopped);
        }
        // The budget is asked last: a tensor refused for another reason must not use it up.
        let is_taken = self.budget.take(n_slots, n_bytes);
        is_taken.then_some(()).ok_or(DropReason::Limit)
    }

    /// [`RecordIntake::push`], unless the record exceeds a limit.
    pub(crate) fn push_within_limit(
        &self,
        order: RecordOrder,
        record: Record,
        work: RecordWork,
        ticket: StepTicket,
    ) {
        match self.admit(record.n_slots(), record.n_bytes()) {
            Ok(()) => self.push(order, record, work, ticket),
            Err(reason) => self.counters().count_dropped(reason, record.n_slots()),
        }
    }

    /// Stamps a record that is selected, and queues it.
    pub(crate) fn push(
        &self,
        order: RecordOrder,
        mut record: Record,
        work: RecordWork,
        ticket: StepTicket,
    ) {
        record.timestamp_us = self.next_timestamp_us(record.n_slots());
        add(&self.counters().n_bytes_selected, record.n_bytes());
        for (_, tensor) in &mut record.outputs {
            // Parameters come this way only.
            *tensor = self.tensors.summarize(tensor.clone());
        }
        // A record that is larger than the queue would block the model until it is written; numbers
        // about it take no space.
        if self.writer.queue.is_beyond_budget(&record) {
            for (_, tensor) in record.inputs.iter_mut().chain(&mut record.outputs) {
                *tensor = self.tensors.summarize_at_once(tensor.clone());
            }
        }
        self.writer.queue_or_drop(WriteJob {
            order,
            record,
            work,
            floats: None,
            ticket,
        });
    }

    /// The time, but never the same twice in a session: two executions of an operator within one
    /// microsecond have different file names, and names sort in the order of execution. The
    /// microseconds after it belong to the record too, one for each of its tensors.
    pub(crate) fn next_timestamp_us(&self, n_slots: u64) -> u64 {
        let now = microseconds(SystemTime::now());
        // The clock may also be set back while a session runs.
        let first = |last: u64| now.max(last.saturating_add(1));
        match self
            .last_timestamp_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(first(last).saturating_add(n_slots.saturating_sub(1)))
            }) {
            Ok(last) | Err(last) => first(last),
        }
    }
}

/// Microseconds since 1970, from 0 to the end of the calendar.
fn microseconds(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).map_or(TIMESTAMP_US_MAX, |us| us.min(TIMESTAMP_US_MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_stamps_end_with_the_calendar() {
        let at = |seconds| microseconds(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(1_700_000_000), 1_700_000_000_000_000);
        // One more than the first has no 64 bits of microseconds.
        for seconds in [u64::MAX / 1_000_000, u64::MAX / 4, 300_000_000_000] {
            assert_eq!(at(seconds), TIMESTAMP_US_MAX);
        }
        assert_eq!(microseconds(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
