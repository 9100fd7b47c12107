//! One execution of one operator, as an engine shows it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::Tensor;

use crate::counters::add;
use crate::failure::FailureTrace;
use crate::overwrite::{Look, Watcher};
use crate::queue::{Job, Work};
use crate::session::Shared;
use crate::{Failure, FailureDetail, Kept, Purpose, Role, writer};

/// One execution of one selected operator, from before it runs until its outputs are there.
///
/// Dropped without [`Probe::submit`], because the operator failed, its tensors count as dropped.
pub struct Probe {
    shared: Arc<Shared>,
    kept: Arc<Kept>,
    watcher: Arc<Watcher>,
    order: u64,
    position_in_step: u64,
    /// `None` once handed over.
    open: Option<Open>,
}

/// What was shown so far.
struct Open {
    record: Record,
    /// Graph inputs with their index in [`Kept::graph_inputs`].
    graph_inputs: Vec<(usize, Tensor)>,
}

impl Probe {
    pub(crate) fn new(
        shared: Arc<Shared>,
        kept: Arc<Kept>,
        watcher: Arc<Watcher>,
        model: Arc<ModelId>,
        operator: Arc<Operator>,
        step: u64,
        (order, position_in_step): (u64, u64),
    ) -> Probe {
        let record = Record {
            model,
            operator,
            step,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        Probe {
            shared,
            kept,
            watcher,
            order,
            position_in_step,
            open: Some(Open {
                record,
                graph_inputs: Vec::new(),
            }),
        }
    }

    /// Whether inputs are to be shown; they must be shown before the operator may overwrite them.
    pub fn wants_inputs(&self) -> bool {
        !self.kept.inputs.is_empty() || !self.kept.graph_inputs.is_empty()
    }

    /// Whether outputs are to be shown when the operator went well.
    pub fn wants_outputs(&self) -> bool {
        // Only failures are told then; outputs that a failing operator has all the same are taken.
        let is_told = !matches!(self.shared.plan.purpose, Purpose::Failures(_));
        is_told && !self.kept.outputs.is_empty()
    }

    /// Shows the input at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn input(&mut self, index: usize, tensor: Tensor) {
        let Some(open) = &mut self.open else {
            return;
        };
        let graph_inputs = self.kept.graph_inputs.iter();
        if let Some(i) = graph_inputs.clone().position(|kept| kept.position == index) {
            push_once(&mut open.graph_inputs, i, tensor.clone());
        }
        if self.kept.inputs.contains(&index) {
            push_once(&mut open.record.inputs, index, tensor);
        }
    }

    /// Shows the output at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn output(&mut self, index: usize, tensor: Tensor) {
        if let Some(open) = &mut self.open
            && self.kept.outputs.contains(&index)
        {
            push_once(&mut open.record.outputs, index, tensor);
        }
    }

    /// Says that the operator failed; what was shown so far is all there is.
    ///
    /// Under [`Purpose::Failures`] the operator is written before this returns: the process may not
    /// live much longer. Otherwise its tensors count as dropped.
    pub fn fail(mut self, reason: &str) {
        let Purpose::Failures(detail) = self.shared.plan.purpose else {
            return;
        };
        let Some(Open { mut record, .. }) = self.open.take() else {
            return;
        };
        record.timestamp_us = now_us(&self.shared);
        let trace = (detail == FailureDetail::Full)
            .then(|| FailureTrace::capture(self.position_in_step, self.order));
        let work = Work::WriteFailure(Failure {
            detail,
            reason: reason.to_owned(),
            trace,
        });
        let order = (self.order, 0);
        writer::write(
            &self.shared,
            &Job {
                order,
                record,
                work,
            },
        );
    }

    /// Hands the record over. Waits while the queue is full; slots that were not shown count as
    /// dropped.
    pub fn submit(mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        match self.shared.plan.purpose {
            Purpose::Values => self.submit_values(open),
            Purpose::Overflow => {
                let mut record = open.record;
                record.timestamp_us = now_us(&self.shared);
                let order = (self.order, 0);
                // Whether it is selected is known only after a look at it; until then it counts as
                // neither selected nor dropped.
                self.shared.queue.push(Job {
                    order,
                    record,
                    work: Work::WriteOverflow,
                });
            }
            // It went well: nothing to tell.
            Purpose::Failures(_) => {}
            Purpose::Watch => self.submit_watched(open.record),
        }
    }

    fn submit_values(&self, open: Open) {
        let Open {
            record,
            mut graph_inputs,
        } = open;
        let n_shown = record.n_slots() + graph_inputs.len() as u64;
        self.count_not_shown(n_shown);
        graph_inputs.sort_by_key(|(i, _)| *i);
        for (nth, (i, tensor)) in graph_inputs.into_iter().enumerate() {
            let input = Record {
                model: record.model.clone(),
                operator: self.kept.graph_inputs[i].operator.clone(),
                step: record.step,
                timestamp_us: 0,
                inputs: Vec::new(),
                outputs: vec![(0, tensor)],
            };
            self.push(nth as u32, input, Work::WriteBeside);
        }
        if record.n_slots() > 0 {
            self.push(u32::MAX, record, Work::Write);
        }
    }

    /// Copies watched values and looks whether earlier ones changed.
    fn submit_watched(&self, mut record: Record) {
        self.count_not_shown(record.n_slots());
        let looks = self
            .watcher
            .look(&record, self.order, &self.shared.overwrites);
        if self.kept.role == Role::Watched {
            record.outputs = self.watcher.watch(&record);
            if record.n_slots() > 0 {
                self.push(0, record, Work::Write);
            }
            return;
        }
        if self.kept.role
            != (Role::Suspect {
                is_collective: false,
            })
        {
            return;
        }
        for (nth, look) in looks.into_iter().enumerate() {
            let record = look_record(&record, look);
            add(&self.shared.counters.n_offered, record.n_slots());
            add(&self.shared.counters.n_selected, record.n_slots());
            self.push(nth as u32, record, Work::WriteBeside);
        }
    }

    fn push(&self, nth: u32, mut record: Record, work: Work) {
        record.timestamp_us = now_us(&self.shared);
        let counters = &self.shared.counters;
        let n_slots = record.n_slots();
        add(&counters.n_bytes_selected, record.n_bytes());
        let order = (self.order, nth);
        if !self.shared.queue.push(Job {
            order,
            record,
            work,
        }) {
            add(&counters.n_dropped, n_slots);
        }
    }

    fn count_not_shown(&self, n_shown: u64) {
        let n_missing = self.kept.n_slots().saturating_sub(n_shown);
        add(&self.shared.counters.n_dropped, n_missing);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let is_counted = matches!(self.shared.plan.purpose, Purpose::Values | Purpose::Watch);
        if self.open.is_some() && is_counted {
            self.count_not_shown(0);
        }
    }
}

/// What a watched value holds after `suspect` has run.
fn look_record(suspect: &Record, look: Look) -> Record {
    let operator = Operator {
        task_id: suspect.operator.task_id,
        op_type: look.watched.op_type.clone(),
        op_name: format!("{}_To_{}", suspect.operator.op_name, look.watched.op_name),
        outputs: look.watched.outputs.clone(),
        ..Operator::default()
    };
    Record {
        model: suspect.model.clone(),
        operator: Arc::new(operator),
        step: suspect.step,
        timestamp_us: 0,
        inputs: Vec::new(),
        outputs: look.outputs,
    }
}

fn push_once(slots: &mut Vec<(usize, Tensor)>, index: usize, tensor: Tensor) {
    if slots.iter().all(|(shown, _)| *shown != index) {
        slots.push((index, tensor));
    }
}

/// The time, but never the same twice in a session: two executions of an operator within one
/// microsecond have different file names, and names sort in the order of execution.
fn now_us(shared: &Shared) -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    let later = |last: u64| now.max(last.saturating_add(1));
    match shared
        .last_timestamp_us
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(later(last))
        }) {
        Ok(last) | Err(last) => later(last),
    }
}
