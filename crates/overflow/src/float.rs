//! Non-finite floating-point results of operators with finite inputs.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;
use opscope_tensor::{DType, Tensor};

use super::OutputOverflow;
use super::non_finite::{holds_non_finite, non_finite_elements};
use super::operands;
use super::operators::attributes_may_be_non_finite;
use super::tally::Tally;

/// Outputs that hold Inf or NaN while no input and no attribute does. Elements are judged
/// individually where the input elements that each depends on are known.
pub(super) fn places(record: &Record, cause: StatusCause) -> Vec<OutputOverflow> {
    let outputs = record.outputs.iter();
    let outputs: Vec<&(usize, Tensor)> = outputs
        .filter(|(output, tensor)| !is_masked(record, *output) && holds_non_finite(tensor))
        .collect();
    // Inputs are read only when there is something to explain.
    if outputs.is_empty() || !is_complete(record) {
        return Vec::new();
    }
    let is_finite = !record
        .inputs
        .iter()
        .any(|(_, tensor)| holds_non_finite(tensor));
    let places = outputs.into_iter().filter_map(|(output, tensor)| {
        let elements = non_finite_elements(tensor.host_view().ok()?).into_iter();
        let tally: Tally = if is_finite {
            elements.collect()
        } else {
            let tainted = operands::tainted(record, tensor)?;
            elements
                .filter(|element| tainted.get(*element) == Some(&false))
                .collect()
        };
        tally.place(cause, *output)
    });
    places.collect()
}

/// Whether all inputs of the operator were recorded, and at least one has elements.
///
/// A reduction over nothing yields an infinity or NaN by definition, so an operator whose
/// floating-point inputs are all empty computes nothing.
fn is_complete(record: &Record) -> bool {
    let names = record.operator.inputs.iter();
    let n_named = names.filter(|name| !name.is_empty()).count();
    // An unrecorded input may hold the infinity of the output.
    record.inputs.len() >= n_named
        && record.inputs.iter().any(|(_, tensor)| {
            let bytes = tensor.host_bytes();
            is_float_or_complex(tensor.dtype()) && bytes.is_ok_and(|bytes| !bytes.is_empty())
        })
        && !attributes_may_be_non_finite(&record.operator)
}

fn is_float_or_complex(dtype: DType) -> bool {
    dtype.parts().0.is_float()
}

/// Whether an output of `Attention` is non-finite by design: its scores show masked positions as
/// -Inf, and a fully masked query has no result.
fn is_masked(record: &Record, output: usize) -> bool {
    const SCORES: usize = 3;
    const MASK: usize = 3;
    if record.operator.op_type != "Attention" {
        return false;
    }
    let mask = record.inputs.iter().find(|(i, _)| *i == MASK);
    output == SCORES
        || mask.is_some_and(|(_, mask)| {
            let n = mask.shape().last().copied().unwrap_or(1).max(1);
            mask.dtype() == DType::Bool
                && mask
                    .host_bytes()
                    .is_ok_and(|mask| mask.chunks(n).any(|row| row.iter().all(|&b| b == 0)))
        })
}
