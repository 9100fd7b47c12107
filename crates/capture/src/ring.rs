//! The last steps: a flight recorder.
//!
//! Every selected step is written as it runs. When it is older than the last
//! [`RingOptions::n_steps`], its files are removed, unless a trigger has fired: then the steps up
//! to that point stay permanently. Steps are on disk, not in memory, so that they survive a killed
//! process.
//!
//! Whether a step stays depends on its records, never on the timing of the writers: a step is
//! removed only when all records of the [`RingOptions::n_steps`] steps that begin with it are
//! written and inspected, and another step has begun. To bound disk use, a model waits before a new
//! step while [`N_STEPS_BEHIND_MAX`] earlier ones are still being written.

mod hold;
mod options;
mod report;
mod steps;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opscope_store::record::{ModelId, Operator};

use self::report::RingLog;
use self::steps::{RingModel, Serial};
use crate::counters::{LiveCounters, add};
use crate::home::HomeProcess;
use crate::record_order::RecordOrder;
use crate::{Sink, SinkError, StepRemoval, WhenBehind};

pub(crate) use self::hold::StepHold;
pub use self::options::{RingOptions, TriggerKind, Triggers};
pub use self::report::{RingReport, TriggerCause, TriggerEvent};
pub use self::steps::KeptSteps;

/// Maximum number of steps before the current one that wait for writers when it begins. The dump of
/// a model has at most this many step directories more than the ring, not counting those kept
/// permanently.
pub const N_STEPS_BEHIND_MAX: usize = 4;

/// The steps of a session's models that may still be removed.
pub(crate) struct Ring {
    home: HomeProcess,
    options: RingOptions,
    when_behind: WhenBehind,
    sink: Arc<dyn Sink>,
    counters: Arc<LiveCounters>,
    /// Set by a signal handler to keep the existing steps.
    flag: Arc<AtomicBool>,
    state: Mutex<RingState>,
    /// Notified when a writer has finished a step.
    is_written: Condvar,
    /// Whether a step may have become removable.
    is_due: AtomicBool,
    /// Held while steps are removed.
    removing: Mutex<()>,
}

#[derive(Default)]
struct RingState {
    models: Vec<RingModel>,
    n_begun: Serial,
    log: RingLog,
}

/// Steps of a model that leave the ring, and whether they are kept.
type Leaving = (Arc<ModelId>, Vec<(u64, bool)>);

impl Ring {
    /// A ring for a sink that can remove steps.
    pub(crate) fn new(
        options: RingOptions,
        when_behind: WhenBehind,
        sink: Arc<dyn Sink>,
        counters: Arc<LiveCounters>,
    ) -> Arc<Ring> {
        Arc::new(Ring {
            options,
            when_behind,
            sink,
            counters,
            home: HomeProcess::here(),
            flag: Arc::default(),
            state: Mutex::default(),
            is_written: Condvar::new(),
            is_due: AtomicBool::new(false),
            removing: Mutex::default(),
        })
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }

    pub(crate) fn wants(&self, kind: TriggerKind) -> bool {
        self.options.triggers.contains(kind)
    }

    /// Begins a step. Waits while too many earlier ones are being written, if the session ever
    /// waits.
    pub(crate) fn begin(self: &Arc<Ring>, model: &Arc<ModelId>, step: u64) -> StepHold {
        self.look_at_flag();
        let mut state = self.lock();
        let model_idx = state.model_idx(model);
        // With `WhenBehind::Drop` the model never waits, although more steps may be on disk for a
        // while.
        while self.when_behind == WhenBehind::Wait
            && (state.models[model_idx].n_behind() > N_STEPS_BEHIND_MAX)
        {
            state = self
                .is_written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let next = state.n_begun;
        state.n_begun += 1;
        let serial = state.models[model_idx].begin(next, step);
        drop(state);
        let hold = StepHold::new(self.clone(), model_idx, serial);
        // Before the step writes anything, so that the number of directories keeps its bound.
        self.sweep(SweepMode::Wait);
        hold
    }

    /// Keeps the current steps if the flag was set since the last check.
    pub(crate) fn look_at_flag(&self) {
        if !self.flag.swap(false, Ordering::Relaxed) || !self.wants(TriggerKind::Signal) {
            return;
        }
        let mut state = self.lock();
        let n = self.options.n_steps.get();
        let RingState { models, log, .. } = &mut *state;
        for model in models {
            let serial = model.newest();
            let Some(step) = serial.and_then(|serial| model.keep(serial, n)) else {
                continue;
            };
            let triggered = TriggerEvent {
                cause: TriggerCause::Signal,
                model: model.id.clone(),
                step,
                operator: None,
            };
            log.trigger(serial.unwrap_or_default(), RecordOrder::LAST, triggered);
        }
    }

    /// Keeps the steps up to `step` of `model`. If it is not in the ring, the newest one counts
    /// instead.
    pub(crate) fn fail(&self, model: &Arc<ModelId>, step: u64, reason: &str) {
        if !self.wants(TriggerKind::Failure) {
            return;
        }
        let mut state = self.lock();
        let model_idx = state.model_idx(model);
        let RingState {
            models,
            log,
            n_begun,
        } = &mut *state;
        let model = &mut models[model_idx];
        // A step that the plan excludes can fail too; then the steps before it are the interesting
        // ones.
        let serial = model.serial_of(step).or(model.newest());
        if let Some(serial) = serial {
            model.keep(serial, self.options.n_steps.get());
        }
        let triggered = TriggerEvent {
            cause: TriggerCause::Failure(reason.to_owned()),
            model: model.id.clone(),
            step,
            operator: None,
        };
        log.trigger(serial.unwrap_or(*n_begun), RecordOrder::LAST, triggered);
    }

    /// Keeps the steps up to that of a hold.
    fn fire(
        &self,
        (model_idx, serial): (usize, Serial),
        order: RecordOrder,
        operator: &Arc<Operator>,
        cause: TriggerCause,
    ) {
        if !self.wants(cause.kind()) {
            return;
        }
        let mut state = self.lock();
        let RingState { models, log, .. } = &mut *state;
        let model = &mut models[model_idx];
        let Some(step) = model.keep(serial, self.options.n_steps.get()) else {
            return;
        };
        let triggered = TriggerEvent {
            cause,
            model: model.id.clone(),
            step,
            operator: Some(operator.clone()),
        };
        log.trigger(serial, order, triggered);
    }

    /// Removes the steps that are too old, if any may have become so.
    pub(crate) fn sweep_if_due(&self) {
        if self.is_due.swap(false, Ordering::Relaxed) {
            self.sweep(SweepMode::Try);
        }
    }

    fn sweep(&self, ask: SweepMode) {
        let _removing = match ask {
            SweepMode::Wait => self.removing.lock().unwrap_or_else(PoisonError::into_inner),
            // A concurrent removal may have missed the step; the next step tries again.
            SweepMode::Try => match self.removing.try_lock() {
                Ok(guard) => guard,
                Err(_) => return,
            },
        };
        let mut leaving = Vec::new();
        for model in &mut self.lock().models {
            let left = model.leave(self.options.n_steps.get());
            leaving.push((model.id.clone(), left));
        }
        self.let_go(&leaving);
    }

    /// Decides about the remaining steps, once every record is written, and reports.
    pub(crate) fn finish(&self) -> RingReport {
        self.look_at_flag();
        self.sweep(SweepMode::Wait);
        let keeps_rest = !self.options.keeps_only_triggered;
        let mut leaving = Vec::new();
        for model in &mut self.lock().models {
            let rest = model.end(self.options.n_steps.get(), keeps_rest);
            leaving.push((model.id.clone(), rest));
        }
        self.let_go(&leaving);
        let mut state = self.lock();
        let kept = state.models.iter_mut().filter_map(RingModel::take_kept);
        let kept = kept.collect();
        std::mem::take(&mut state.log).into_report(kept)
    }

    /// Notifies the sink, without any lock that writers need.
    fn let_go(&self, leaving: &[Leaving]) {
        let Some(remover) = self.sink.step_remover() else {
            return;
        };
        let mut removed = StepRemoval::default();
        let mut n_steps = 0;
        let mut first_error = None;
        let steps = leaving
            .iter()
            .flat_map(|(model, steps)| steps.iter().map(move |step| (model, *step)));
        for (model, (step, is_kept)) in steps {
            if is_kept {
                remover.keep_step(model, step);
                continue;
            }
            // A panic of the sink must not end the host's thread.
            let result = catch_unwind(AssertUnwindSafe(|| remover.remove_step(model, step)));
            let text = "it panicked while a step was removed";
            let result = result.unwrap_or_else(|_| Err(SinkError::Panicked(text.to_owned())));
            n_steps += 1;
            match result {
                Ok(more) => removed = removed + more,
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        add(&self.counters.n_files_removed, removed.n_files);
        add(&self.counters.n_bytes_removed, removed.n_bytes);
        let log = &mut self.lock().log;
        log.n_steps_removed += n_steps;
        log.n_files_left += removed.n_left;
        if let Some(error) = first_error {
            log.first_error.get_or_insert(error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RingState> {
        // No change of the state can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RingState {
    fn model_idx(&mut self, id: &Arc<ModelId>) -> usize {
        let known = self.models.iter().position(|model| model.id == *id);
        known.unwrap_or_else(|| {
            self.models.push(RingModel::new(id.clone()));
            self.models.len() - 1
        })
    }
}

/// Whether to wait for another thread that removes steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SweepMode {
    Wait,
    Try,
}
