//! Conversions of elements to another dtype.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;
use opscope_tensor::{DType, ElementKind, Tensor};

use super::OutputOverflow;
use super::float_bits::FloatBits;
use super::non_finite::{holds_non_finite, non_finite_elements};
use super::tally::Tally;

/// Elements outside the target's range, where the status register has a bit for it.
pub(super) fn place(record: &Record) -> Option<OutputOverflow> {
    let from = &record.inputs.iter().find(|(i, _)| *i == 0)?.1;
    let to = &record.outputs.iter().find(|(i, _)| *i == 0)?.1;
    if from.shape().n_elements() != to.shape().n_elements() {
        return None;
    }
    if is_unsigned(to.dtype()) && record.operator.op_type != "QuantizeLinear" {
        return negative_to_unsigned(from);
    }
    // The scale of a quantisation is another input.
    let mut others = record.inputs.iter().filter(|(i, _)| *i != 0);
    if others
        .any(|(_, tensor)| record.operator.op_type == "QuantizeLinear" && holds_non_finite(tensor))
    {
        return None;
    }
    finite_to_non_finite(from, to)
}

/// Finite numbers that became Inf, or NaN where the format has no Inf. The check is per element: an
/// infinity in the input does not hide a new one.
fn finite_to_non_finite(from: &Tensor, to: &Tensor) -> Option<OutputOverflow> {
    if !holds_non_finite(to) {
        return None;
    }
    // Both lists are ascending.
    let mut before = non_finite_elements_or_none(from)?.into_iter().peekable();
    let after = non_finite_elements(to.host_view().ok()?).into_iter();
    let tally: Tally = after
        .filter(|element| {
            while before.next_if(|earlier| earlier < element).is_some() {}
            before.peek() != Some(element)
        })
        .collect();
    tally.place(StatusCause::ToF16, 0)
}

/// Types without numbers give `None`, and so does text, which may say `inf`.
fn non_finite_elements_or_none(tensor: &Tensor) -> Option<Vec<usize>> {
    tensor.dtype().bits()?;
    if holds_non_finite(tensor) {
        Some(non_finite_elements(tensor.host_view().ok()?))
    } else {
        Some(Vec::new())
    }
}

/// Numbers of -1 and less; numbers between -1 and 0 are truncated to 0 and fit.
fn negative_to_unsigned(from: &Tensor) -> Option<OutputOverflow> {
    let float = FloatBits::for_dtype(from.dtype())?;
    let low = float.positions(from.host_bytes().ok()?, |number| {
        float.is_at_most_minus_one(number)
    });
    let tally: Tally = low.into_iter().collect();
    tally.place(StatusCause::NegativeToUnsigned, 0)
}

fn is_unsigned(dtype: DType) -> bool {
    dtype.kind() == ElementKind::Unsigned
}
