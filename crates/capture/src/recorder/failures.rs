//! Operators that fail.

use opscope_store::record::Record;

use super::PurposeRecorder;
use crate::counters::add;
use crate::failure::FailureTrace;
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::queue::{RecordWork, WriteJob};
use crate::{FailureDetail, OperatorFailure};

/// The recorder of [`Purpose::Failures`](crate::Purpose::Failures).
pub(crate) struct FailureRecorder {
    pub(crate) detail: FailureDetail,
}

impl PurposeRecorder for FailureRecorder {
    /// It succeeded: nothing to report.
    fn record(&self, _context: &OperatorContext, _shown: ShownTensors) {}

    /// Writes before it returns, without the queue: the process may not live much longer.
    fn record_failure(
        &self,
        context: &OperatorContext,
        record: &Record,
        reason: &str,
        notes: &str,
    ) {
        let n_slots = record.n_slots();
        if let Err(reason) = context.intake.admit(n_slots, record.n_bytes()) {
            add(&context.counters().n_selected, n_slots);
            return context.counters().count_dropped(reason, n_slots);
        }
        let place = context.place;
        let failure = OperatorFailure {
            detail: self.detail,
            reason: reason.to_owned(),
            notes: notes.to_owned(),
            trace: (self.detail == FailureDetail::Full)
                .then(|| FailureTrace::capture(place.position_in_step, place.order)),
        };
        // Past the queue, whose writers may not run again before the process ends.
        context.intake.writer.write(&WriteJob {
            order: context.order(0),
            record: Record {
                timestamp_us: context.intake.next_timestamp_us(n_slots),
                ..record.clone()
            },
            work: RecordWork::WriteFailure(failure),
            floats: None,
            ticket: context.step.ticket(),
        });
    }

    /// Only failures are reported; outputs that a failing operator produced are accepted.
    fn wants_outputs(&self) -> bool {
        false
    }
}
