//! Passes the answers of devices to the core: statistics into memos, and copies as shared memory.

use std::sync::Arc;

use opscope_capture::Pool;
use opscope_tensor::{DeviceArrival, DeviceElements, DeviceRow, SharedBytes, TensorMemo};
use pyo3::prelude::*;

use super::memory::TensorLender;
use super::release::ReleaseQueue;

/// A value that a device is processing.
pub(super) struct DeviceTicket {
    pub(super) elements: Arc<DeviceElements>,
    pub(super) memo: Arc<TensorMemo>,
    pub(super) n_elements: usize,
    pub(super) n_bytes: usize,
}

/// Fills memos with the rows of a host tensor, one for each ticket.
pub(super) fn complete_rows(
    lender: &TensorLender,
    tickets: impl Iterator<Item = Option<DeviceTicket>>,
    tensor: &Bound<'_, PyAny>,
) {
    let lent = lender.look_on_host(tensor).ok();
    let bytes = lent.as_ref().map_or([].as_slice(), |lent| lent.bytes());
    let (words, _) = bytes.as_chunks::<8>();
    let mut rows = words.chunks_exact(DeviceRow::N_WORDS);
    for ticket in tickets {
        let row = rows.next();
        let Some(ticket) = ticket else {
            continue;
        };
        let words: Option<[u64; DeviceRow::N_WORDS]> =
            row.map(|row| std::array::from_fn(|i| u64::from_ne_bytes(row[i])));
        let row = words.map(|words| DeviceRow::from_words(&words));
        match row.filter(|row| row.is_of(ticket.n_elements)) {
            Some(row) => {
                ticket.memo.note_row(&row);
                ticket.elements.arrive(DeviceArrival::Numbers);
            }
            None => ticket.elements.arrive(DeviceArrival::Lost),
        }
    }
}

/// A copy in host memory, usually pinned.
pub(super) struct CopiedElements<'a, 'py> {
    pub(super) tensor: &'a Bound<'py, PyAny>,
    pub(super) lease: Option<&'a Bound<'py, PyAny>>,
    pub(super) is_scarce: bool,
}

impl CopiedElements<'_, '_> {
    /// The memory itself, or a copy if it is reused for the next values.
    pub(super) fn bytes(
        &self,
        lender: &TensorLender,
        pool: &Arc<Pool>,
        released: &Arc<ReleaseQueue>,
    ) -> Option<SharedBytes> {
        let lent = lender.look_on_host(self.tensor).ok()?;
        if lent.strides.is_some() {
            return None;
        }
        match self.lease {
            Some(lease) if !self.is_scarce => Some(Arc::new(lent.hold_with(lease, released))),
            _ => Some(Arc::new(pool.copy(lent.bytes()).ok()?)),
        }
    }
}
