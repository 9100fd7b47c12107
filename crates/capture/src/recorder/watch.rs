//! Watched outputs, and who overwrites them.

use std::sync::{Arc, Mutex};

use opscope_store::record::{Operator, Record};

use super::PurposeRecorder;
use crate::WatchRole;
use crate::counters::{DropReason, add};
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::overwrite::{OverwriteLog, WatchedContents};
use crate::queue::RecordWork;

/// The recorder of [`Purpose::Watch`](crate::Purpose::Watch).
pub(crate) struct WatchRecorder {
    pub(crate) overwrites: Arc<Mutex<OverwriteLog>>,
}

impl PurposeRecorder for WatchRecorder {
    /// Copies watched values and looks whether earlier ones changed.
    fn record(&self, context: &OperatorContext, shown: ShownTensors) {
        let mut record = shown.record;
        context.count_missing(record.n_slots(), DropReason::NotShown);
        let watcher = &context.step.watcher;
        // Compared before this operator's outputs are watched themselves, so that it is not
        // compared with itself.
        let looks = watcher.look(&record, context.place.order, &self.overwrites);
        match context.kept.role {
            WatchRole::Watched => {
                // The copies are written, not the memory: that may be overwritten before a writer
                // gets to it.
                record.outputs = watcher.watch(&record);
                if record.n_slots() > 0 {
                    context.push_within_limit(0, record, RecordWork::Write);
                }
            }
            WatchRole::Suspect {
                is_collective: false,
            } => {
                for (nth, look) in looks.into_iter().enumerate() {
                    let record = look_record(&record, look);
                    add(&context.counters().n_offered, record.n_slots());
                    add(&context.counters().n_selected, record.n_slots());
                    context.push_within_limit(nth as u32, record, RecordWork::WriteBeside);
                }
            }
            _ => {}
        }
    }

    fn selects_ahead(&self) -> bool {
        true
    }
}

/// Returns the record of a watched operator's outputs as they are after `suspect` has run.
fn look_record(suspect: &Record, look: WatchedContents) -> Record {
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
