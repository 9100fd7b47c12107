//! The handle that an engine shows a model's operators to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::Tensor;

use crate::counters::{DropReason, add};
use crate::overwrite::Watcher;
use crate::parameters::{Parameter, Parameters};
use crate::probe::push;
use crate::queue::Work;
use crate::session::Shared;
use crate::writer::guarded;
use crate::{Kept, Probe, Purpose, Role, Selected};

/// One model's way into a session.
pub struct Tap {
    pub(crate) shared: Arc<Shared>,
    pub(crate) model: Arc<ModelId>,
    selected: Selected,
    step: u64,
    is_step_selected: bool,
    /// Operators seen in this step.
    n_in_step: AtomicU64,
    /// Watched values of this step.
    watcher: Arc<Watcher>,
    /// Parameters of this step.
    parameters: Arc<Parameters>,
}

impl Tap {
    pub(crate) fn new(shared: Arc<Shared>, model: Arc<ModelId>, selected: Selected) -> Tap {
        let is_step_selected = shared.plan.steps.contains(0);
        Tap {
            shared,
            model,
            selected,
            step: 0,
            is_step_selected,
            n_in_step: AtomicU64::new(0),
            watcher: Arc::default(),
            parameters: Arc::default(),
        }
    }

    /// Says which execution of the model the following operators belong to.
    pub fn begin_step(&mut self, step: u64) {
        self.step = step;
        self.is_step_selected = self.shared.plan.steps.contains(step);
        self.n_in_step = AtomicU64::new(0);
        self.watcher.clear();
        drop(self.parameters.take());
        let is_ended = self.shared.ending.is_capture_ended();
        if self.is_step_selected && self.selected.is_model_matched && !is_ended {
            let written = guarded(|| self.shared.sink.begin_step(&self.model, step));
            self.shared.note(written);
        }
    }

    /// Says that the step went well. What its operators read and none of them produced is handed over
    /// now, if the plan asks for it.
    pub fn end_step(&self) {
        for (nth, parameter) in self.parameters.take().into_iter().enumerate() {
            self.hand_over(nth as u32, parameter);
        }
    }

    fn hand_over(&self, nth: u32, parameter: Parameter) {
        let counters = &self.shared.counters;
        add(&counters.n_offered, 1);
        add(&counters.n_selected, 1);
        let within_limit = |tensor: &Tensor| {
            let n_bytes = tensor.bytes().len() as u64;
            self.shared.budget.take(1, n_bytes)
        };
        let tensor = match parameter.value {
            Ok(tensor) if within_limit(&tensor) => tensor,
            Ok(_) => return counters.drop(DropReason::Limit, 1),
            Err(reason) => return counters.drop(reason, 1),
        };
        let record = Record {
            model: self.model.clone(),
            operator: parameter.operator,
            step: self.step,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs: vec![(0, tensor)],
        };
        let order = counters.n_operators_seen.load(Ordering::Relaxed);
        push(&self.shared, (order, nth), record, Work::WriteBeside);
    }

    /// Why an operator need not be looked at, if so.
    fn reason_to_skip(&self) -> Option<DropReason> {
        let shared = &self.shared;
        if shared.ending.is_capture_ended() {
            return Some(DropReason::Stopped);
        }
        // Under other purposes there are still overflows to find.
        let is_spent = shared.plan.purpose == Purpose::Values && shared.budget.is_spent();
        is_spent.then_some(DropReason::Limit)
    }

    /// Counts what an operator would have shown.
    fn skip(&self, kept: &Kept, reason: DropReason) {
        let counters = &self.shared.counters;
        let purpose = self.shared.plan.purpose;
        if let Purpose::Values | Purpose::Watch = purpose {
            counters.drop(reason, kept.n_slots());
        }
        if purpose != Purpose::Values {
            add(&counters.n_operators_skipped, 1);
        }
        for parameter in &kept.parameters {
            self.parameters.skip(&parameter.operator, reason);
        }
    }

    /// Whether the run should stop before the next operator.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Relaxed) || self.shared.ending.is_run_ended()
    }

    /// Counts an operator that is about to run; `Some` if the plan has any use for it.
    pub fn open(&self, operator: &Arc<Operator>) -> Option<Probe> {
        let present =
            |names: &[String]| names.iter().filter(|name| !name.is_empty()).count() as u64;
        let counters = &self.shared.counters;
        // The number of an operator in the order of execution.
        let order = counters.n_operators_seen.fetch_add(1, Ordering::Relaxed);
        let position_in_step = self.n_in_step.fetch_add(1, Ordering::Relaxed);
        add(
            &counters.n_offered,
            present(&operator.inputs) + present(&operator.outputs),
        );
        if !self.is_step_selected {
            return None;
        }
        let kept = self.selected.kept.get(&operator.task_id)?;
        // Nothing can be overwritten before the first watched operator has run.
        let is_suspect = matches!(kept.role, Role::Suspect { .. });
        if is_suspect && self.watcher.is_empty() {
            return None;
        }
        if let Purpose::Values | Purpose::Watch = self.shared.plan.purpose {
            add(&counters.n_offered, kept.graph_inputs.len() as u64);
            add(&counters.n_selected, kept.n_slots());
        }
        if let Some(reason) = self.reason_to_skip() {
            self.skip(kept, reason);
            return None;
        }
        Some(Probe::new(
            self.shared.clone(),
            kept.clone(),
            (self.watcher.clone(), self.parameters.clone()),
            self.model.clone(),
            operator.clone(),
            self.step,
            (order, position_in_step),
        ))
    }
}
