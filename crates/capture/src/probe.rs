//! One execution of one operator, as an engine shows it.

mod borrowed;

use std::sync::Arc;

use opscope_store::record::{Operator, Record, SlotSide};
use opscope_tensor::Tensor;

use crate::counters::DropReason;
use crate::memos::Memos;
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::quantised::ShownParts;
use crate::recorder::PurposeRecorder;
use crate::ring::TriggerCause;
use crate::{FloatView, SlotPosition};

/// One execution of one selected operator, from before it runs until its outputs are there.
///
/// Dropped without [`Probe::submit`], because the operator failed, its tensors count as dropped.
pub struct Probe {
    recorder: Arc<dyn PurposeRecorder>,
    memos: Arc<Memos>,
    context: OperatorContext,
    /// `None` after it was passed on.
    shown: Option<ShownTensors>,
}

impl Probe {
    pub(crate) fn new(
        recorder: Arc<dyn PurposeRecorder>,
        memos: Arc<Memos>,
        context: OperatorContext,
        operator: Arc<Operator>,
    ) -> Probe {
        let record = Record {
            model: context.step.model.clone(),
            operator,
            step: context.step.number,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        Probe {
            recorder,
            memos,
            context,
            shown: Some(ShownTensors {
                record,
                graph_inputs: Vec::new(),
                parameters: Vec::new(),
                parts: ShownParts::default(),
            }),
        }
    }

    /// Whether inputs are to be shown; they must be shown before the operator may overwrite them.
    pub fn wants_inputs(&self) -> bool {
        let kept = &self.context.kept;
        let is_none =
            kept.inputs.is_empty() && kept.graph_inputs.is_empty() && kept.parameters.is_empty();
        let mut views = self.context.views();
        !is_none || views.any(|view| view.needs_side(SlotSide::Input))
    }

    /// Whether outputs are to be shown when the operator went well.
    pub fn wants_outputs(&self) -> bool {
        let mut views = self.context.views();
        self.recorder.wants_outputs()
            && (!self.context.kept.outputs.is_empty()
                || views.any(|view| view.needs_side(SlotSide::Output)))
    }

    /// Shows the input at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn input(&mut self, index: usize, tensor: Tensor) {
        let tensor = self.memos.recall(tensor);
        // Before the sink may release the elements, from which the floats are computed.
        self.show_part((SlotSide::Input, index), &tensor);
        let (kept, Some(shown)) = (&self.context.kept, &mut self.shown) else {
            return;
        };
        let tensor = self.context.intake.tensors.summarize(tensor);
        let graph_inputs = kept.graph_inputs.iter();
        if let Some(i) = graph_inputs.clone().position(|kept| kept.position == index) {
            push_once(&mut shown.graph_inputs, i, tensor.clone());
        }
        let parameters = kept.parameters.iter();
        if let Some(i) = parameters.clone().position(|kept| kept.position == index) {
            push_once(&mut shown.parameters, i, tensor.clone());
        }
        if kept.inputs.contains(&index) {
            push_once(&mut shown.record.inputs, index, tensor);
        }
    }

    /// Shows the output at `index`. Ignored unless the plan wants it, and when it was shown before.
    pub fn output(&mut self, index: usize, tensor: Tensor) {
        let place = (SlotSide::Output, index);
        if !self.is_part(place) && !self.context.kept.outputs.contains(&index) {
            return;
        }
        // Only once the plan wants the tensor: looking a memo up takes a lock.
        let tensor = self.memos.recall(tensor);
        self.show_part(place, &tensor);
        if let Some(shown) = &mut self.shown
            && self.context.kept.outputs.contains(&index)
        {
            let tensor = self.context.intake.tensors.summarize(tensor);
            push_once(&mut shown.record.outputs, index, tensor);
        }
    }

    /// Whether a view takes the tensor at this place.
    fn is_part(&self, place: SlotPosition) -> bool {
        self.context.views().any(|view| view.needs(place))
    }

    /// Keeps a tensor for a view, before a sink may release its elements.
    fn show_part(&mut self, place: SlotPosition, tensor: &Tensor) {
        if self.is_part(place)
            && let Some(shown) = &mut self.shown
        {
            shown.parts.show(place, tensor);
        }
    }

    /// Reports that the operator failed; the tensors passed so far are all there are.
    ///
    /// Under [`Purpose::Failures`](crate::Purpose::Failures) the operator is written before this
    /// returns: the process may not live much longer. Otherwise its tensors count as dropped.
    pub fn fail(self, reason: &str) {
        self.fail_with_notes(reason, "");
    }

    /// [`Probe::fail`] with further lines for the text about the failure.
    pub fn fail_with_notes(self, reason: &str, notes: &str) {
        let Some(ShownTensors { record, .. }) = &self.shown else {
            return;
        };
        if let Some(hold) = self.context.step.hold.get() {
            let cause = TriggerCause::Failure(reason.to_owned());
            hold.fire(self.context.order(0), &record.operator, cause);
        }
        self.recorder
            .record_failure(&self.context, record, reason, notes);
    }

    /// Hands the record over. Waits while the queue is full, unless the session drops records then;
    /// slots that were not shown count as dropped.
    pub fn submit(mut self) {
        // Taken out, so that dropping the probe counts nothing as failed.
        let Some(mut shown) = self.shown.take() else {
            return;
        };
        for (i, tensor) in std::mem::take(&mut shown.parameters) {
            let parameter = &self.context.kept.parameters[i];
            self.context
                .step
                .parameters
                .show(&parameter.operator, tensor);
        }
        self.recorder.record(&self.context, shown);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // Where an operator is selected by what it turns out to be, nothing was counted as selected
        // yet.
        if self.shown.is_some() && self.recorder.selects_ahead() {
            self.context.count_missing(0, DropReason::OperatorFailed);
            let n_beside = self.context.views().map(FloatView::n_slots).sum();
            self.context
                .counters()
                .count_dropped(DropReason::OperatorFailed, n_beside);
        }
    }
}

fn push_once(slots: &mut Vec<(usize, Tensor)>, index: usize, tensor: Tensor) {
    if slots.iter().all(|(shown, _)| *shown != index) {
        slots.push((index, tensor));
    }
}
