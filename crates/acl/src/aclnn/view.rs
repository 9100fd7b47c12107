//! Gathers the elements of a view from memory, and scatters them back.

use opscope_tensor::{DType, Shape, Tensor, dense_copy};

use super::object::{AclTensor, dense_strides};
use crate::memory::MemoryTable;

/// Gathers the elements of a view; `None` if they are out of bounds, or without an address.
pub(crate) fn gather(memory: &MemoryTable, view: &AclTensor, dtype: DType) -> Option<Tensor> {
    let shape = Shape::new(view.dims.clone()).ok()?;
    let width = dtype.bytes()?;
    // Empty views need no address.
    let Some((first, last)) = view.range() else {
        return Tensor::from_vec(dtype, shape, Vec::new()).ok();
    };
    let start = view.address.checked_add(first.checked_mul(width)?)?;
    if view.address == 0 {
        return None;
    }
    let bytes = memory.read(start, (last - first + 1).checked_mul(width)?)?;
    if is_dense(view) {
        return Tensor::from_vec(dtype, shape, bytes).ok();
    }
    let strides: Option<Vec<isize>> = view.strides.iter().map(|&n| n.try_into().ok()).collect();
    // With non-negative strides the first element is the first in memory.
    let origin = usize::try_from(view.offset).ok()? - first;
    let dense = dense_copy(dtype, &shape, &strides?, origin, &bytes).ok()?;
    Tensor::from_vec(dtype, shape, dense).ok()
}

/// Scatters elements into a view, and nothing else; `None` if the view is out of bounds, or has
/// another shape.
pub(crate) fn scatter(memory: &MemoryTable, view: &AclTensor, tensor: &Tensor) -> Option<()> {
    if view.dims != tensor.shape().dims() {
        return None;
    }
    let Some((first, last)) = view.range() else {
        return Some(());
    };
    if view.address == 0 {
        return None;
    }
    let width = tensor.dtype().bytes()?;
    let bytes = tensor.host_bytes().ok()?;
    let end = last.checked_add(1)?.checked_mul(width)?;
    let (first, end) = (first * width, view.address.checked_add(end)?);
    // A dense view is one copy, with one lookup of the allocation.
    if is_dense(view) {
        return memory.write(view.address.checked_add(first)?, bytes);
    }
    // Contiguous rows are written at once.
    let n_inner = match (view.dims.last(), view.strides.last()) {
        (Some(&n), Some(1)) => n,
        _ => 1,
    };
    let outer = if n_inner == 1 {
        view.dims.len()
    } else {
        view.dims.len() - 1
    };
    // An odometer over the outer axes; the memory position advances along with it.
    let mut index = vec![0_usize; outer];
    let mut place = view.offset;
    for run in bytes.chunks(n_inner * width) {
        let at = usize::try_from(place).ok()?.checked_mul(width)?;
        let address = view.address.checked_add(at)?;
        // The range was checked as a whole, so a row beyond it would be a bug here.
        if address.checked_add(run.len())? > end {
            return None;
        }
        memory.write(address, run)?;
        for axis in (0..outer).rev() {
            index[axis] += 1;
            place += view.strides[axis];
            if index[axis] < view.dims[axis] {
                break;
            }
            place -= view.strides[axis] * i64::try_from(view.dims[axis]).ok()?;
            index[axis] = 0;
        }
    }
    Some(())
}

fn is_dense(view: &AclTensor) -> bool {
    let dense = dense_strides(&view.dims);
    let axes = view.dims.iter().zip(view.strides.iter().zip(&dense));
    axes.filter(|(n, _)| **n > 1)
        .all(|(_, (found, dense))| found == dense)
}
