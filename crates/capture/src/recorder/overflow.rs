//! Executions whose arithmetic overflowed.

use std::sync::Arc;

use opscope_overflow::OverflowDetector;

use super::{FindingLimit, PurposeRecorder};
use crate::counters::add;
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::queue::{RecordWork, WriteJob};

/// The recorder of [`Purpose::Overflow`](crate::Purpose::Overflow).
pub(crate) struct OverflowRecorder {
    pub(crate) detector: Arc<dyn OverflowDetector>,
    pub(crate) limit: FindingLimit,
}

impl PurposeRecorder for OverflowRecorder {
    fn record(&self, context: &OperatorContext, shown: ShownTensors) {
        let mut record = shown.record;
        let n_slots = record.n_slots();
        if n_slots == 0 {
            return;
        }
        let intake = &context.intake;
        // Only the first few are wanted, in the order of execution, which writers do not keep.
        if intake.budget.is_limited() || self.limit.is_limited() {
            let Some(overflow) = self.detector.detect(&record) else {
                return;
            };
            if !self.limit.has_room() {
                return;
            }
            if let Err(reason) = intake.admit(n_slots, record.n_bytes()) {
                // It is found all the same.
                (intake.writer).note_overflow(context.order(0), &record, &overflow);
                add(&context.counters().n_selected, n_slots);
                return context.counters().count_dropped(reason, n_slots);
            }
        }
        record.timestamp_us = intake.next_timestamp_us(n_slots);
        // Whether it is selected is known only after inspection; until then it counts as neither
        // selected nor dropped.
        intake.writer.queue_or_drop(WriteJob {
            order: context.order(0),
            record,
            work: RecordWork::WriteOverflow,
            floats: None,
            ticket: context.step.ticket(),
        });
    }
}
