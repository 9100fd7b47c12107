//! Floating-point results that are not finite although everything they came from was.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;
use opscope_tensor::{TensorView, non_finite};

use super::Place;
use super::operators::{Kind, kind};

/// Outputs that hold Inf or NaN while no input does.
pub(super) fn places(record: &Record) -> Vec<Place> {
    let cause = match kind(&record.operator.op_type) {
        Kind::Moves => return Vec::new(),
        Kind::Converts => StatusCause::ToF16,
        Kind::Accumulates => StatusCause::CubeAccumulate,
        Kind::Computes => StatusCause::Float,
    };
    let outputs = record.outputs.iter();
    let places: Vec<Place> = outputs
        .filter_map(|(output, tensor)| place(cause, *output, tensor.view()))
        .collect();
    // Inputs are read only when there is something to explain.
    if places.is_empty() || !inputs_are_finite(record) {
        return Vec::new();
    }
    places
}

fn place(cause: StatusCause, output: usize, tensor: TensorView<'_>) -> Option<Place> {
    let counts = non_finite(tensor);
    counts.any().then(|| Place {
        cause,
        output,
        n_elements: counts.n_nan + counts.n_pos_inf + counts.n_neg_inf,
        first_element: 0,
    })
}

/// Whether every input is here and finite.
fn inputs_are_finite(record: &Record) -> bool {
    let names = record.operator.inputs.iter();
    let n_named = names.filter(|name| !name.is_empty()).count();
    let mut inputs = record.inputs.iter();
    record.inputs.len() >= n_named && inputs.all(|(_, tensor)| !non_finite(tensor.view()).any())
}
