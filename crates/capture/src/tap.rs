//! The handle that an engine shows a model's operators to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use opscope_store::record::graph::TensorType;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{Tensor, TensorObserver, TensorView};

use crate::control::{LiveSettings, StepSettings};
use crate::counters::{DropReason, LiveCounters, add};
use crate::home::HomeProcess;
use crate::memos::Memos;
use crate::non_finite::NonFiniteFindings;
use crate::operator_context::{OperatorContext, OperatorPlace};
use crate::parameters::ShownParameter;
use crate::queue::RecordWork;
use crate::record_intake::RecordIntake;
use crate::record_order::RecordOrder;
use crate::recorder::PurposeRecorder;
use crate::running_step::RunningStep;
use crate::step_end::StepEnd;
use crate::writer::guarded;
use crate::{
    BorrowError, GraphView, Plan, Probe, QuantisedPlace, SelectedOperators, SelectedSlots,
    WatchRole, WrittenFiles,
};

/// The parts of a session that its taps need.
#[derive(Clone)]
pub(crate) struct TapContext {
    pub(crate) intake: Arc<RecordIntake>,
    pub(crate) recorder: Arc<dyn PurposeRecorder>,
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) findings: Arc<NonFiniteFindings>,
    pub(crate) is_stopped: Arc<AtomicBool>,
    /// The process that has the writers.
    pub(crate) home: HomeProcess,
}

/// One model's way into a session.
pub struct Tap {
    context: TapContext,
    model: Arc<ModelId>,
    graph: Arc<TappedGraph>,
    /// Settings in force when the step began.
    settings: StepSettings,
    selected: SelectedOperators,
    /// Whether the sink has heard of the model.
    is_model_open: bool,
    is_active: bool,
    step: Arc<RunningStep>,
    /// Memos about the model's tensors, over all steps.
    memos: Arc<Memos>,
}

/// The model, kept for plans that come later.
struct TappedGraph {
    operators: Vec<Arc<Operator>>,
    inputs: Vec<String>,
    constants: Vec<String>,
    types: Vec<(String, TensorType)>,
    both_sides: Vec<u32>,
    quantised: Vec<QuantisedPlace>,
    carried: Vec<(u32, String)>,
}

impl TappedGraph {
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
    pub(crate) fn new(context: TapContext, model: Arc<ModelId>, graph: GraphView<'_>) -> Tap {
        let settings = context.settings.in_force();
        let mut tap = Tap {
            selected: context.settings.select(&settings.plan, &model, graph),
            graph: Arc::new(TappedGraph {
                operators: graph.operators.to_vec(),
                inputs: graph.inputs.to_vec(),
                constants: graph.constants.to_vec(),
                types: graph.types.to_vec(),
                both_sides: graph.both_sides.to_vec(),
                quantised: graph.quantised.to_vec(),
                carried: graph.carried.to_vec(),
            }),
            is_active: settings.is_active(0),
            step: first_step(&context, &model),
            context,
            model,
            settings,
            is_model_open: false,
            memos: Arc::default(),
        };
        tap.open_model();
        tap
    }

    /// A second way in for the same model, for an execution that begins before another one has
    /// ended. The sink has heard of the model already.
    #[must_use]
    pub fn another(&self) -> Tap {
        Tap {
            context: self.context.clone(),
            model: self.model.clone(),
            graph: self.graph.clone(),
            settings: self.settings.clone(),
            selected: self.selected.clone(),
            is_model_open: self.is_model_open,
            // Until its first step begins nothing is known of the settings that it will run under.
            is_active: false,
            step: first_step(&self.context, &self.model),
            memos: Arc::default(),
        }
    }

    /// Announces the model and its current selection to the sink.
    fn open_model(&mut self) {
        if !self.selected.is_model_matched || self.context.home.is_elsewhere() {
            return;
        }
        let writer = &self.context.intake.writer;
        let sink = &writer.sink;
        let mut written =
            guarded(|| sink.open_model(&self.model, self.graph.view(), &self.selected));
        if self.is_model_open {
            // Its files replace those counted before.
            written = written.map(|_| WrittenFiles::default());
        }
        self.is_model_open |= written.is_ok();
        writer.note(written);
    }

    /// Applies the changes requested since the previous step.
    fn follow_control(&mut self) {
        let settings = &self.context.settings;
        let Some(changed) = settings.changed_since(&self.settings) else {
            return;
        };
        // Switching on and off keeps the plan; matching it again would cost as much as attaching.
        let has_new_plan = !Arc::ptr_eq(&changed.plan, &self.settings.plan);
        self.settings = changed;
        if has_new_plan {
            let graph = self.graph.view();
            self.selected = settings.select(&self.settings.plan, &self.model, graph);
            self.open_model();
        }
    }

    /// Says which execution of the model the following operators belong to. Pending requests to the
    /// session's [`Control`](crate::SessionControl) take effect. A fork of the session's process
    /// keeps nothing of any step.
    pub fn begin_step(&mut self, step: u64) {
        if self.context.home.is_elsewhere() {
            self.is_active = false;
            return;
        }
        self.follow_control();
        self.is_active = self.settings.is_active(step);
        add(&self.counters().n_steps, 1);
        add(&self.counters().n_steps_active, self.is_active.into());
        // This lets go of the step before. It must not be held any more when the ring is asked,
        // which waits until it may remove old steps.
        let notes = self.context.findings.begin_step();
        self.step = Arc::new(RunningStep::new(self.model.clone(), step, notes));
        let writer = &self.context.intake.writer;
        let is_ended = writer.failures.is_capture_ended();
        if self.is_active && self.selected.is_model_matched && !is_ended {
            // The ring may have to remove older steps before the sink is notified of this one.
            if let Some(ring) = &writer.ring {
                self.step.hold.get_or_init(|| ring.begin(&self.model, step));
            }
            self.step
                .end
                .get_or_init(|| Arc::new(StepEnd::new(&writer.ended_steps, &self.model, step)));
            let written = guarded(|| writer.sink.begin_step(&self.model, step));
            writer.note(written);
        }
    }

    /// Says that the step ended with an error, whichever operator it came from. Of use only with
    /// [`SessionOptions::ring`](crate::SessionOptions::ring): the steps up to this one stay then,
    /// if failures are among its triggers.
    pub fn fail_step(&self, reason: &str) {
        if self.context.home.is_elsewhere() {
            return;
        }
        if let Some(ring) = &self.context.intake.writer.ring {
            ring.fail(&self.model, self.step.number, reason);
        }
    }

    /// Reports that the step succeeded. Inputs that no operator of it produced are submitted now,
    /// if the plan selects them.
    pub fn end_step(&self) {
        if self.context.home.is_elsewhere() {
            return;
        }
        for (nth, parameter) in self.step.parameters.take().into_iter().enumerate() {
            self.hand_over(nth as u32, parameter);
        }
        if let Some(ring) = &self.context.intake.writer.ring {
            ring.look_at_flag();
        }
    }

    /// Shows what the value called `name` holds by now. It counts if the value is a parameter that
    /// an operator of this step has read, and that was overwritten since.
    pub fn show_parameter(&self, name: &str, tensor: Tensor) {
        self.step.parameters.refresh(name, tensor);
    }

    fn hand_over(&self, nth: u32, parameter: ShownParameter) {
        let counters = self.counters();
        add(&counters.n_offered, 1);
        add(&counters.n_selected, 1);
        let intake = &self.context.intake;
        let tensor = match parameter.value {
            Ok(tensor) if intake.budget.take(1, tensor.n_bytes() as u64) => tensor,
            Ok(_) => return counters.count_dropped(DropReason::Limit, 1),
            Err(reason) => return counters.count_dropped(reason, 1),
        };
        let record = self.record_beside(parameter.operator, vec![(0, tensor)]);
        let order = self.order_beside(nth);
        intake.push(order, record, RecordWork::WriteBeside, self.step.ticket());
    }

    /// Submits an additional record: `operator`, which need not be in the model, and its current
    /// tensors. It counts as offered and selected; the caller decides whether it is wanted.
    pub fn write_beside(&self, operator: Arc<Operator>, outputs: Vec<(usize, Tensor)>) {
        if !self.is_active {
            return;
        }
        let counters = self.counters();
        let n_slots = outputs.len() as u64;
        add(&counters.n_offered, n_slots);
        add(&counters.n_selected, n_slots);
        let record = self.record_beside(operator, outputs);
        let (order, ticket) = (self.order_beside(0), self.step.ticket());
        let intake = &self.context.intake;
        intake.push_within_limit(order, record, RecordWork::WriteBeside, ticket);
    }

    fn record_beside(&self, operator: Arc<Operator>, outputs: Vec<(usize, Tensor)>) -> Record {
        Record {
            model: self.model.clone(),
            operator,
            step: self.step.number,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs,
        }
    }

    /// After every operator that was seen so far.
    fn order_beside(&self, nth: u32) -> RecordOrder {
        RecordOrder {
            operator: self.counters().n_operators_seen.load(Ordering::Relaxed),
            nth,
        }
    }

    /// Counts operators that ran without being shown.
    pub fn count_seen(&self, n_operators: u64) {
        if self.is_active {
            add(&self.counters().n_operators_seen, n_operators);
            add(&self.step.n_operators, n_operators);
        }
    }

    /// Why an operator need not be inspected, if so.
    fn reason_to_skip(&self) -> Option<DropReason> {
        let TapContext {
            intake, recorder, ..
        } = &self.context;
        if intake.writer.failures.is_capture_ended() {
            return Some(DropReason::Stopped);
        }
        // Beyond the budget there may still be something to find.
        let is_spent = recorder.keeps_everything() && intake.budget.is_spent();
        is_spent.then_some(DropReason::Limit)
    }

    /// Counts the tensors that an operator would have passed; `n_beside` of them belong to
    /// additional records.
    fn skip(&self, kept: &SelectedSlots, n_beside: u64, reason: DropReason) {
        let recorder = &self.context.recorder;
        if recorder.selects_ahead() {
            self.counters()
                .count_dropped(reason, kept.n_slots() + n_beside);
        }
        if !recorder.keeps_everything() {
            add(&self.counters().n_operators_skipped, 1);
        }
        for parameter in &kept.parameters {
            self.step.parameters.skip(&parameter.operator, reason);
        }
    }

    fn counters(&self) -> &LiveCounters {
        self.context.intake.counters()
    }

    /// Whether the run should stop before the next operator.
    pub fn is_stopped(&self) -> bool {
        let is_stopped = self.context.is_stopped.load(Ordering::Relaxed);
        is_stopped || self.context.intake.writer.failures.is_run_ended()
    }

    /// Whether anything may be kept of this step. If not, an engine runs the model as it does
    /// without a tap: operators need not be passed, and none of them counts as seen. Between such
    /// steps the caller checks [`Tap::is_stopped`].
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether the dump is on in this step; the plan may leave the step out all the same.
    pub fn is_enabled(&self) -> bool {
        self.settings.is_enabled
    }

    /// The plan of this step.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.settings.plan
    }

    /// Returns what that plan selects of the model.
    pub fn selected(&self) -> &SelectedOperators {
        &self.selected
    }

    /// Lets the sink inspect a tensor of any size on this thread, for an engine that overwrites its
    /// memory soon. If the sink needs only statistics, the result has no elements; otherwise the
    /// tensor is returned unchanged.
    #[must_use]
    pub fn look(&self, tensor: Tensor) -> Tensor {
        if self.selected.has_views {
            return tensor;
        }
        self.context.intake.tensors.summarize_at_once(tensor)
    }

    /// Lets the sink inspect elements in borrowed memory. Returns whether the memo now holds
    /// everything that the sink needs.
    pub fn look_at(&self, tensor: TensorObserver<'_>) -> bool {
        !self.selected.has_views && self.context.intake.tensors.is_enough(tensor)
    }

    /// [`Tap::look_at`] for contiguous elements in an order other than row-major, starting with the
    /// first element. If this returns `false`, discard the memo: the sink's result depends on the
    /// order.
    pub fn look_at_permuted(&self, tensor: TensorObserver<'_>) -> bool {
        !self.selected.has_views && self.context.intake.tensors.is_enough_permuted(tensor)
    }

    /// Whether statistics computed on a device may replace a value's elements.
    pub fn takes_device_numbers(&self) -> bool {
        !self.selected.has_views && self.context.intake.tensors.takes_device_numbers()
    }

    /// Counts an operator that is about to run; `Some` if the plan has any use for it.
    pub fn open(&self, operator: &Arc<Operator>) -> Option<Probe> {
        self.open_as(operator, Arc::clone)
    }

    /// [`Tap::open`] for an execution whose values differ from the graph's description because some
    /// of them consist of several tensors. `operator` has the task of the operator in the graph,
    /// and `adapt` maps positions there to positions here.
    pub fn open_as(
        &self,
        operator: &Arc<Operator>,
        adapt: impl FnOnce(&Arc<SelectedSlots>) -> Arc<SelectedSlots>,
    ) -> Option<Probe> {
        let place = self.count(operator)?;
        let kept = adapt(self.selected.kept.get(&operator.task_id)?);
        self.probe(operator, &kept, place)
    }

    /// [`Tap::open`] for an operator that was unknown before it ran; `kept` is the caller's own
    /// match of the plan.
    pub fn open_kept(&self, operator: &Arc<Operator>, kept: &Arc<SelectedSlots>) -> Option<Probe> {
        let place = self.count(operator)?;
        self.probe(operator, kept, place)
    }

    /// A tensor in borrowed memory, to be shown to several operators: without its elements if the
    /// sink needs numbers only, which are computed now; else a copy.
    ///
    /// # Errors
    /// [`BorrowError`] if it cannot be taken.
    pub fn take(&self, view: TensorView<'_>) -> Result<Tensor, BorrowError> {
        let tensors = &self.context.intake.tensors;
        if self.selected.has_views {
            tensors.take_whole(view)
        } else {
            tensors.take(view)
        }
    }

    /// Counts an operator, if the step is of use, and returns its place.
    fn count(&self, operator: &Operator) -> Option<OperatorPlace> {
        if !self.is_active {
            return None;
        }
        let counters = self.counters();
        let order = counters.n_operators_seen.fetch_add(1, Ordering::Relaxed);
        let position_in_step = self.step.n_operators.fetch_add(1, Ordering::Relaxed);
        // Optional values that are absent have empty names.
        let values = operator.inputs.iter().chain(&operator.outputs);
        let n_present = values.filter(|name| !name.is_empty()).count();
        add(&counters.n_offered, n_present as u64);
        Some(OperatorPlace {
            order,
            position_in_step,
        })
    }

    fn probe(
        &self,
        operator: &Arc<Operator>,
        kept: &Arc<SelectedSlots>,
        place: OperatorPlace,
    ) -> Option<Probe> {
        let counters = self.counters();
        // Nothing can be overwritten before the first watched operator has run.
        let is_suspect = matches!(kept.role, WatchRole::Suspect { .. });
        if is_suspect && self.step.watcher.is_empty() {
            return None;
        }
        // Claimed even if the budget is spent: the floats count as dropped then, and no other
        // operator has to show them.
        let views = self.claim(kept);
        let n_beside = views.iter().map(|&i| kept.views[i].n_slots()).sum();
        let recorder = &self.context.recorder;
        if recorder.selects_ahead() {
            let n_graph_inputs = kept.graph_inputs.len() as u64;
            add(&counters.n_offered, n_graph_inputs + n_beside);
            add(&counters.n_selected, kept.n_slots() + n_beside);
        }
        if let Some(reason) = self.reason_to_skip() {
            self.skip(kept, n_beside, reason);
            return None;
        }
        let context = OperatorContext {
            intake: self.context.intake.clone(),
            step: self.step.clone(),
            kept: kept.clone(),
            views,
            place,
        };
        let (recorder, memos) = (recorder.clone(), self.memos.clone());
        Some(Probe::new(recorder, memos, context, operator.clone()))
    }

    /// Which of the operator's views this execution is to show.
    fn claim(&self, kept: &SelectedSlots) -> Vec<usize> {
        let views = kept.views.iter().enumerate();
        views
            .filter(|(_, view)| self.step.claims.take(view))
            .map(|(i, _)| i)
            .collect()
    }
}

/// The step of a tap that has not begun one.
fn first_step(context: &TapContext, model: &Arc<ModelId>) -> Arc<RunningStep> {
    let notes = context.findings.begin_step();
    Arc::new(RunningStep::new(model.clone(), 0, notes))
}
