//! A cache of small tensors.
//!
//! Tensors of one operator are adjacent, and most are small: a request for each would take longer
//! than its bytes. Small tensors are therefore read in blocks, and sequential readers get several
//! blocks with one wait.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use futures_util::future::try_join_all;

use crate::background::wait_for;
use crate::object::RemoteObject;
use crate::{lock, transfer};

/// Bytes of a block.
const BLOCK_BYTES: u64 = 1 << 20;
/// Maximum number of cached blocks.
const N_BLOCKS_MAX: usize = 64;
/// Number of blocks read ahead for a sequential reader.
const N_AHEAD: u64 = 4;

/// An object, and the number of one of its blocks.
type BlockKey = (usize, u64);

/// The blocks that were read last.
#[derive(Default)]
pub(crate) struct BlockCache {
    state: Mutex<BlockState>,
    has_arrived: Condvar,
}

#[derive(Default)]
struct BlockState {
    blocks: HashMap<BlockKey, (Arc<RemoteObject>, Arc<Vec<u8>>)>,
    order: VecDeque<BlockKey>,
    arriving: HashSet<BlockKey>,
}

impl BlockCache {
    /// Reads a part of an object that is at least as long.
    ///
    /// # Errors
    /// Those of [`transfer::read`].
    pub(crate) fn read(
        &self,
        object: &Arc<RemoteObject>,
        range: Range<u64>,
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        if range.is_empty() {
            return Ok(bytes);
        }
        let numbers = range.start / BLOCK_BYTES..(range.end - 1) / BLOCK_BYTES + 1;
        for (number, block) in numbers.clone().zip(self.blocks(object, numbers)?) {
            let start = number * BLOCK_BYTES;
            let from = range.start.saturating_sub(start) as usize;
            let to = (range.end - start).min(block.len() as u64) as usize;
            bytes.extend_from_slice(block.get(from..to).unwrap_or_default());
        }
        Ok(bytes)
    }

    /// The blocks with these numbers, in order.
    fn blocks(
        &self,
        object: &Arc<RemoteObject>,
        numbers: Range<u64>,
    ) -> io::Result<Vec<Arc<Vec<u8>>>> {
        // Objects are not removed while their blocks are cached, so an address identifies one.
        let id = Arc::as_ptr(object).addr();
        let mut found: HashMap<u64, Arc<Vec<u8>>> = HashMap::new();
        loop {
            let mut state = lock(&self.state);
            for number in numbers.clone() {
                if let Some((_, block)) = state.blocks.get(&(id, number)) {
                    found.insert(number, block.clone());
                }
            }
            let missing: Vec<u64> = numbers.clone().filter(|n| !found.contains_key(n)).collect();
            if missing.is_empty() {
                return Ok(numbers.filter_map(|number| found.remove(&number)).collect());
            }
            let mut mine: Vec<u64> = missing
                .into_iter()
                .filter(|&number| !state.arriving.contains(&(id, number)))
                .collect();
            if mine.is_empty() {
                // Another thread has requested them; if that fails, the next iteration requests
                // them again.
                let wait = self.has_arrived.wait(state);
                drop(wait.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            let n_blocks = object.n_bytes().div_ceil(BLOCK_BYTES);
            // Whoever needs the block after a known one probably reads on.
            let is_reading_on = numbers.start.checked_sub(1).is_some_and(|before| {
                let is_known = state.blocks.contains_key(&(id, before));
                is_known || state.arriving.contains(&(id, before))
            });
            if is_reading_on {
                let ahead = numbers.end..numbers.end.saturating_add(N_AHEAD).min(n_blocks);
                mine.extend(ahead.filter(|&number| {
                    let key = (id, number);
                    !state.blocks.contains_key(&key) && !state.arriving.contains(&key)
                }));
            }
            state
                .arriving
                .extend(mine.iter().map(|&number| (id, number)));
            drop(state);
            // Without the lock, so that other threads can read known blocks meanwhile.
            let read = read_blocks(object, &mine);
            let mut state = lock(&self.state);
            // After a failure as well: those who wait for these blocks then request them
            // themselves.
            for number in &mine {
                state.arriving.remove(&(id, *number));
            }
            self.has_arrived.notify_all();
            for (number, block) in mine.into_iter().zip(read?) {
                let block = Arc::new(block);
                // Requested blocks are returned even if other blocks evict them from the cache.
                if numbers.contains(&number) {
                    found.insert(number, block.clone());
                }
                state.keep((id, number), object, block);
            }
        }
    }
}

impl BlockState {
    fn keep(&mut self, key: BlockKey, object: &Arc<RemoteObject>, block: Arc<Vec<u8>>) {
        if self.blocks.insert(key, (object.clone(), block)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > N_BLOCKS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.blocks.remove(&oldest);
            }
        }
    }
}

fn read_blocks(object: &Arc<RemoteObject>, numbers: &[u64]) -> io::Result<Vec<Vec<u8>>> {
    let object = object.clone();
    let n_bytes = object.n_bytes();
    let ranges: Vec<Range<u64>> = numbers
        .iter()
        .map(|number| {
            let start = number * BLOCK_BYTES;
            start..n_bytes.min(start + BLOCK_BYTES)
        })
        .collect();
    wait_for(async move {
        let reads = ranges
            .into_iter()
            .map(|range| transfer::read(&object, range));
        try_join_all(reads).await
    })
}
