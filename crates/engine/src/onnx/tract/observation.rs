//! The observer of a run's operators, and the use of their results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::Tap;
use opscope_store::record::Operator;
use opscope_tensor::{Channels, DType, RoundingFormat};
use tract_onnx::prelude::*;

use super::value;
use crate::onnx::rounded_weights::RoundedWeight;
use crate::{ResultRounding, ResultSurvey};

/// State of a run through all its graphs.
#[derive(Clone, Copy, Default)]
pub(super) struct Observation<'a> {
    /// The tap that operators are shown to.
    pub(super) tap: Option<&'a Tap>,
    /// How results are rounded.
    pub(super) rounding: Option<&'a ResultRounding>,
    /// Where the operators that run are noted.
    pub(super) survey: Option<&'a RefCell<ResultSurvey>>,
}

impl<'a> Observation<'a> {
    /// The same without the tap, for bodies whose operators are not shown.
    pub(super) fn untapped(self) -> Observation<'a> {
        Observation { tap: None, ..self }
    }

    /// Notes the outputs of an operator, which are at these positions of its node, and rounds them.
    pub(super) fn take_results(
        self,
        operator: &Arc<Operator>,
        positions: &[usize],
        mut outputs: TVec<TValue>,
    ) -> TVec<TValue> {
        if let Some(survey) = self.survey {
            // Types are noted before rounding, which changes none of them.
            let pairs = positions.iter().zip(&outputs);
            let known = pairs.filter_map(|(i, value)| Some((*i, value::dtype_of(value)?)));
            let dtypes: BTreeMap<usize, DType> = known.collect();
            survey.borrow_mut().note(operator).dtypes.extend(dtypes);
        }
        let rounding = self.rounding;
        if let Some(rounding) = rounding.filter(|rounding| rounding.rounds(operator.task_id)) {
            // Outputs beyond those of the file are internal to the engine and have no readers.
            for value in outputs.iter_mut().take(positions.len()) {
                round(value, rounding, operator.task_id);
            }
        }
        outputs
    }
}

/// The constants of an operator as they were rounded last. Each run reads the same tensors, because
/// a plan has its weights built in and is compiled again for others.
#[derive(Default)]
pub(super) struct RoundedConstants(Mutex<Option<RoundedInputs>>);

struct RoundedInputs {
    format: RoundingFormat,
    /// Whether a finite element is infinite in the format.
    overflows: bool,
    /// By index of the input.
    values: Vec<(usize, TValue)>,
}

impl RoundedConstants {
    /// The inputs of an operator with its weights rounded.
    pub(super) fn replace(
        &self,
        rounding: &ResultRounding,
        task_id: u32,
        weights: &[(usize, RoundedWeight)],
        mut inputs: TVec<TValue>,
    ) -> TVec<TValue> {
        let Some(format) = rounding.format_of(task_id) else {
            return inputs;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.format != format) {
            // Separate, so that its overflows are known for later runs, which do not round again.
            let alone = ResultRounding::new(format, [task_id]);
            let rounded = weights.iter().filter_map(|(index, weight)| {
                let value = inputs.get(*index)?;
                let is_kept = alone.keeps_weight(task_id, weight.is_bias);
                (!is_kept).then(|| (*index, round_weight(value, &alone, task_id, weight)))
            });
            *known = Some(RoundedInputs {
                values: rounded.collect(),
                overflows: alone.has_overflowed(),
                format,
            });
        }
        for known in known.iter() {
            if known.overflows {
                rounding.note_overflow();
            }
            for (index, value) in &known.values {
                inputs[*index] = value.clone();
            }
        }
        inputs
    }
}

fn round_weight(
    value: &TValue,
    rounding: &ResultRounding,
    task_id: u32,
    weight: &RoundedWeight,
) -> TValue {
    let mut tensor = value.clone().into_tensor();
    let channels = Channels::along(tensor.shape(), weight.channel_axes.clone());
    rounding.round_weight(task_id, weight.dtype, channels, tensor.as_bytes_mut());
    tensor.into_arc_tensor().into_tvalue()
}

/// Rounds a value, if it is of floats. Where others hold the same tensor, as an operator that hands
/// its input on does, it is copied before.
fn round(value: &mut TValue, rounding: &ResultRounding, task_id: u32) {
    let Some(dtype) = value::dtype_of(value).filter(|dtype| RoundingFormat::applies_to(*dtype))
    else {
        return;
    };
    let mut tensor = value.clone().into_tensor();
    rounding.round(task_id, dtype, tensor.as_bytes_mut());
    *value = tensor.into_tvalue();
}
