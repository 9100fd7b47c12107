//! Judging the NaNs and infinities of one operator by its own tensors.

use opscope_store::record::{Record, SlotSide};
use opscope_tensor::Tensor;

use super::operators::{is_attention, is_elementwise, makes_up};

/// A slot: side and position.
pub(crate) type Slot = (SlotSide, usize);

/// Judgement of one operator's NaNs and infinities by its own tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalJudgement {
    /// Everything is finite.
    Finite,
    /// NaN in this slot, with whether an input has NaN, and whether both sides were inspected.
    Nan(Slot, NanSource),
    /// There are infinities, and the operator did not compute them.
    MadeUp(Slot),
    /// The operator read infinities, and each that it gave may come from these.
    PassedOn(Slot),
    /// The operator made infinities of finite numbers; whether all of them are -Inf.
    Computed(Slot, OnlyNegative),
    /// Infinities in this slot; not every tensor that could explain them was inspected.
    Unseen(Slot, OnlyNegative),
}

/// Where the NaN of an operator comes from, as far as its own tensors say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NanSource {
    /// It is in an input.
    Input,
    /// It is in an output, and no input has one.
    Output,
    /// The operator fills it in, or the record does not belong to an operator.
    MadeUp,
    /// Not every tensor was inspected.
    Unseen,
}

/// Whether there is -Inf and no +Inf.
pub(crate) type OnlyNegative = bool;

impl LocalJudgement {
    /// Whether the step needs judging because of it: a NaN, or an infinity that may be a result.
    pub(crate) fn is_suspicious(self) -> bool {
        matches!(
            self,
            LocalJudgement::Nan(..) | LocalJudgement::Computed(..) | LocalJudgement::Unseen(..)
        )
    }
}

/// Judges a record by its own tensors. `is_beside` marks a record of a model's inputs or weights
/// rather than of an execution.
pub(crate) fn judge(record: &Record, is_beside: bool) -> LocalJudgement {
    let Some(first) = record
        .slots()
        .find(|(_, _, tensor)| tensor.non_finite().any())
    else {
        return LocalJudgement::Finite;
    };
    let operator = &record.operator;
    // NaN takes precedence over infinities: it is never deliberate, while an infinity may be a
    // mask.
    if let Some((side, index, _)) = record
        .slots()
        .find(|(_, _, tensor)| tensor.non_finite().n_nan > 0)
    {
        let source = match side {
            // Weights and inputs of the model come from outside, whatever operator the record has.
            _ if is_beside => NanSource::Input,
            SlotSide::Input if record.outputs.is_empty() && !operator.outputs.is_empty() => {
                NanSource::Unseen
            }
            SlotSide::Input => NanSource::Input,
            SlotSide::Output if makes_up(operator) => NanSource::MadeUp,
            SlotSide::Output if !has_all_inputs(record) => NanSource::Unseen,
            SlotSide::Output => NanSource::Output,
        };
        return LocalJudgement::Nan((side, index), source);
    }
    judge_infinities(record, (first.0, first.1), is_beside)
}

fn judge_infinities(record: &Record, first: Slot, is_beside: bool) -> LocalJudgement {
    let operator = &record.operator;
    let output = record
        .outputs
        .iter()
        .find(|(_, tensor)| n_infinities(tensor) > 0);
    let has_infinite_input = record.inputs.iter().any(|slot| n_infinities(&slot.1) > 0);
    let is_negative = record
        .slots()
        .all(|(_, _, tensor)| tensor.non_finite().n_pos_inf == 0);
    if is_beside {
        return LocalJudgement::PassedOn(first);
    }
    let Some((index, _)) = output else {
        // Only inputs are infinite; their producer is judged separately.
        let is_one_sided = record.outputs.is_empty() && !operator.outputs.is_empty();
        return if is_one_sided {
            LocalJudgement::Unseen(first, is_negative)
        } else {
            LocalJudgement::PassedOn(first)
        };
    };
    let output = (SlotSide::Output, *index);
    // An attention that is given a boolean mask turns it into -Inf itself and may show the scores.
    if makes_up(operator) || (is_attention(operator) && is_negative) {
        return LocalJudgement::MadeUp(output);
    }
    if has_infinite_input {
        return match more_than_passed_on(record) {
            Some(index) => LocalJudgement::Computed((SlotSide::Output, index), false),
            None => LocalJudgement::PassedOn(first),
        };
    }
    if has_all_inputs(record) {
        LocalJudgement::Computed(output, is_negative)
    } else {
        LocalJudgement::Unseen(output, is_negative)
    }
}

/// Whether everything is there that the operator read.
pub(super) fn has_all_inputs(record: &Record) -> bool {
    let names = record.operator.inputs.iter();
    record.inputs.len() >= names.filter(|name| !name.is_empty()).count()
}

/// An output with more infinities than its inputs explain, of an elementwise operator: an input
/// that is broadcast to the output's shape repeats its infinities.
fn more_than_passed_on(record: &Record) -> Option<usize> {
    if !is_elementwise(&record.operator) || !has_all_inputs(record) {
        return None;
    }
    let mut outputs = record.outputs.iter();
    let found = outputs.find(|(_, output)| {
        let n_elements = output.shape().n_elements() as u64;
        let explained = record.inputs.iter().map(|(_, input)| {
            let n_of_input = (input.shape().n_elements() as u64).max(1);
            n_infinities(input).saturating_mul((n_elements / n_of_input).max(1))
        });
        n_infinities(output) > explained.fold(0, u64::saturating_add)
    });
    found.map(|(index, _)| *index)
}

fn n_infinities(tensor: &Tensor) -> u64 {
    let counts = tensor.non_finite();
    counts.n_pos_inf + counts.n_neg_inf
}
