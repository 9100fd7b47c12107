//! The handle that an engine shows tensors to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::Tensor;

use crate::counters::add;
use crate::session::Shared;

/// One model's way into a session.
pub struct Tap {
    shared: Arc<Shared>,
    model: Arc<ModelId>,
    by_task: Vec<bool>,
    step: u64,
    is_step_selected: bool,
}

/// One execution of one selected operator, from before it runs until its outputs are there.
///
/// Dropped without [`Probe::submit`], because the operator failed, its tensors count as dropped.
pub struct Probe {
    shared: Arc<Shared>,
    order: u64,
    n_slots_selected: u64,
    wants_inputs: bool,
    wants_outputs: bool,
    /// `None` once submitted.
    record: Option<Record>,
}

impl Tap {
    pub(crate) fn new(shared: Arc<Shared>, model: Arc<ModelId>, by_task: Vec<bool>) -> Tap {
        let is_step_selected = shared.plan.steps.contains(0);
        Tap {
            shared,
            model,
            by_task,
            step: 0,
            is_step_selected,
        }
    }

    /// Says which execution of the model the following operators belong to.
    pub fn begin_step(&mut self, step: u64) {
        self.step = step;
        self.is_step_selected = self.shared.plan.steps.contains(step);
    }

    /// Whether the run should stop before the next operator.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Relaxed)
    }

    /// Counts an operator that is about to run; `Some` if the plan selects any of its tensors.
    pub fn open(&self, operator: &Arc<Operator>) -> Option<Probe> {
        let present =
            |names: &[String]| names.iter().filter(|name| !name.is_empty()).count() as u64;
        let (n_inputs, n_outputs) = (present(&operator.inputs), present(&operator.outputs));
        let counters = &self.shared.counters;
        // The number of an operator in the order of execution.
        let order = counters.n_operators_seen.fetch_add(1, Ordering::Relaxed);
        add(&counters.n_offered, n_inputs + n_outputs);
        let is_selected = self
            .by_task
            .get(operator.task_id as usize)
            .copied()
            .unwrap_or(false);
        let sides = self.shared.plan.sides;
        let n_slots_selected =
            if sides.inputs() { n_inputs } else { 0 } + if sides.outputs() { n_outputs } else { 0 };
        if !is_selected || !self.is_step_selected || n_slots_selected == 0 {
            return None;
        }
        add(&counters.n_selected, n_slots_selected);
        Some(Probe {
            shared: self.shared.clone(),
            order,
            n_slots_selected,
            wants_inputs: sides.inputs(),
            wants_outputs: sides.outputs(),
            record: Some(Record {
                model: self.model.clone(),
                operator: operator.clone(),
                step: self.step,
                timestamp_us: 0,
                inputs: Vec::new(),
                outputs: Vec::new(),
            }),
        })
    }
}

impl Probe {
    /// Whether inputs are to be shown; they must be shown before the operator may overwrite them.
    pub fn wants_inputs(&self) -> bool {
        self.wants_inputs
    }

    /// Whether outputs are to be shown.
    pub fn wants_outputs(&self) -> bool {
        self.wants_outputs
    }

    /// Shows the input at `index`. Ignored unless inputs are wanted.
    pub fn input(&mut self, index: usize, tensor: Tensor) {
        if let (true, Some(record)) = (self.wants_inputs, &mut self.record) {
            record.inputs.push((index, tensor));
        }
    }

    /// Shows the output at `index`. Ignored unless outputs are wanted.
    pub fn output(&mut self, index: usize, tensor: Tensor) {
        if let (true, Some(record)) = (self.wants_outputs, &mut self.record) {
            record.outputs.push((index, tensor));
        }
    }

    /// Says that the operator failed; what was shown so far is all there is.
    pub fn fail(self, _reason: &str) {}

    /// Hands the record over. Waits while the queue is full; slots that were not shown count as
    /// dropped.
    pub fn submit(mut self) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        record.timestamp_us = now_us();
        let counters = &self.shared.counters;
        let n_slots = record.n_slots();
        add(
            &counters.n_dropped,
            self.n_slots_selected.saturating_sub(n_slots),
        );
        if n_slots == 0 {
            return;
        }
        add(&counters.n_bytes_selected, record.n_bytes());
        if let Err(record) = self.shared.queue.push(self.order, record) {
            add(&counters.n_dropped, record.n_slots());
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if self.record.is_some() {
            add(&self.shared.counters.n_dropped, self.n_slots_selected);
        }
    }
}

fn now_us() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}
