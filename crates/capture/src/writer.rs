//! The threads between queue and sink.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_overflow::{OperatorOverflow, OverflowDetector};
use opscope_store::record::Record;

use crate::counters::{DropReason, LiveCounters, add};
use crate::policy::FailureResponse;
use crate::queue::{BatchSize, Queue, RecordWork, WriteJob};
use crate::record_order::RecordOrder;
use crate::ring::{Ring, TriggerCause, TriggerKind};
use crate::step_end::EndedSteps;
use crate::{FirstOverflow, Sink, SinkError, WrittenFiles, non_finite};

/// The way from the queue to the sink, which the writer threads work at. The engine's own thread
/// writes through it too when an operator has failed.
pub(crate) struct RecordWriter {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) detector: Arc<dyn OverflowDetector>,
    pub(crate) queue: Queue,
    pub(crate) counters: Arc<LiveCounters>,
    pub(crate) failures: FailureResponse,
    pub(crate) ring: Option<Arc<Ring>>,
    pub(crate) ended_steps: Arc<EndedSteps>,
    pub(crate) first_overflow: Mutex<Option<(RecordOrder, FirstOverflow)>>,
}

impl RecordWriter {
    /// Writes records until the queue is closed and empty.
    pub(crate) fn run(&self) {
        let preparer = self.sink.batch_preparer();
        let batch = preparer.map_or(BatchSize::ONE, |preparer| BatchSize {
            n_max: preparer.batch_size().max(1),
            n_awaited: preparer.n_awaited().max(1),
        });
        loop {
            let mut jobs = self.queue.pop(batch);
            if jobs.is_empty() {
                return;
            }
            // Read before `complete`, which may change them: the amount released must equal the
            // amount reserved.
            let costs: Vec<u64> = jobs.iter().map(WriteJob::cost).collect();
            for job in &mut jobs {
                let n_missing = job.complete();
                self.counters.count_dropped(DropReason::NotShown, n_missing);
            }
            if let Some(preparer) = preparer {
                let records: Vec<&Record> = jobs.iter().map(|job| &job.record).collect();
                // If it panics, `write` computes the missing results and panics likewise.
                let _ = catch_unwind(AssertUnwindSafe(|| preparer.prepare_batch(&records)));
            }
            for (job, bytes) in jobs.into_iter().zip(costs) {
                self.write(&job);
                // The budget counts memory, which must be freed before its space is released.
                drop(job);
                self.queue.release(bytes);
                if let Some(ring) = &self.ring {
                    ring.sweep_if_due();
                }
                self.end_steps();
            }
        }
    }

    /// Notifies the sink of the steps that have ended.
    pub(crate) fn end_steps(&self) {
        for (model, step) in self.ended_steps.take() {
            self.note(guarded(|| self.sink.end_step(&model, step)));
        }
    }

    /// Does the work of one job and counts what became of it.
    pub(crate) fn write(&self, job: &WriteJob) {
        let record = &job.record;
        let result = guarded(|| self.hand_over(job));
        let counters = &self.counters;
        let n_slots = record.n_slots();
        if let Ok(None) = result {
            return;
        }
        // These are selected by what they turned out to be.
        if let RecordWork::WriteOverflow | RecordWork::WriteFailure(_) = job.work {
            add(&counters.n_selected, n_slots);
            add(&counters.n_bytes_selected, record.n_bytes());
        }
        match result {
            Ok(None) => {}
            Ok(Some(written)) => {
                let is_written = written.n_refused < n_slots || n_slots == 0;
                if is_written && !matches!(job.work, RecordWork::WriteBeside) {
                    add(&counters.n_operators_written, 1);
                }
                // A sink from outside may count wrongly, and the next subtraction must not go below
                // 0.
                let n_refused = written.n_refused.min(n_slots);
                add(&counters.n_refused, n_refused);
                add(&counters.n_written, n_slots - n_refused);
                let whole = written.whole;
                add(&counters.n_whole, whole.n_inputs + whole.n_outputs);
                counters.add_files(written);
            }
            Err(error) => {
                add(&counters.n_failed, n_slots);
                self.fail(error);
            }
        }
    }

    /// Passes the record to the sink, or returns `None` if there is no reason to.
    fn hand_over(&self, job: &WriteJob) -> Result<Option<WrittenFiles>, SinkError> {
        let record = &job.record;
        let written = match &job.work {
            RecordWork::Write | RecordWork::WriteBeside => {
                if self.sink.wants_non_finite() {
                    note_non_finite(job);
                }
                self.look_for_overflow(job);
                self.sink.write(record)?
            }
            RecordWork::WriteFailure(failure) => {
                note_non_finite(job);
                self.sink.write_failure(record, failure)?
            }
            RecordWork::WriteOverflow => {
                let Some(overflow) = self.detector.detect(record) else {
                    return Ok(None);
                };
                self.note_overflow(job.order, record, &overflow);
                fire(job, || TriggerCause::Overflow(overflow.status));
                note_non_finite(job);
                self.sink.write_overflow(record, &overflow)?
            }
        };
        Ok(Some(written))
    }

    /// Counts an operator whose arithmetic overflowed, and remembers the earliest.
    pub(crate) fn note_overflow(
        &self,
        order: RecordOrder,
        record: &Record,
        overflow: &OperatorOverflow,
    ) {
        add(&self.counters.n_operators_overflowed, 1);
        let mut first = self
            .first_overflow
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Several writers take records, so the first to come here need not be the first that ran.
        if first.as_ref().is_none_or(|(earlier, _)| order < *earlier) {
            let first_overflow = FirstOverflow {
                step: record.step,
                task_id: record.operator.task_id,
                op_type: record.operator.op_type.clone(),
                op_name: record.operator.op_name.clone(),
                status: overflow.status,
            };
            *first = Some((order, first_overflow));
        }
    }

    /// Searches for an overflow that only makes the ring keep its steps and is not a reason to
    /// write.
    fn look_for_overflow(&self, job: &WriteJob) {
        let is_operator = matches!(job.work, RecordWork::Write);
        if is_operator
            && let Some(hold) = &job.ticket.hold
            && hold.wants(TriggerKind::Overflow)
            && let Some(overflow) = self.detector.detect(&job.record)
        {
            fire(job, || TriggerCause::Overflow(overflow.status));
        }
    }

    /// Counts the files that a sink wrote in addition to records, or remembers the error.
    pub(crate) fn note(&self, result: Result<WrittenFiles, SinkError>) {
        match result {
            Ok(written) => self.counters.add_files(written),
            Err(error) => self.fail(error),
        }
    }

    /// Applies the policy to a failure of the sink.
    fn fail(&self, error: SinkError) {
        if self.failures.note(error) {
            for job in self.queue.abandon() {
                self.count_lost(is_judged(&job), job.n_slots(), DropReason::Stopped);
            }
        }
    }

    /// Queues a record; one that is not taken is counted.
    pub(crate) fn queue_or_drop(&self, job: WriteJob) {
        let (is_judged, n_slots) = (is_judged(&job), job.n_slots());
        if let Err(reason) = self.queue.push(job) {
            self.count_lost(is_judged, n_slots, reason);
        }
    }

    fn count_lost(&self, is_judged: bool, n_slots: u64, reason: DropReason) {
        if is_judged {
            self.counters.count_dropped(reason, n_slots);
        } else {
            add(&self.counters.n_operators_skipped, 1);
        }
    }
}

/// Whether the tensors of a record are counted as selected. Those of an operator that may have
/// overflowed are not, until a writer has looked.
fn is_judged(job: &WriteJob) -> bool {
    !matches!(job.work, RecordWork::WriteOverflow)
}

/// Calls the sink. One that panics must not take the host's thread, or other records, with it.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, SinkError>) -> Result<T, SinkError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(SinkError::Panicked(panic_text(&*panic))))
}

/// Notes what a record has that is not finite, and keeps the last steps if that may be a result.
fn note_non_finite(job: &WriteJob) {
    let record = &job.record;
    // Values that a writer computed or that belong to no operator came from outside.
    let is_execution = matches!(job.work, RecordWork::Write | RecordWork::WriteOverflow);
    let local = non_finite::judge(record, !is_execution);
    job.ticket.notes.add(job.order, record, local);
    if !local.is_suspicious() {
        return;
    }
    let found = record.slots().find_map(|(side, index, tensor)| {
        let counts = tensor.non_finite();
        counts.any().then_some((side, index, counts))
    });
    if let Some((side, index, counts)) = found {
        fire(job, || TriggerCause::NonFinite {
            side,
            index,
            counts,
        });
    }
}

/// Keeps the last steps because of a record, where steps may be removed again.
fn fire(job: &WriteJob, cause: impl FnOnce() -> TriggerCause) {
    if let Some(hold) = &job.ticket.hold {
        hold.fire(job.order, &job.record.operator, cause());
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
