//! `FRACTAL_NZ`: matrices in blocks of M0 rows and C0 columns.

use opscope_tensor::Layout;

use super::chain::{ConversionResult, ViewChain};
use super::request::{LayoutRequest, numpy_cut, refuse_groups, times};
use crate::array::count;
use crate::failure::{ErrorCode, ToolFailure};

/// More padding than this is a mistake.
const PADDING_MAX: usize = 15;

/// Checks the wanted shape before a `FRACTAL_NZ` tensor of shape `dims` is converted.
pub(crate) fn check_wanted_shape(dims: &[usize], wanted: &[usize]) -> Result<(), ToolFailure> {
    if wanted.is_empty() {
        return refuse(
            "The format before transfer is FRACTAL_NZ. Please enter a valid shape.".into(),
        );
    }
    let [lead @ .., n1, m1, m0, c0] = dims else {
        return Err(ToolFailure::unexpected("list index out of range"));
    };
    let [wanted_lead @ .., wanted_m, wanted_n] = wanted else {
        return Err(ToolFailure::unexpected("list index out of range"));
    };
    let (m, n) = (times(*m1, *m0), times(*n1, *c0));
    if lead == wanted_lead && fits(*wanted_m, m) && fits(*wanted_n, n) {
        return Ok(());
    }
    let recommended: Vec<usize> = lead.iter().copied().chain([m, n]).collect();
    refuse(format!(
        "The target shape {wanted:?} is invalid. The recommended shape is {recommended:?}."
    ))
}

/// Whether a size can come from a padded one.
fn fits(wanted: usize, padded: usize) -> bool {
    wanted <= padded && padded - wanted <= PADDING_MAX
}

/// Refuses a target shape.
fn refuse(message: String) -> Result<(), ToolFailure> {
    Err(ToolFailure::new(ErrorCode::InvalidParameter, message))
}

/// Converts to rows and columns. Leading axes stay merged.
pub(super) fn to_plain<'a>(request: LayoutRequest<'a, '_>) -> Result<ConversionResult<'a>, String> {
    refuse_groups(&request)?;
    let ([.., n1, m1, m0, c0], [wanted_lead @ .., wanted_m, wanted_n]) =
        (request.dims, request.wanted)
    else {
        return Err("list index out of range".to_owned());
    };
    let lead = count(wanted_lead).unwrap_or(usize::MAX);
    let (m, n) = (times(*m1, *m0), times(*n1, *c0));
    let (cut_m, cut_n) = (numpy_cut(m, *wanted_m), numpy_cut(n, *wanted_n));
    let split = [lead, *n1, *m1, *m0, *c0];
    let with_lead = [lead, m, n];
    let ends = [lead, cut_m, cut_n];
    let n_joined = if wanted_lead.is_empty() { 1 } else { 0 };
    ViewChain {
        from: Layout::FractalNz,
        from_dims: &split[n_joined..],
        to: Layout::Nd,
        split: &split,
        axes: &[0, 2, 3, 1, 4],
        merged: &with_lead[n_joined..],
        ends: &ends[n_joined..],
    }
    .follow(request.array)
}
