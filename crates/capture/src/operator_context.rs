//! One execution of a selected operator, between its probe and the recorder.

use std::sync::Arc;

use opscope_store::record::Record;
use opscope_tensor::Tensor;

use crate::counters::{DropReason, LiveCounters};
use crate::quantised::ShownParts;
use crate::queue::RecordWork;
use crate::record_intake::RecordIntake;
use crate::record_order::RecordOrder;
use crate::running_step::RunningStep;
use crate::{FloatView, SelectedSlots};

/// An execution as it is known before the operator runs.
pub(crate) struct OperatorContext {
    pub(crate) intake: Arc<RecordIntake>,
    pub(crate) step: Arc<RunningStep>,
    pub(crate) kept: Arc<SelectedSlots>,
    /// Which of [`SelectedSlots::views`] this execution shows.
    pub(crate) views: Vec<usize>,
    pub(crate) place: OperatorPlace,
}

/// The position of an execution in the order of execution.
#[derive(Clone, Copy)]
pub(crate) struct OperatorPlace {
    /// How many operators the session had seen before.
    pub(crate) order: u64,
    /// Number of them in the same step.
    pub(crate) position_in_step: u64,
}

/// The tensors that an operator has shown.
pub(crate) struct ShownTensors {
    pub(crate) record: Record,
    /// Graph inputs with their index in [`SelectedSlots::graph_inputs`].
    pub(crate) graph_inputs: Vec<(usize, Tensor)>,
    /// Likewise of [`SelectedSlots::parameters`].
    pub(crate) parameters: Vec<(usize, Tensor)>,
    /// Tensors that [`OperatorContext::views`] take, elements and all.
    pub(crate) parts: ShownParts,
}

impl OperatorContext {
    pub(crate) fn counters(&self) -> &LiveCounters {
        self.intake.counters()
    }

    /// The views that this execution shows.
    pub(crate) fn views(&self) -> impl Iterator<Item = &FloatView> {
        self.views.iter().filter_map(|&i| self.kept.views.get(i))
    }

    /// The place of the operator's `nth` record.
    pub(crate) fn order(&self, nth: u32) -> RecordOrder {
        RecordOrder {
            operator: self.place.order,
            nth,
        }
    }

    /// Counts tensors that are selected and not among the `n_shown`.
    pub(crate) fn count_missing(&self, n_shown: u64, reason: DropReason) {
        let n_missing = self.kept.n_slots().saturating_sub(n_shown);
        self.counters().count_dropped(reason, n_missing);
    }

    pub(crate) fn push(&self, nth: u32, record: Record, work: RecordWork) {
        self.intake
            .push(self.order(nth), record, work, self.step.ticket());
    }

    pub(crate) fn push_within_limit(&self, nth: u32, record: Record, work: RecordWork) {
        self.intake
            .push_within_limit(self.order(nth), record, work, self.step.ticket());
    }
}
