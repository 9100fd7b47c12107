//! Memory of the host's that a device writes to without help.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::CudaContext;

/// Most bytes of such memory: the system cannot use it for anything else.
const PINNED_BYTES_MAX: usize = 1 << 30;
/// Of smaller buffers many would fit into a page.
const BUFFER_BYTES_MIN: usize = 64 << 10;
/// The driver's flag for memory that every context may use.
const PORTABLE: u32 = 1;

/// Buffers that are used again: getting one from the system takes longer than filling it.
pub(super) struct PinnedPool {
    context: Arc<CudaContext>,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// Buffers that are not in use.
    free: Vec<PinnedMemory>,
    n_bytes: usize,
}

/// Allocated memory; the pool's, or on loan.
struct PinnedMemory {
    address: NonNull<u8>,
    n_bytes: usize,
}

// SAFETY: the value owns the memory, and no thread has access otherwise.
unsafe impl Send for PinnedMemory {}
// SAFETY: by shared reference it is only read.
unsafe impl Sync for PinnedMemory {}

/// Elements in memory of the pool's, which goes back to it.
pub(super) struct PinnedBuffer {
    pool: Arc<PinnedPool>,
    /// `None` only while it is dropped.
    memory: Option<PinnedMemory>,
    n_used: usize,
}

impl PinnedPool {
    pub(super) fn new(context: Arc<CudaContext>) -> PinnedPool {
        PinnedPool {
            context,
            state: Mutex::default(),
        }
    }

    /// A buffer of this size with zeros or what was in it before; `None` if there is no room.
    pub(super) fn take(self: &Arc<PinnedPool>, n_bytes: usize) -> Option<PinnedBuffer> {
        let size = n_bytes.max(BUFFER_BYTES_MIN).checked_next_power_of_two()?;
        let mut state = self.lock();
        let found = state.free.iter().position(|free| free.n_bytes == size);
        let memory = match found {
            Some(i) => state.free.swap_remove(i),
            None => self.allocate(&mut state, size)?,
        };
        drop(state);
        Some(PinnedBuffer {
            pool: self.clone(),
            memory: Some(memory),
            n_used: n_bytes,
        })
    }

    fn allocate(&self, state: &mut PoolState, n_bytes: usize) -> Option<PinnedMemory> {
        // Buffers of sizes that are not asked for any more make room for one that is.
        while state.n_bytes.checked_add(n_bytes)? > PINNED_BYTES_MAX {
            let unused = state.free.pop()?;
            state.n_bytes -= unused.n_bytes;
            self.free(&unused);
        }
        let mut address: *mut c_void = ptr::null_mut();
        let api = &self.context.api;
        let _current = self.context.enter().ok()?;
        // SAFETY: a context is current, and the place lives during the call.
        let status = unsafe { (api.allocate_host)(&raw mut address, n_bytes, PORTABLE) };
        let address = NonNull::new(address.cast::<u8>()).filter(|_| status == 0)?;
        // SAFETY: the memory was just made and is that large. It must be initialised for readers
        // that come before the device has written to it.
        unsafe { address.as_ptr().write_bytes(0, n_bytes) };
        state.n_bytes += n_bytes;
        Some(PinnedMemory { address, n_bytes })
    }

    fn free(&self, memory: &PinnedMemory) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: the memory is the driver's and has no other user left.
            unsafe { (self.context.api.free_host)(memory.address.as_ptr().cast()) };
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // The list and the sum are changed one after the other, and neither panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PinnedPool {
    fn drop(&mut self) {
        let free = std::mem::take(&mut self.lock().free);
        free.iter().for_each(|memory| self.free(memory));
    }
}

impl PinnedBuffer {
    /// Where a device may write.
    pub(super) fn address(&self) -> *mut c_void {
        let memory = self.memory.as_ref();
        memory.map_or(ptr::null_mut(), |memory| memory.address.as_ptr().cast())
    }
}

impl AsRef<[u8]> for PinnedBuffer {
    fn as_ref(&self) -> &[u8] {
        let Some(memory) = &self.memory else {
            return &[];
        };
        // SAFETY: the memory is larger than what is used of it and was written to. Elements are
        // read only after the wait for the device has reported them.
        unsafe { std::slice::from_raw_parts(memory.address.as_ptr(), self.n_used) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.lock().free.push(memory);
        }
    }
}
