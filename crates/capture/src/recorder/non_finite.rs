//! Executions with NaN or an infinity in an output.

use opscope_tensor::{DType, Tensor};

use super::{FindingLimit, PurposeRecorder};
use crate::counters::add;
use crate::operator_context::{OperatorContext, ShownTensors};
use crate::queue::RecordWork;

/// The recorder of [`Purpose::NonFinite`](crate::Purpose::NonFinite).
pub(crate) struct NonFiniteRecorder {
    pub(crate) limit: FindingLimit,
}

impl PurposeRecorder for NonFiniteRecorder {
    fn record(&self, context: &OperatorContext, shown: ShownTensors) {
        let record = shown.record;
        let is_found = record
            .outputs
            .iter()
            .any(|(_, tensor)| is_checked(tensor) && tensor.non_finite().any());
        if !is_found {
            return;
        }
        add(&context.counters().n_operators_overflowed, 1);
        if self.limit.has_room() {
            add(&context.counters().n_selected, record.n_slots());
            context.push_within_limit(0, record, RecordWork::Write);
        }
    }
}

fn is_checked(tensor: &Tensor) -> bool {
    // The dtypes of MindSpore's own mode for this, which dumps of it are compared with.
    matches!(tensor.dtype(), DType::F16 | DType::BF16 | DType::F32)
}
