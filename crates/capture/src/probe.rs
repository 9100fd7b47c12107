//! One execution of one operator, as an engine shows it.

mod borrowed;
mod floats;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use opscope_store::record::{ModelId, Operator, Record, Side};
use opscope_tensor::{DType, Observed, Tensor};

use crate::counters::{DropReason, add};
use crate::failure::FailureTrace;
use crate::memos::Memos;
use crate::non_finite::StepNotes;
use crate::overwrite::{Look, Watcher};
use crate::parameters::Parameters;
use crate::quantised::{Execution, Parts};
use crate::queue::{Job, Order, Work};
use crate::ring::{Hold, TriggerCause};
use crate::session::Shared;
use crate::{
    Failure, FailureDetail, FloatView, Kept, Purpose, Role, TensorSummarizer, overflow, writer,
};

pub use self::borrowed::BorrowError;
pub(crate) use self::borrowed::{take, take_whole};

/// Largest tensor, in bytes, that is looked at on the engine's thread. What is larger costs more time there
/// than a writer beside the engine costs by fetching it again.
const REDUCED_AT_ONCE_MAX: usize = 64 << 10;

/// One execution of one selected operator, from before it runs until its outputs are there.
///
/// Dropped without [`Probe::submit`], because the operator failed, its tensors count as dropped.
pub struct Probe {
    shared: Arc<Shared>,
    kept: Arc<Kept>,
    watcher: Arc<Watcher>,
    parameters: Arc<Parameters>,
    memos: Arc<Memos>,
    order: u64,
    position_in_step: u64,
    /// Which of [`Kept::views`] this execution shows.
    views: Vec<usize>,
    /// `None` once handed over.
    open: Option<Open>,
    hold: Option<Hold>,
    notes: Arc<StepNotes>,
}

/// Tensors shown so far.
struct Open {
    record: Record,
    /// Graph inputs with their index in [`Kept::graph_inputs`].
    graph_inputs: Vec<(usize, Tensor)>,
    /// Likewise of [`Kept::parameters`].
    parameters: Vec<(usize, Tensor)>,
    /// Tensors that [`Probe::views`] take, elements and all.
    parts: Parts,
}

impl Probe {
    pub(crate) fn new(
        shared: Arc<Shared>,
        kept: Arc<Kept>,
        (watcher, parameters, memos, notes): (
            Arc<Watcher>,
            Arc<Parameters>,
            Arc<Memos>,
            Arc<StepNotes>,
        ),
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
            parameters,
            memos,
            order,
            position_in_step,
            views: Vec::new(),
            open: Some(Open {
                record,
                graph_inputs: Vec::new(),
                parameters: Vec::new(),
                parts: Parts::default(),
            }),
            hold: None,
            notes,
        }
    }

    /// The same; the step is not decided on before the operator is done with.
    pub(crate) fn with_hold(self, hold: Option<Hold>) -> Probe {
        let mut probe = self;
        probe.hold = hold;
        probe
    }

    /// Whether inputs are to be shown; they must be shown before the operator may overwrite them.
    pub fn wants_inputs(&self) -> bool {
        let kept = &self.kept;
        let is_none =
            kept.inputs.is_empty() && kept.graph_inputs.is_empty() && kept.parameters.is_empty();
        !is_none || self.views().any(|view| view.needs_side(Side::Input))
    }

    /// Whether outputs are to be shown when the operator went well.
    pub fn wants_outputs(&self) -> bool {
        // Only failures are told then; outputs that a failing operator has all the same are taken.
        let is_told = !matches!(self.shared.plan.purpose, Purpose::Failures(_));
        let mut views = self.views();
        is_told
            && (!self.kept.outputs.is_empty() || views.any(|view| view.needs_side(Side::Output)))
    }

    /// Shows the input at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn input(&mut self, index: usize, tensor: Tensor) {
        let tensor = self.memos.recall(tensor);
        self.show_part((Side::Input, index), &tensor);
        let Some(open) = &mut self.open else {
            return;
        };
        let tensor = reduced(&self.shared, tensor);
        let graph_inputs = self.kept.graph_inputs.iter();
        if let Some(i) = graph_inputs.clone().position(|kept| kept.position == index) {
            push_once(&mut open.graph_inputs, i, tensor.clone());
        }
        let parameters = self.kept.parameters.iter();
        if let Some(i) = parameters.clone().position(|kept| kept.position == index) {
            push_once(&mut open.parameters, i, tensor.clone());
        }
        if self.kept.inputs.contains(&index) {
            push_once(&mut open.record.inputs, index, tensor);
        }
    }

    /// Shows the output at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn output(&mut self, index: usize, tensor: Tensor) {
        let place = (Side::Output, index);
        if !self.is_part(place) && !self.kept.outputs.contains(&index) {
            return;
        }
        let tensor = self.memos.recall(tensor);
        self.show_part(place, &tensor);
        if let Some(open) = &mut self.open
            && self.kept.outputs.contains(&index)
        {
            let tensor = reduced(&self.shared, tensor);
            push_once(&mut open.record.outputs, index, tensor);
        }
    }

    /// Says that the operator failed; what was shown so far is all there is.
    ///
    /// Under [`Purpose::Failures`] the operator is written before this returns: the process may not
    /// live much longer. Otherwise its tensors count as dropped.
    pub fn fail(self, reason: &str) {
        self.fail_with_notes(reason, "");
    }

    /// [`Probe::fail`] with further lines for the text about the failure.
    pub fn fail_with_notes(mut self, reason: &str, notes: &str) {
        if let (Some(hold), Some(open)) = (&self.hold, &self.open) {
            let cause = TriggerCause::Failure(reason.to_owned());
            hold.fire((self.order, 0), &open.record.operator, cause);
        }
        let Purpose::Failures(detail) = self.shared.plan.purpose else {
            return;
        };
        let Some(Open { mut record, .. }) = self.open.take() else {
            return;
        };
        let n_slots = record.n_slots();
        if let Err(reason) = self.admit(n_slots, record.n_bytes()) {
            add(&self.shared.counters.n_selected, n_slots);
            return self.shared.counters.drop(reason, n_slots);
        }
        record.timestamp_us = now_us(&self.shared, n_slots);
        let trace = (detail == FailureDetail::Full)
            .then(|| FailureTrace::capture(self.position_in_step, self.order));
        let work = Work::WriteFailure(Failure {
            detail,
            reason: reason.to_owned(),
            notes: notes.to_owned(),
            trace,
        });
        let order = (self.order, 0);
        writer::write(
            &self.shared,
            &Job {
                order,
                record,
                work,
                floats: None,
                hold: self.hold_for_record(),
                notes: self.notes.clone(),
            },
        );
    }

    /// Hands the record over. Waits while the queue is full, unless the session drops records then;
    /// slots that were not shown count as dropped.
    pub fn submit(mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        for (i, tensor) in std::mem::take(&mut open.parameters) {
            self.parameters
                .show(&self.kept.parameters[i].operator, tensor);
        }
        match self.shared.plan.purpose {
            Purpose::Values => self.submit_values(open),
            Purpose::Overflow => self.submit_overflow(open.record),
            Purpose::NonFinite => self.submit_non_finite(open.record),
            // It went well: nothing to tell.
            Purpose::Failures(_) => {}
            Purpose::Watch => self.submit_watched(open.record),
        }
    }

    fn submit_values(&self, open: Open) {
        let execution = Execution {
            model: open.record.model.clone(),
            operator: open.record.operator.clone(),
            step: open.record.step,
        };
        self.submit_shown(open.record, open.graph_inputs);
        self.submit_views(&open.parts, &execution);
    }

    fn submit_shown(&self, record: Record, mut graph_inputs: Vec<(usize, Tensor)>) {
        let n_shown = record.n_slots() + graph_inputs.len() as u64;
        self.count_missing(n_shown, DropReason::NotShown);
        let beside = graph_inputs.iter().map(|(_, tensor)| n_bytes(tensor));
        let n_bytes = record.n_bytes() + beside.sum::<u64>();
        if let Err(reason) = self.admit(n_shown, n_bytes) {
            return self.shared.counters.drop(reason, n_shown);
        }
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

    fn submit_overflow(&self, mut record: Record) {
        if record.n_slots() == 0 {
            return;
        }
        // Only the first few are wanted, in the order of execution, which writers do not keep.
        let is_limited = self.shared.budget.is_limited();
        if is_limited || self.shared.plan.n_overflows_max.is_some() {
            let Some(overflow) = overflow::detect(&record) else {
                return;
            };
            if !self.has_room_for_overflow() {
                return;
            }
            let n_slots = record.n_slots();
            if let Err(reason) = self.admit(n_slots, record.n_bytes()) {
                // It is found all the same.
                writer::note_overflow(&self.shared, (self.order, 0), &record, &overflow);
                add(&self.shared.counters.n_selected, n_slots);
                return self.shared.counters.drop(reason, n_slots);
            }
        }
        record.timestamp_us = now_us(&self.shared, record.n_slots());
        // Whether it is selected is known only after a look at it; until then it counts as neither
        // selected nor dropped.
        self.shared.queue_or_drop(Job {
            order: (self.order, 0),
            record,
            work: Work::WriteOverflow,
            floats: None,
            hold: self.hold_for_record(),
            notes: self.notes.clone(),
        });
    }

    fn submit_non_finite(&self, record: Record) {
        let is_checked = |tensor: &Tensor| {
            let dtype = tensor.dtype();
            matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
        };
        let mut outputs = record.outputs.iter().map(|(_, tensor)| tensor);
        let is_found = outputs.any(|tensor| is_checked(tensor) && tensor.non_finite().any());
        if !is_found {
            return;
        }
        add(&self.shared.counters.n_operators_overflowed, 1);
        if self.has_room_for_overflow() {
            add(&self.shared.counters.n_selected, record.n_slots());
            self.push_within_limit(0, record, Work::Write);
        }
    }

    /// Counts an operator that overflowed; whether it is among those to keep.
    fn has_room_for_overflow(&self) -> bool {
        let n_before = self.shared.n_overflows.fetch_add(1, Ordering::Relaxed);
        let n_max = self.shared.plan.n_overflows_max;
        n_max.is_none_or(|n_max| n_before < n_max)
    }

    /// Copies watched values and looks whether earlier ones changed.
    fn submit_watched(&self, mut record: Record) {
        self.count_missing(record.n_slots(), DropReason::NotShown);
        let looks = self
            .watcher
            .look(&record, self.order, &self.shared.overwrites);
        if self.kept.role == Role::Watched {
            record.outputs = self.watcher.watch(&record);
            if record.n_slots() > 0 {
                self.push_within_limit(0, record, Work::Write);
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
            self.push_within_limit(nth as u32, record, Work::WriteBeside);
        }
    }

    /// Whether tensors that turned out to be selected are taken, all of them.
    fn admit(&self, n_slots: u64, n_bytes: u64) -> Result<(), DropReason> {
        if self.shared.ending.is_capture_ended() {
            return Err(DropReason::Stopped);
        }
        let is_taken = self.shared.budget.take(n_slots, n_bytes);
        is_taken.then_some(()).ok_or(DropReason::Limit)
    }

    fn push_within_limit(&self, nth: u32, record: Record, work: Work) {
        match self.admit(record.n_slots(), record.n_bytes()) {
            Ok(()) => self.push(nth, record, work),
            Err(reason) => self.shared.counters.drop(reason, record.n_slots()),
        }
    }

    fn push(&self, nth: u32, record: Record, work: Work) {
        let step = (self.hold_for_record(), self.notes.clone());
        push(&self.shared, (self.order, nth), record, work, step);
    }

    fn hold_for_record(&self) -> Option<Hold> {
        self.hold.as_ref().map(Hold::for_record)
    }

    /// Counts what is selected and not among the `n_shown` tensors.
    fn count_missing(&self, n_shown: u64, reason: DropReason) {
        let n_missing = self.kept.n_slots().saturating_sub(n_shown);
        self.shared.counters.drop(reason, n_missing);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let is_counted = matches!(self.shared.plan.purpose, Purpose::Values | Purpose::Watch);
        if self.open.is_some() && is_counted {
            self.count_missing(0, DropReason::OperatorFailed);
            let n_beside = self.views().map(FloatView::n_slots).sum();
            self.shared
                .counters
                .drop(DropReason::OperatorFailed, n_beside);
        }
    }
}

/// Stamps a record that is selected, and queues it.
pub(crate) fn push(
    shared: &Shared,
    order: Order,
    mut record: Record,
    work: Work,
    (hold, notes): (Option<Hold>, Arc<StepNotes>),
) {
    record.timestamp_us = now_us(shared, record.n_slots());
    add(&shared.counters.n_bytes_selected, record.n_bytes());
    for (_, tensor) in &mut record.outputs {
        // Parameters come this way only.
        *tensor = reduced(shared, tensor.clone());
    }
    if shared.queue.is_beyond_budget(&record) {
        reduce_all(shared, &mut record);
    }
    shared.queue_or_drop(Job {
        order,
        record,
        work,
        floats: None,
        hold,
        notes,
    });
}

fn n_bytes(tensor: &Tensor) -> u64 {
    tensor.n_bytes() as u64
}

/// Lets the sink look at a tensor while it is in a cache, and lets go of it if the sink has seen enough,
/// so that the engine may reuse its memory at once. Tensors beyond caches are left to the writers, who work
/// beside the engine, unless they would take up too much of the queue.
fn reduced(shared: &Shared, tensor: Tensor) -> Tensor {
    let n_bytes = tensor.n_bytes();
    if n_bytes <= REDUCED_AT_ONCE_MAX || shared.is_large(n_bytes) {
        reduced_at_once(shared, tensor)
    } else {
        tensor
    }
}

/// Lets the sink look at every tensor of a record that is larger than the queue.
fn reduce_all(shared: &Shared, record: &mut Record) {
    for (_, tensor) in record.inputs.iter_mut().chain(&mut record.outputs) {
        *tensor = reduced_at_once(shared, tensor.clone());
    }
}

/// The same, however large the tensor is.
pub(crate) fn reduced_at_once(shared: &Shared, tensor: Tensor) -> Tensor {
    let is_now = shared.is_reducing && tensor.has_elements();
    match is_now && is_enough(shared, tensor.observed()) {
        true => tensor.without_elements(),
        false => tensor,
    }
}

/// Whether the sink needs no more of a tensor than numbers, which are in its memo now.
pub(crate) fn is_enough(shared: &Shared, tensor: Observed<'_>) -> bool {
    is_enough_by(shared, tensor, |summarizer| summarizer.summarize(tensor))
}

/// The same of elements that lie side by side in another order than row-major.
pub(crate) fn is_enough_permuted(shared: &Shared, tensor: Observed<'_>) -> bool {
    shared.is_reducing
        && is_enough_by(shared, tensor, |summarizer| {
            summarizer.summarize_permuted(tensor)
        })
}

fn is_enough_by(
    shared: &Shared,
    tensor: Observed<'_>,
    summarize: impl FnOnce(&dyn TensorSummarizer) -> bool,
) -> bool {
    let Some(summarizer) = shared.sink.summarizer() else {
        return false;
    };
    let summarize = || {
        let is_enough = summarize(summarizer);
        if is_enough {
            tensor.non_finite_places();
        }
        is_enough
    };
    // The sink's own code must not take the engine's thread with it.
    catch_unwind(AssertUnwindSafe(summarize)).unwrap_or(false)
}

/// Returns the record of a watched operator's outputs as they are after `suspect` has run.
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
/// microsecond have different file names, and names sort in the order of execution. The microseconds
/// after it belong to the record too, one for each of its tensors.
fn now_us(shared: &Shared, n_slots: u64) -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    let first = |last: u64| now.max(last.saturating_add(1));
    match shared
        .last_timestamp_us
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(first(last).saturating_add(n_slots.saturating_sub(1)))
        }) {
        Ok(last) | Err(last) => first(last),
    }
}
