//! The difference of two large tensors, neither of which is in memory as a whole.

use opscope_tensor::difference::{N_PIECE_STEP, PiecewiseDifference, TensorDifference};
use opscope_tensor::{DType, Layout, Shape, TensorView};

use super::{MeasureFault, masked};
use crate::compare::party::Party;
use crate::compare::side::ExecutionSlot;
use crate::compare::statistics::has_same_extents;
use crate::elements::ElementsError;
use crate::error_chain::chain;

/// Size of a piece of one side. Both pieces fit into a core's cache.
const PIECE_BYTES: usize = 512 << 10;

/// Whether a tensor is worth reading in pieces.
pub(super) fn is_large(slot: &ExecutionSlot) -> bool {
    let width = slot.dtype.and_then(DType::bytes).unwrap_or(0) as u64;
    slot.n_elements().unwrap_or(0).saturating_mul(width) > PIECE_BYTES as u64
}

/// The difference of two tensors as they are stored, and their bytes. The same numbers as
/// [`masked::difference`], bit for bit, but no `kl`; `None` if that needs the whole tensors.
///
/// # Errors
/// As for [`super::load`].
pub(super) fn difference(
    (target, golden): (&ExecutionSlot, &ExecutionSlot),
) -> Result<Option<(TensorDifference, u64)>, MeasureFault> {
    let [a, b] = [(Party::Target, target), (Party::Golden, golden)].map(|(party, slot)| {
        let elements = slot.windows();
        elements.map_err(|error| MeasureFault::Read(party, error))
    });
    let (mut a, mut b) = (a?, b?);
    if !has_same_extents(a.shape.dims(), b.shape.dims()) {
        return Err(MeasureFault::Shape);
    }
    let dtypes = [a.dtype, b.dtype];
    let [Some(a_width), Some(b_width)] = dtypes.map(DType::bytes) else {
        return Ok(None);
    };
    let n = a.shape.n_elements();
    // A whole number of blocks, so that sums are those of one pass.
    let n_piece = PIECE_BYTES / a_width.max(b_width) / N_PIECE_STEP * N_PIECE_STEP;
    let mut found = PiecewiseDifference::new(dtypes);
    for first in (0..n).step_by(n_piece) {
        let end = n.min(first + n_piece);
        let shape = Shape::new([end - first]).unwrap_or_default();
        let bytes = [
            a.bytes(first * a_width..end * a_width)
                .map_err(unreadable(Party::Target))?,
            b.bytes(first * b_width..end * b_width)
                .map_err(unreadable(Party::Golden))?,
        ];
        let [target, golden] = [0, 1].map(|i| TensorView {
            dtype: dtypes[i],
            shape: &shape,
            layout: Layout::Nd,
            bytes: bytes[i],
        });
        let added = found.add(target, golden);
        added.map_err(|error| MeasureFault::Difference(chain(&error)))?;
    }
    let found = found.finish();
    let n_bytes = (n * (a_width + b_width)) as u64;
    Ok((!masked::may_be_masked(&found, dtypes)).then_some((found, n_bytes)))
}

fn unreadable(party: Party) -> impl FnOnce(ElementsError) -> MeasureFault {
    move |error| MeasureFault::Read(party, error.into())
}
