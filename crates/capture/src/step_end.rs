//! The end of a step: no operator of it runs any more, and all its records are written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::record::ModelId;

use crate::home::HomeProcess;

/// Steps that have ended and of which the sink has not heard yet.
#[derive(Default)]
pub(crate) struct EndedSteps {
    /// Whether there are any.
    is_due: AtomicBool,
    steps: Mutex<Vec<(Arc<ModelId>, u64)>>,
}

impl EndedSteps {
    /// Takes them.
    pub(crate) fn take(&self) -> Vec<(Arc<ModelId>, u64)> {
        // Asked for after every record, so that it must not take a lock.
        if !self.is_due.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *steps)
    }
}

/// Held by the tap that is in a step, by operators that run in it and by its records.
pub(crate) struct StepEnd {
    ended: Arc<EndedSteps>,
    model: Arc<ModelId>,
    step: u64,
    home: HomeProcess,
}

impl StepEnd {
    pub(crate) fn new(ended: &Arc<EndedSteps>, model: &Arc<ModelId>, step: u64) -> StepEnd {
        StepEnd {
            ended: ended.clone(),
            model: model.clone(),
            step,
            home: HomeProcess::here(),
        }
    }
}

impl Drop for StepEnd {
    /// Only a note: the last reference may be dropped by the engine, and ending a step takes time.
    fn drop(&mut self) {
        // A forked process has copies of its parent's objects; the step continues in the parent.
        if self.home.is_elsewhere() {
            return;
        }
        let mut steps = self
            .ended
            .steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        steps.push((self.model.clone(), self.step));
        // After the step is noted: who sees the flag finds it.
        drop(steps);
        self.ended.is_due.store(true, Ordering::Release);
    }
}
