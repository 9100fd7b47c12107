//! A queue between engine and writers, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use opscope_store::record::Record;

/// What a record costs beside its tensors.
const RECORD_OVERHEAD_BYTES: u64 = 1 << 10;

/// Records in order, with the position at which each operator was executed.
pub(crate) struct Queue {
    bytes_max: u64,
    state: Mutex<State>,
    has_room: Condvar,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    items: VecDeque<(u64, Record)>,
    bytes: u64,
    is_closed: bool,
}

impl Queue {
    pub(crate) fn new(bytes_max: u64) -> Queue {
        Queue {
            bytes_max,
            state: Mutex::default(),
            has_room: Condvar::new(),
            has_work: Condvar::new(),
        }
    }

    /// Adds a record; waits while the queue is full. A record larger than the whole budget is taken
    /// once the queue is empty. Gives the record back if the queue is closed.
    pub(crate) fn push(&self, order: u64, record: Record) -> Result<(), Record> {
        let bytes = cost(&record);
        let mut state = self.lock();
        while !state.is_closed && !state.items.is_empty() && state.bytes + bytes > self.bytes_max {
            state = self
                .has_room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return Err(record);
        }
        state.bytes += bytes;
        state.items.push_back((order, record));
        drop(state);
        self.has_work.notify_one();
        Ok(())
    }

    /// Takes the oldest record; waits while there is none. `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<(u64, Record)> {
        let mut state = self.lock();
        loop {
            if let Some((order, record)) = state.items.pop_front() {
                return Some((order, record));
            }
            if state.is_closed {
                return None;
            }
            state = self
                .has_work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives back the room of a record that [`Queue::pop`] returned, once its memory is free.
    pub(crate) fn release(&self, bytes: u64) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.has_room.notify_all();
    }

    /// Lets waiting writers end when the last record is taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.has_work.notify_all();
        self.has_room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held cannot leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The room that a record takes in the queue.
pub(crate) fn cost(record: &Record) -> u64 {
    record.n_bytes() + RECORD_OVERHEAD_BYTES
}
