//! A queue between engine and writers, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use opscope_store::record::Record;
use opscope_tensor::Tensor;

use crate::Failure;

/// What a record costs beside its tensors.
const RECORD_OVERHEAD_BYTES: u64 = 1 << 10;

/// A record on its way to the sink.
pub(crate) struct Job {
    /// Its place among all records, by the order in which operators were executed.
    pub(crate) order: Order,
    pub(crate) record: Record,
    pub(crate) work: Work,
}

/// The number of an operator in the order of execution, and of a record among those that belong to
/// that operator.
pub(crate) type Order = (u64, u32);

/// What is to be done with a record.
pub(crate) enum Work {
    /// Writing it.
    Write,
    /// Writing it; it belongs to an operator that has, or may have, another record.
    WriteBeside,
    /// Writing it if its arithmetic overflowed.
    WriteOverflow,
    /// Writing it as that of an operator that failed.
    WriteFailure(Failure),
}

/// Records in order.
pub(crate) struct Queue {
    bytes_max: u64,
    state: Mutex<State>,
    has_room: Condvar,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    items: VecDeque<Job>,
    bytes: u64,
    /// How many records wait for room.
    n_waiting: u64,
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
    /// once the queue is empty. Returns `false`, and forgets the record, if the queue is closed.
    pub(crate) fn push(&self, job: Job) -> bool {
        let bytes = cost(&job.record);
        let mut state = self.lock();
        while !state.is_closed && !state.items.is_empty() && state.bytes + bytes > self.bytes_max {
            // Writers that wait for more records must not wait for this one.
            state.n_waiting += 1;
            self.has_work.notify_one();
            state = self
                .has_room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.n_waiting -= 1;
        }
        if state.is_closed {
            return false;
        }
        state.bytes += bytes;
        state.items.push_back(job);
        drop(state);
        self.has_work.notify_one();
        true
    }

    /// Takes the oldest `n` records; waits until there are so many, or until half of the budget is used
    /// up. Fewer once the queue is closed, and none when it is empty then.
    pub(crate) fn pop(&self, n: usize) -> Vec<Job> {
        let mut state = self.lock();
        loop {
            let n_there = state.items.len();
            let is_full = state.bytes > self.bytes_max / 2 || state.n_waiting > 0;
            let is_enough = n_there >= n || is_full;
            if (is_enough && n_there > 0) || state.is_closed {
                return state.items.drain(..n_there.min(n)).collect();
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

/// The room that a record takes in the queue: elements that were let go take none.
pub(crate) fn cost(record: &Record) -> u64 {
    let n_bytes = |tensor: &Tensor| tensor.bytes().len() as u64;
    let slots = record.slots();
    slots.map(|(_, _, tensor)| n_bytes(tensor)).sum::<u64>() + RECORD_OVERHEAD_BYTES
}
