//! Memory for copies of tensors, used again and again.
//!
//! Fresh memory costs a page fault for every 4 KiB, more than the copy itself. Buffers that have
//! served once are warm, and a model asks for the same sizes in every step.

use std::collections::{BTreeMap, TryReserveError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::home::HomeProcess;

/// Smaller buffers come from the allocator, which has them ready.
const POOLED_BYTES_MIN: usize = 32 << 10;
/// A free buffer is reused if it is at most this many times as large as the data.
const SLACK_MAX: usize = 2;

/// Buffers, in use and free. Together they hold no more than the limit, unless those in use alone
/// do.
pub struct Pool {
    bytes_max: usize,
    buffers: Mutex<PooledBuffers>,
    home: HomeProcess,
}

#[derive(Default)]
struct PooledBuffers {
    /// By capacity; no list is empty.
    free: BTreeMap<usize, Vec<Vec<u8>>>,
    free_bytes: usize,
    used_bytes: usize,
}

/// A copy of bytes, whose memory returns to the pool when dropped.
pub struct PooledBytes {
    bytes: Vec<u8>,
    /// `None` for memory of the allocator.
    pool: Option<Arc<Pool>>,
}

impl Pool {
    pub(crate) fn new(bytes_max: u64) -> Pool {
        Pool {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            buffers: Mutex::default(),
            home: HomeProcess::here(),
        }
    }

    /// Copies `source`.
    ///
    /// # Errors
    /// If memory ran out.
    pub fn copy(self: &Arc<Pool>, source: &[u8]) -> Result<PooledBytes, TryReserveError> {
        let is_pooled = source.len() >= POOLED_BYTES_MIN;
        let free = is_pooled.then(|| self.take(source.len())).flatten();
        let is_new = free.is_none();
        let mut bytes = free.unwrap_or_default();
        bytes.try_reserve_exact(source.len())?;
        if is_pooled && is_new {
            self.lock().used_bytes += bytes.capacity();
        }
        bytes.extend_from_slice(source);
        let pool = is_pooled.then(|| self.clone());
        Ok(PooledBytes { bytes, pool })
    }

    /// A free buffer for `n_bytes`. If there is none, others are freed for a new one.
    fn take(&self, n_bytes: usize) -> Option<Vec<u8>> {
        let mut buffers = self.lock();
        let fitting = n_bytes..=n_bytes.saturating_mul(SLACK_MAX);
        let capacity = buffers.free.range(fitting).next().map(|(n, _)| *n);
        if let Some(buffer) = capacity.and_then(|capacity| buffers.remove(capacity)) {
            buffers.used_bytes += buffer.capacity();
            return Some(buffer);
        }
        let mut let_go = Vec::new();
        while !buffers.has_room(n_bytes, self.bytes_max) {
            // The largest first, so that few have to go.
            let Some(largest) = buffers.free.keys().next_back().copied() else {
                break;
            };
            let_go.extend(buffers.remove(largest));
        }
        // Returning memory to the system takes time; other threads need not wait for it.
        drop(buffers);
        drop(let_go);
        None
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let mut buffers = self.lock();
        buffers.used_bytes = buffers.used_bytes.saturating_sub(capacity);
        // Buffers in use count against the limit, so no more than the limit remains after a burst.
        if buffers.has_room(capacity, self.bytes_max) {
            buffer.clear();
            buffers.free_bytes += capacity;
            buffers.free.entry(capacity).or_default().push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PooledBuffers> {
        // Nothing panics while the lock is held, short of memory running out.
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PooledBuffers {
    fn has_room(&self, n_bytes: usize, bytes_max: usize) -> bool {
        let total = self.free_bytes.saturating_add(self.used_bytes);
        total.saturating_add(n_bytes) <= bytes_max
    }

    /// Takes a free buffer of exactly this capacity out.
    fn remove(&mut self, capacity: usize) -> Option<Vec<u8>> {
        let buffers = self.free.get_mut(&capacity)?;
        let buffer = buffers.pop();
        if buffers.is_empty() {
            self.free.remove(&capacity);
        }
        self.free_bytes -= buffer.as_ref().map_or(0, Vec::capacity);
        buffer
    }
}

impl AsRef<[u8]> for PooledBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBytes {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool
            // In a fork the lock may be held for ever by a thread that does not exist there; the
            // memory is simply freed.
            && !pool.home.is_elsewhere()
        {
            pool.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = POOLED_BYTES_MIN;

    /// Bytes in use and free.
    fn held(pool: &Pool) -> (usize, usize) {
        let buffers = pool.lock();
        (buffers.used_bytes, buffers.free_bytes)
    }

    #[test]
    fn memory_is_used_again_within_the_limit() {
        let pool = Arc::new(Pool::new(4 * SMALL as u64));
        let first = pool.copy(&vec![1; SMALL]).unwrap();
        let address = first.as_ref().as_ptr();
        assert_eq!(held(&pool), (SMALL, 0));
        drop(first);
        assert_eq!(held(&pool), (0, SMALL));
        let second = pool.copy(&vec![2; SMALL]).unwrap();
        assert_eq!(second.as_ref().as_ptr(), address);
        assert!(second.as_ref().iter().all(|byte| *byte == 2));
        // Too large for the free buffer: allocate a new one, and keep the free one if the limit
        // allows it.
        drop(second);
        let third = pool.copy(&vec![3; 3 * SMALL]).unwrap();
        assert_eq!(held(&pool), (3 * SMALL, SMALL));
        // Too small for it as well: nothing is wasted on it.
        drop(third);
        let fourth = pool.copy(&vec![4; SMALL + 1]).unwrap();
        assert_eq!(held(&pool), (SMALL + 1, SMALL));
        let fifth = pool.copy(&vec![5; 5 * SMALL]).unwrap();
        assert_eq!(held(&pool), (6 * SMALL + 1, 0));
        drop(fifth);
        drop(fourth);
        assert_eq!(held(&pool), (0, SMALL + 1));
    }

    #[test]
    fn small_copies_are_left_to_the_allocator() {
        let pool = Arc::new(Pool::new(u64::MAX));
        for n in [0, 1, SMALL - 1] {
            assert_eq!(pool.copy(&vec![7; n]).unwrap().as_ref(), vec![7; n]);
        }
        assert_eq!(held(&pool), (0, 0));
    }
}
