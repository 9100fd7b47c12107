//! Every execution: its tensors, the graph inputs that it read, and floats of quantised values.

use opscope_store::record::Record;
use opscope_tensor::Tensor;

use super::PurposeRecorder;
use crate::counters::{DropReason, add};
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::quantised::{OperatorTurn, ShownParts};
use crate::queue::{RecordWork, WriteJob};

/// The recorder of [`Purpose::Values`](crate::Purpose::Values).
pub(crate) struct ValueRecorder;

impl PurposeRecorder for ValueRecorder {
    fn record(&self, context: &OperatorContext, shown: ShownTensors) {
        let execution = OperatorTurn {
            model: shown.record.model.clone(),
            operator: shown.record.operator.clone(),
            step: shown.record.step,
        };
        submit_shown(context, shown.record, shown.graph_inputs);
        submit_views(context, &shown.parts, &execution);
    }

    fn keeps_everything(&self) -> bool {
        true
    }

    fn selects_ahead(&self) -> bool {
        true
    }
}

fn submit_shown(context: &OperatorContext, record: Record, mut graph_inputs: Vec<(usize, Tensor)>) {
    let n_shown = record.n_slots() + graph_inputs.len() as u64;
    context.count_missing(n_shown, DropReason::NotShown);
    let beside = graph_inputs
        .iter()
        .map(|(_, tensor)| tensor.n_bytes() as u64);
    let n_bytes = record.n_bytes() + beside.sum::<u64>();
    if let Err(reason) = context.intake.admit(n_shown, n_bytes) {
        return context.counters().count_dropped(reason, n_shown);
    }
    // An engine may show them in any order; their numbers must not depend on it.
    graph_inputs.sort_by_key(|(i, _)| *i);
    for (nth, (i, tensor)) in graph_inputs.into_iter().enumerate() {
        let input = Record {
            model: record.model.clone(),
            operator: context.kept.graph_inputs[i].operator.clone(),
            step: record.step,
            timestamp_us: 0,
            inputs: Vec::new(),
            outputs: vec![(0, tensor)],
        };
        context.push(nth as u32, input, RecordWork::WriteBeside);
    }
    if record.n_slots() > 0 {
        context.push(u32::MAX, record, RecordWork::Write);
    }
}

/// Hands over the records of the views, for writers to compute the floats.
fn submit_views(context: &OperatorContext, parts: &ShownParts, execution: &OperatorTurn) {
    let counters = context.counters();
    for (nth, view) in context.views().enumerate() {
        let n_slots = view.n_slots();
        let Some((beside, floats)) = parts.view(view, execution) else {
            counters.count_dropped(DropReason::NotShown, n_slots);
            continue;
        };
        let n_bytes = beside.n_bytes().saturating_add(floats.n_bytes);
        if let Err(reason) = context.intake.admit(n_slots, n_bytes) {
            counters.count_dropped(reason, n_slots);
            continue;
        }
        add(&counters.n_bytes_selected, n_bytes);
        // Behind the graph inputs, which are numbered from 0 on.
        let nth = context.kept.graph_inputs.len() + nth;
        context.intake.writer.queue_or_drop(WriteJob {
            order: context.order(u32::try_from(nth).unwrap_or(u32::MAX)),
            record: Record {
                timestamp_us: context.intake.next_timestamp_us(n_slots),
                ..beside
            },
            work: RecordWork::WriteBeside,
            floats: Some(floats),
            ticket: context.step.ticket(),
        });
    }
}
