//! A value whose memory is compared repeatedly.

use std::sync::Arc;

use opscope_capture::ByteDifference;
use opscope_tensor::{DType, Shape, Tensor, dense_copy};
use pyo3::prelude::*;

use super::memory::{HeldMemory, LentTensor};
use super::reason::UnseenReason;
use super::release::ReleaseQueue;

/// A value whose memory is compared repeatedly. A tensor of our own shares the memory, so that it
/// is not reused.
pub(super) struct WatchedMemory {
    pub(super) id: u64,
    /// Whether it stays even if nothing else references the memory.
    is_kept: bool,
    live: HeldMemory,
    /// Bytes of the memory at the last comparison, from the first element to the end of the last
    /// one.
    copy: Arc<Vec<u8>>,
    dtype: DType,
    shape: Shape,
    strides: Option<Vec<isize>>,
}

/// A value before and after a write.
pub(super) struct ValueChange {
    pub(super) difference: ByteDifference,
    pub(super) n_elements: u64,
    pub(super) before: Tensor,
    pub(super) after: Tensor,
}

impl WatchedMemory {
    /// Watches the memory of `lent`, whose storage must not be exchanged by others.
    ///
    /// # Errors
    ///
    /// [`UnseenReason::Copy`] if there is no memory for a copy.
    pub(super) fn new(
        id: u64,
        lent: &LentTensor<'_, '_>,
        is_kept: bool,
        released: &Arc<ReleaseQueue>,
    ) -> Result<WatchedMemory, UnseenReason> {
        Ok(WatchedMemory {
            id,
            is_kept,
            // Bytes between the elements are copied too, so that a comparison is a single memcmp.
            copy: Arc::new(copy(lent.bytes())?),
            live: lent.hold(released),
            dtype: lent.dtype,
            shape: lent.shape.clone(),
            strides: lent.strides.clone(),
        })
    }

    /// How much memory is compared.
    pub(super) fn n_bytes(&self) -> u64 {
        self.copy.len() as u64
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn tensor(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.live.object().map(|object| object.clone_ref(py))
    }

    /// Whether the memory still exists.
    pub(super) fn is_still(&self, lent: &LentTensor<'_, '_>) -> bool {
        self.live.is_still(lent)
    }

    /// Whether all of `lent` is already watched.
    pub(super) fn covers(&self, lent: &LentTensor<'_, '_>) -> bool {
        self.live.covers(lent)
    }

    /// Whether the memory has changed since the last comparison.
    pub(super) fn is_changed(&self) -> bool {
        self.live.as_ref() != self.copy.as_slice()
    }

    /// Updates the copy. Returns `None` if no element changed: bytes between the elements of a
    /// strided tensor belong to others.
    ///
    /// # Errors
    ///
    /// [`UnseenReason::Copy`] if there is no memory for copies; the next comparison uses the same
    /// state as this one.
    pub(super) fn refresh(&mut self) -> Result<Option<ValueChange>, UnseenReason> {
        let now = Arc::new(copy(self.live.as_ref())?);
        let (before, after) = (self.dense(&self.copy)?, self.dense(&now)?);
        self.copy = now;
        let views = before
            .host_view()
            .and_then(|before| Ok((before, after.host_view()?)));
        let (before_view, after_view) = views.map_err(|_| UnseenReason::NoMemory)?;
        let Some(difference) = ByteDifference::between(before_view, after_view) else {
            return Ok(None);
        };
        let width = self.dtype.bytes().unwrap_or(1).max(1) as u64;
        Ok(Some(ValueChange {
            n_elements: difference.n_bytes / width,
            difference,
            before,
            after,
        }))
    }

    /// Returns the value at the last comparison, as contiguous elements.
    ///
    /// # Errors
    ///
    /// [`UnseenReason::Copy`] if there is no memory for that.
    pub(super) fn value(&self) -> Result<Tensor, UnseenReason> {
        self.dense(&self.copy)
    }

    fn dense(&self, bytes: &Arc<Vec<u8>>) -> Result<Tensor, UnseenReason> {
        let shape = self.shape.clone();
        match &self.strides {
            None => Tensor::new(self.dtype, shape, bytes.clone()),
            Some(strides) => {
                let dense = dense_copy(self.dtype, &shape, strides, 0, bytes);
                Tensor::from_vec(self.dtype, shape, dense.map_err(|_| UnseenReason::Copy)?)
            }
        }
        .map_err(|_| UnseenReason::Shape)
    }
}

fn copy(bytes: &[u8]) -> Result<Vec<u8>, UnseenReason> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())
        .map_err(|_| UnseenReason::Copy)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
