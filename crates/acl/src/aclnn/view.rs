//! Elements of a view: taking them out of memory, and putting them back.

use opscope_tensor::{DType, Shape, Tensor, dense_copy};

use super::object::{AclTensor, dense_strides};
use crate::memory::MemoryTable;

/// Takes the elements of a view out of memory; `None` where they leave it, or without an address.
pub(crate) fn gather(memory: &MemoryTable, view: &AclTensor, dtype: DType) -> Option<Tensor> {
    let shape = Shape::new(view.dims.clone()).ok()?;
    let width = dtype.bytes()?;
    // Without elements no address is needed.
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
    // With strides that are not negative the first element is the first in memory.
    let origin = usize::try_from(view.offset).ok()? - first;
    let dense = dense_copy(dtype, &shape, &strides?, origin, &bytes).ok()?;
    Tensor::from_vec(dtype, shape, dense).ok()
}

/// Puts elements into a view, of which nothing else changes; `None` where they leave memory, or do
/// not have its shape.
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
    // One copy, under one look at the allocation.
    if is_dense(view) {
        return memory.write(view.address.checked_add(first)?, bytes);
    }
    // Rows whose elements lie side by side are written at once.
    let n_inner = match (view.dims.last(), view.strides.last()) {
        (Some(&n), Some(1)) => n,
        _ => 1,
    };
    let outer = if n_inner == 1 {
        view.dims.len()
    } else {
        view.dims.len() - 1
    };
    // An odometer over the outer axes; the place in memory moves along with it.
    let mut index = vec![0_usize; outer];
    let mut place = view.offset;
    for run in bytes.chunks(n_inner * width) {
        let at = usize::try_from(place).ok()?.checked_mul(width)?;
        let address = view.address.checked_add(at)?;
        // The range was checked as a whole; a stride that leaves it would be a mistake of ours.
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
