//! The handle that an engine shows a model's operators to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::record::graph::TensorType;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{Observed, Tensor, TensorView};

use crate::control::InForce;
use crate::counters::{DropReason, add};
use crate::memos::Memos;
use crate::non_finite::StepNotes;
use crate::overwrite::Watcher;
use crate::parameters::{Parameter, Parameters};
use crate::probe::{is_enough, is_enough_permuted, push, reduced_at_once, take, take_whole};
use crate::quantised::Claims;
use crate::queue::Work;
use crate::ring::Hold;
use crate::session::Shared;
use crate::writer::guarded;
use crate::{
    BorrowError, GraphView, Kept, Plan, Probe, Purpose, Quantised, Role, Selected, Written,
};

/// One model's way into a session.
pub struct Tap {
    pub(crate) shared: Arc<Shared>,
    pub(crate) model: Arc<ModelId>,
    graph: Arc<Graph>,
    /// Settings in force when the step began.
    in_force: InForce,
    selected: Selected,
    /// Whether the sink has heard of the model.
    is_model_open: bool,
    step: u64,
    is_active: bool,
    /// Operators seen in this step.
    n_in_step: AtomicU64,
    /// Watched values of this step.
    watcher: Arc<Watcher>,
    /// Parameters of this step.
    parameters: Arc<Parameters>,
    /// Memos about the model's tensors, over all steps.
    memos: Arc<Memos>,
    /// Who shows the floats of quantised values in this step.
    claims: Claims,
    /// Keeps the step from being decided on, where steps may be removed again.
    hold: Option<Hold>,
    /// Notes about the step's operators with NaN or infinities.
    notes: Arc<StepNotes>,
}

/// The model, kept for plans that come later.
struct Graph {
    operators: Vec<Arc<Operator>>,
    inputs: Vec<String>,
    constants: Vec<String>,
    types: Vec<(String, TensorType)>,
    both_sides: Vec<u32>,
    quantised: Vec<Quantised>,
    carried: Vec<(u32, String)>,
}

impl Graph {
    fn view(&self) -> GraphView<'_> {
        GraphView {
            operators: &self.operators,
            inputs: &self.inputs,
            constants: &self.constants,
            types: &self.types,
            both_sides: &self.both_sides,
            quantised: &self.quantised,
            carried: &self.carried,
        }
    }
}

impl Tap {
    pub(crate) fn new(shared: Arc<Shared>, model: Arc<ModelId>, graph: GraphView<'_>) -> Tap {
        let in_force = shared.wanted.in_force();
        let notes = shared.findings.begin_step();
        let mut tap = Tap {
            selected: shared.select(&in_force.plan, &model, graph),
            graph: Arc::new(Graph {
                operators: graph.operators.to_vec(),
                inputs: graph.inputs.to_vec(),
                constants: graph.constants.to_vec(),
                types: graph.types.to_vec(),
                both_sides: graph.both_sides.to_vec(),
                quantised: graph.quantised.to_vec(),
                carried: graph.carried.to_vec(),
            }),
            shared,
            model,
            is_active: in_force.is_active(0),
            in_force,
            is_model_open: false,
            step: 0,
            n_in_step: AtomicU64::new(0),
            watcher: Arc::default(),
            parameters: Arc::default(),
            memos: Arc::default(),
            claims: Claims::default(),
            hold: None,
            notes,
        };
        tap.open_model();
        tap
    }

    /// A second way in for the same model, for an execution that begins before another one has ended.
    /// The sink has heard of the model already.
    #[must_use]
    pub fn another(&self) -> Tap {
        Tap {
            shared: self.shared.clone(),
            model: self.model.clone(),
            graph: self.graph.clone(),
            in_force: self.in_force.clone(),
            selected: self.selected.clone(),
            is_model_open: self.is_model_open,
            step: 0,
            is_active: false,
            n_in_step: AtomicU64::new(0),
            watcher: Arc::default(),
            parameters: Arc::default(),
            memos: Arc::default(),
            claims: Claims::default(),
            hold: None,
            notes: self.shared.findings.begin_step(),
        }
    }

    /// Tells the sink of the model and of what is selected now.
    fn open_model(&mut self) {
        if !self.selected.is_model_matched || self.shared.home.is_elsewhere() {
            return;
        }
        let sink = &self.shared.sink;
        let open = || sink.open_model(&self.model, self.graph.view(), &self.selected);
        let mut written = guarded(open);
        if self.is_model_open {
            // Its files take the place of those that were counted before.
            written = written.map(|_| Written::default());
        }
        self.is_model_open |= written.is_ok();
        self.shared.note(written);
    }

    /// Takes over what was asked for since the step before.
    fn follow_control(&mut self) {
        let Some(in_force) = self.shared.wanted.changed_since(&self.in_force) else {
            return;
        };
        let has_new_plan = !Arc::ptr_eq(&in_force.plan, &self.in_force.plan);
        self.in_force = in_force;
        if has_new_plan {
            let graph = self.graph.view();
            self.selected = self.shared.select(&self.in_force.plan, &self.model, graph);
            self.open_model();
        }
    }

    /// Says which execution of the model the following operators belong to. What was asked of the
    /// session's [`Control`](crate::Control) until now takes effect.
    /// In a fork of the session's process nothing is kept of any step.
    pub fn begin_step(&mut self, step: u64) {
        self.step = step;
        if self.shared.home.is_elsewhere() {
            self.is_active = false;
            return;
        }
        self.follow_control();
        self.is_active = self.in_force.is_active(step);
        add(&self.shared.counters.n_steps, 1);
        add(&self.shared.counters.n_steps_active, self.is_active.into());
        self.n_in_step = AtomicU64::new(0);
        self.watcher.clear();
        drop(self.parameters.take());
        self.claims.clear();
        self.hold = None;
        self.notes = self.shared.findings.begin_step();
        let is_ended = self.shared.ending.is_capture_ended();
        if self.is_active && self.selected.is_model_matched && !is_ended {
            self.begin_in_ring();
            let written = guarded(|| self.shared.sink.begin_step(&self.model, step));
            self.shared.note(written);
        }
    }

    /// The sink may have to make room for the step before it hears of it.
    fn begin_in_ring(&mut self) {
        let shared = &self.shared;
        if let Some((ring, remover)) = shared.ring_and_remover() {
            let (hold, swept) = ring.begin(&self.model, self.step, remover);
            shared.note_removed(&swept);
            self.hold = Some(hold);
        }
    }

    /// Says that the step ended with an error, whichever operator it came from. Of use only with
    /// [`SessionOptions::ring`](crate::SessionOptions::ring): the steps up to this one stay then, if
    /// failures are among its triggers.
    pub fn fail_step(&self, reason: &str) {
        if self.shared.home.is_elsewhere() {
            return;
        }
        if let Some(ring) = &self.shared.ring {
            ring.fail(&self.model, self.step, reason);
        }
    }

    /// Says that the step went well. What its operators read and none of them produced is handed over
    /// now, if the plan asks for it.
    pub fn end_step(&self) {
        if self.shared.home.is_elsewhere() {
            return;
        }
        for (nth, parameter) in self.parameters.take().into_iter().enumerate() {
            self.hand_over(nth as u32, parameter);
        }
        if let Some(ring) = &self.shared.ring {
            ring.look_at_flag();
        }
    }

    /// Shows what the value called `name` holds by now. It counts if the value is a parameter that an operator
    /// of this step has read, and that was overwritten since.
    pub fn show_parameter(&self, name: &str, tensor: Tensor) {
        self.parameters.refresh(name, tensor);
    }

    fn hand_over(&self, nth: u32, parameter: Parameter) {
        let counters = &self.shared.counters;
        add(&counters.n_offered, 1);
        add(&counters.n_selected, 1);
        let within_limit = |tensor: &Tensor| {
            let n_bytes = tensor.n_bytes() as u64;
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
        let step = (self.hold.as_ref().map(Hold::for_record), self.notes.clone());
        push(&self.shared, (order, nth), record, Work::WriteBeside, step);
    }

    /// Hands over a record beside those of the model's operators: what `operator`, which need not be one of
    /// them, has to do with these tensors now. It counts as offered and selected; whether it is wanted the
    /// caller knows.
    pub fn write_beside(&self, operator: Arc<Operator>, outputs: Vec<(usize, Tensor)>) {
        if !self.is_active {
            return;
        }
        let counters = &self.shared.counters;
        let n_slots = outputs.len() as u64;
        add(&counters.n_offered, n_slots);
        add(&counters.n_selected, n_slots);
        let record = Record {
            model: self.model.clone(),
            operator,
            step: self.step,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs,
        };
        if self.shared.ending.is_capture_ended() {
            return counters.drop(DropReason::Stopped, n_slots);
        }
        if !self.shared.budget.take(n_slots, record.n_bytes()) {
            return counters.drop(DropReason::Limit, n_slots);
        }
        let order = counters.n_operators_seen.load(Ordering::Relaxed);
        let step = (self.hold.as_ref().map(Hold::for_record), self.notes.clone());
        push(&self.shared, (order, 0), record, Work::WriteBeside, step);
    }

    /// Counts operators that ran without being shown.
    pub fn count_seen(&self, n_operators: u64) {
        if self.is_active {
            add(&self.shared.counters.n_operators_seen, n_operators);
            self.n_in_step.fetch_add(n_operators, Ordering::Relaxed);
        }
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

    /// Counts what an operator would have shown, `n_beside` of it beside its own record.
    fn skip(&self, kept: &Kept, n_beside: u64, reason: DropReason) {
        let counters = &self.shared.counters;
        let purpose = self.shared.plan.purpose;
        if let Purpose::Values | Purpose::Watch = purpose {
            counters.drop(reason, kept.n_slots() + n_beside);
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

    /// Whether anything may be kept of this step. If not, an engine runs the model as it does without a
    /// tap, once this has been asked: operators need not be shown, and none of them counts as seen.
    /// [`Tap::is_stopped`] is for the caller to look at between such steps.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether the dump is on in this step; the plan may leave the step out all the same.
    pub fn is_enabled(&self) -> bool {
        self.in_force.is_enabled
    }

    /// The plan of this step.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.in_force.plan
    }

    /// Returns what that plan selects of the model.
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// Lets the sink look at a tensor on this thread, however large it is, for an engine whose memory is written
    /// to soon. If the sink needs no more than numbers the result has no elements; otherwise it is the same.
    #[must_use]
    pub fn look(&self, tensor: Tensor) -> Tensor {
        if self.selected.has_views {
            return tensor;
        }
        reduced_at_once(&self.shared, tensor)
    }

    /// Lets the sink look at elements in borrowed memory, and returns whether it needs no more of them than
    /// what is in the memo then.
    pub fn look_at(&self, tensor: Observed<'_>) -> bool {
        !self.selected.has_views && self.shared.is_reducing && is_enough(&self.shared, tensor)
    }

    /// [`Tap::look_at`] elements that lie side by side in another order than row-major, the first one first.
    /// Where this returns `false` the memo is of no use: what the sink wants depends on the order.
    pub fn look_at_permuted(&self, tensor: Observed<'_>) -> bool {
        !self.selected.has_views && is_enough_permuted(&self.shared, tensor)
    }

    /// Counts an operator that is about to run; `Some` if the plan has any use for it.
    pub fn open(&self, operator: &Arc<Operator>) -> Option<Probe> {
        self.open_as(operator, Arc::clone)
    }

    /// [`Tap::open`] for an execution whose values are not those that the description of the graph has,
    /// because some of them are made of several tensors: `operator` has the task of the operator in the
    /// graph, and `adapt` turns positions there into positions here.
    pub fn open_as(
        &self,
        operator: &Arc<Operator>,
        adapt: impl FnOnce(&Arc<Kept>) -> Arc<Kept>,
    ) -> Option<Probe> {
        let place = self.count(operator)?;
        let kept = adapt(self.selected.kept.get(&operator.task_id)?);
        self.probe(operator, &kept, place)
    }

    /// [`Tap::open`] for an operator that nobody knew before it ran; `kept` says what the caller found the
    /// plan to keep of it.
    pub fn open_kept(&self, operator: &Arc<Operator>, kept: &Arc<Kept>) -> Option<Probe> {
        let place = self.count(operator)?;
        self.probe(operator, kept, place)
    }

    /// A tensor in borrowed memory, to be shown to several operators: without its elements if the sink
    /// needs numbers only, which are computed now; else a copy.
    ///
    /// # Errors
    /// [`BorrowError`] if it cannot be taken.
    pub fn take(&self, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        match self.selected.has_views {
            true => take_whole(&self.shared, view),
            false => take(&self.shared, view),
        }
    }

    /// Counts an operator, if the step is of use; gives its number in the order of execution, of all and
    /// in the step.
    fn count(&self, operator: &Operator) -> Option<(u64, u64)> {
        if !self.is_active {
            return None;
        }
        let present =
            |names: &[String]| names.iter().filter(|name| !name.is_empty()).count() as u64;
        let counters = &self.shared.counters;
        let order = counters.n_operators_seen.fetch_add(1, Ordering::Relaxed);
        let position_in_step = self.n_in_step.fetch_add(1, Ordering::Relaxed);
        add(
            &counters.n_offered,
            present(&operator.inputs) + present(&operator.outputs),
        );
        Some((order, position_in_step))
    }

    fn probe(
        &self,
        operator: &Arc<Operator>,
        kept: &Arc<Kept>,
        place: (u64, u64),
    ) -> Option<Probe> {
        let counters = &self.shared.counters;
        // Nothing can be overwritten before the first watched operator has run.
        let is_suspect = matches!(kept.role, Role::Suspect { .. });
        if is_suspect && self.watcher.is_empty() {
            return None;
        }
        let views = self.claim(kept);
        let n_beside = views.iter().map(|&i| kept.views[i].n_slots()).sum();
        if let Purpose::Values | Purpose::Watch = self.shared.plan.purpose {
            add(
                &counters.n_offered,
                kept.graph_inputs.len() as u64 + n_beside,
            );
            add(&counters.n_selected, kept.n_slots() + n_beside);
        }
        if let Some(reason) = self.reason_to_skip() {
            self.skip(kept, n_beside, reason);
            return None;
        }
        let probe = Probe::new(
            self.shared.clone(),
            kept.clone(),
            (
                self.watcher.clone(),
                self.parameters.clone(),
                self.memos.clone(),
                self.notes.clone(),
            ),
            self.model.clone(),
            operator.clone(),
            self.step,
            place,
        );
        let probe = probe.with_views(views);
        Some(probe.with_hold(self.hold.as_ref().map(Hold::for_operator)))
    }

    /// Which of the operator's views this execution is to show.
    fn claim(&self, kept: &Kept) -> Vec<usize> {
        let views = kept.views.iter().enumerate();
        views
            .filter(|(_, view)| self.claims.take(view))
            .map(|(i, _)| i)
            .collect()
    }
}
