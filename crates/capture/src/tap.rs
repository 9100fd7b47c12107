//! The handle that an engine shows a model's operators to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::record::{ModelId, Operator, Record};

use crate::counters::add;
use crate::memos::Memos;
use crate::overwrite::Watcher;
use crate::parameters::Parameters;
use crate::probe::push;
use crate::queue::Work;
use crate::session::Shared;
use crate::{Probe, Purpose, Role, Selected};

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
    /// What is known of the model's tensors, over all steps.
    memos: Arc<Memos>,
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
            memos: Arc::default(),
        }
    }

    /// Says which execution of the model the following operators belong to.
    pub fn begin_step(&mut self, step: u64) {
        self.step = step;
        self.is_step_selected = self.shared.plan.steps.contains(step);
        self.n_in_step = AtomicU64::new(0);
        self.watcher.clear();
        drop(self.parameters.take());
        if self.is_step_selected && self.selected.is_model_matched {
            let written = self.shared.sink.begin_step(&self.model, step);
            self.shared.note(written);
        }
    }

    /// Says that the step went well. What its operators read and none of them produced is handed over
    /// now, if the plan asks for it.
    pub fn end_step(&self) {
        let counters = &self.shared.counters;
        for (nth, parameter) in self.parameters.take().into_iter().enumerate() {
            let record = Record {
                model: self.model.clone(),
                operator: parameter.operator,
                step: self.step,
                timestamp_us: 0,
                inputs: Vec::new(),
                outputs: vec![(0, parameter.tensor)],
            };
            add(&counters.n_offered, 1);
            add(&counters.n_selected, 1);
            let order = counters.n_operators_seen.load(Ordering::Relaxed);
            push(&self.shared, (order, nth as u32), record, Work::WriteBeside);
        }
    }

    /// Whether the run should stop before the next operator.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Relaxed)
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
        Some(Probe::new(
            self.shared.clone(),
            kept.clone(),
            (
                self.watcher.clone(),
                self.parameters.clone(),
                self.memos.clone(),
            ),
            self.model.clone(),
            operator.clone(),
            self.step,
            (order, position_in_step),
        ))
    }
}
