//! Holds, which keep a step from being decided on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_store::record::Operator;

use super::steps::Serial;
use super::{Ring, TriggerCause, TriggerKind};
use crate::record_order::RecordOrder;

/// Marks a step as unfinished: its tap is in it, an operator of it runs, or a record of it waits to
/// be written. Tap and operators share one hold. The ring decides on the step when the last hold is
/// dropped.
pub(crate) struct StepHold {
    ring: Arc<Ring>,
    model_idx: usize,
    serial: Serial,
    is_record: bool,
}

impl StepHold {
    /// The first hold of a step that was just begun, which counts already.
    pub(super) fn new(ring: Arc<Ring>, model_idx: usize, serial: Serial) -> StepHold {
        StepHold {
            ring,
            model_idx,
            serial,
            is_record: false,
        }
    }

    /// Another hold for a record on its way to the sink.
    pub(crate) fn for_record(&self) -> StepHold {
        let mut state = self.ring.lock();
        state.models[self.model_idx].hold_for_record(self.serial);
        StepHold {
            ring: self.ring.clone(),
            model_idx: self.model_idx,
            serial: self.serial,
            is_record: true,
        }
    }

    pub(crate) fn wants(&self, kind: TriggerKind) -> bool {
        self.ring.wants(kind)
    }

    /// Keeps the step and those before it that are in the ring. Of several triggers of one kind in
    /// a step, the first in execution order is reported.
    pub(crate) fn fire(&self, order: RecordOrder, operator: &Arc<Operator>, cause: TriggerCause) {
        let place = (self.model_idx, self.serial);
        self.ring.fire(place, order, operator, cause);
    }
}

impl Drop for StepHold {
    fn drop(&mut self) {
        if self.ring.home.is_elsewhere() {
            return;
        }
        let mut state = self.ring.lock();
        let is_free = state.models[self.model_idx].release(self.serial, self.is_record);
        drop(state);
        if is_free {
            // Only sets a flag: the last hold may be dropped by the engine, and removing files
            // takes time.
            self.ring.is_due.store(true, Ordering::Relaxed);
        }
        if self.is_record {
            self.ring.is_written.notify_all();
        }
    }
}
