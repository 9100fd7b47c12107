//! A queue between engine and writers, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opscope_store::record::Record;

use crate::counters::DropReason;
use crate::quantised::DequantiseJob;
use crate::record_order::RecordOrder;
use crate::running_step::StepTicket;
use crate::{OperatorFailure, WhenBehind};

/// Size of a record in the queue in addition to its tensors.
const RECORD_OVERHEAD_BYTES: u64 = 1 << 10;

/// Number of records without elements that a writer takes at once. Waking a writer for each would
/// cost the model more than the record.
const N_LIGHT_AT_ONCE: usize = 64;

/// How long a writer that takes several records at once waits for the next one.
const GATHERING_MAX: Duration = Duration::from_millis(10);

/// A record on its way to the sink.
pub(crate) struct WriteJob {
    /// Its position among all records, in execution order.
    pub(crate) order: RecordOrder,
    pub(crate) record: Record,
    pub(crate) work: RecordWork,
    /// The record's output, if a writer has to compute it.
    pub(crate) floats: Option<DequantiseJob>,
    pub(crate) ticket: StepTicket,
}

impl WriteJob {
    /// Its size in the queue: released elements do not count, elements to be computed do.
    pub(crate) fn cost(&self) -> u64 {
        let floats = self.floats.as_ref().map_or(0, |work| work.n_bytes_beside);
        n_element_bytes(&self.record)
            .saturating_add(floats)
            .saturating_add(RECORD_OVERHEAD_BYTES)
    }

    /// Whether it keeps elements in memory, or will.
    fn is_heavy(&self) -> bool {
        self.cost() > RECORD_OVERHEAD_BYTES
    }

    /// Number of tensors, including those to be computed.
    pub(crate) fn n_slots(&self) -> u64 {
        self.record.n_slots() + u64::from(self.floats.is_some())
    }

    /// Finishes the pending computations; returns the number of tensors for which memory ran out.
    pub(crate) fn complete(&mut self) -> u64 {
        let Some(work) = self.floats.take() else {
            return 0;
        };
        let floats = work.run();
        let n_missing = u64::from(floats.is_none());
        self.record.outputs.extend(floats.map(|floats| (0, floats)));
        n_missing
    }
}

/// The work to do on a record.
pub(crate) enum RecordWork {
    /// Writing it.
    Write,
    /// Writing it; it belongs to an operator that has, or may have, another record.
    WriteBeside,
    /// Writing it if its arithmetic overflowed.
    WriteOverflow,
    /// Writing it as that of an operator that failed.
    WriteFailure(OperatorFailure),
}

/// Records in order.
pub(crate) struct Queue {
    bytes_max: u64,
    when_behind: WhenBehind,
    state: Mutex<QueueState>,
    has_room: Condvar,
    has_work: Condvar,
}

#[derive(Default)]
struct QueueState {
    items: VecDeque<WriteJob>,
    /// Number of them that keep elements in memory.
    n_heavy: usize,
    /// The size of waiting records and of those that writers are processing.
    bytes: u64,
    end: QueueEnd,
    /// Threads that wait for space, or are about to wake up. Waking costs a system call even when
    /// no thread waits, so these are counted.
    n_waiting_for_room: usize,
    /// Threads that wait for work, or are about to wake up.
    n_waiting_for_work: usize,
    /// Number of records that writers wait for.
    n_awaited: usize,
}

/// Number of records that a writer takes at once.
#[derive(Clone, Copy)]
pub(crate) struct BatchSize {
    /// The maximum.
    pub(crate) n_max: usize,
    /// The number to wait for, though not for long, while any of them keeps elements in memory.
    pub(crate) n_awaited: usize,
}

impl BatchSize {
    /// One after the other.
    pub(crate) const ONE: BatchSize = BatchSize {
        n_max: 1,
        n_awaited: 1,
    };
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum QueueEnd {
    #[default]
    Open,
    /// Waiting records are still written.
    Closed,
    /// Nothing is written.
    Abandoned,
}

impl QueueState {
    /// Number of records to wait for, if `n` is the number with any heavy one.
    fn n_wanted(&self, n: usize) -> usize {
        match self.n_heavy {
            0 => n.max(N_LIGHT_AT_ONCE),
            _ => n,
        }
    }

    /// Number of the available records that one writer takes.
    fn n_taken(&self, batch: BatchSize) -> usize {
        let n_there = self.items.len();
        match self.n_heavy {
            0 => n_there.min(batch.n_max.max(N_LIGHT_AT_ONCE)),
            // Records that no thread has waited for are shared, so that the last ones occupy
            // several writers.
            _ if batch.n_awaited < batch.n_max => n_there.div_ceil(2).min(batch.n_max),
            _ => n_there.min(batch.n_max),
        }
    }
}

impl Queue {
    pub(crate) fn new(bytes_max: u64, when_behind: WhenBehind) -> Queue {
        Queue {
            bytes_max,
            when_behind,
            state: Mutex::default(),
            has_room: Condvar::new(),
            has_work: Condvar::new(),
        }
    }

    /// The budget.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Whether models may have to wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.when_behind == WhenBehind::Wait
    }

    /// Whether the elements of a record exceed the whole budget.
    pub(crate) fn is_beyond_budget(&self, record: &Record) -> bool {
        n_element_bytes(record) > self.bytes_max
    }

    /// Adds a record. While the queue is full, it waits or refuses the record. A record larger than
    /// the whole budget is accepted once the queue is empty, so at any time the queue and the
    /// writers together hold no more than the budget or one record. Where the model may wait, it
    /// resumes after such a record only once that is written: otherwise it would allocate further
    /// tensors meanwhile.
    pub(crate) fn push(&self, job: WriteJob) -> Result<(), DropReason> {
        let bytes = job.cost();
        self.admit(job, bytes)?;
        // A record of that size was accepted alone and occupies the whole budget.
        if bytes > self.bytes_max && self.may_wait() {
            self.wait_for_budget();
        }
        Ok(())
    }

    /// Waits while the queue exceeds the budget.
    fn wait_for_budget(&self) {
        let mut state = self.lock();
        while state.end == QueueEnd::Open && state.bytes > self.bytes_max {
            state.n_waiting_for_room += 1;
            state = wait(&self.has_room, state);
            state.n_waiting_for_room -= 1;
        }
    }

    fn admit(&self, job: WriteJob, bytes: u64) -> Result<(), DropReason> {
        let mut state = self.lock();
        while state.end == QueueEnd::Open && !self.has_room_for(&state, bytes) {
            if self.when_behind == WhenBehind::Drop {
                return Err(DropReason::Behind);
            }
            state.n_waiting_for_room += 1;
            // Writers that wait for more records must not wait for this one.
            if state.n_waiting_for_work > 0 {
                self.has_work.notify_one();
            }
            state = wait(&self.has_room, state);
            state.n_waiting_for_room -= 1;
        }
        match state.end {
            QueueEnd::Open => {}
            QueueEnd::Closed => return Err(DropReason::Ended),
            QueueEnd::Abandoned => return Err(DropReason::Stopped),
        }
        state.bytes += bytes;
        state.n_heavy += usize::from(job.is_heavy());
        state.items.push_back(job);
        // The first record makes a writer wait for more; it sleeps until there are enough.
        let n_there = state.items.len();
        let n_wanted = state.n_wanted(state.n_awaited);
        let is_due = n_there == 1 || n_there >= n_wanted || state.bytes > self.bytes_max / 2;
        let is_awaited = is_due && state.n_waiting_for_work > 0;
        drop(state);
        if is_awaited {
            self.has_work.notify_one();
        }
        Ok(())
    }

    /// Takes the oldest records, as many as in `batch`, or more if none keeps elements in memory.
    /// Waits until there are that many, or half of the budget is used, but not for long: the model
    /// may be waiting for these records, or be idle. Returns fewer after the end of the queue, and
    /// none if it is empty then.
    pub(crate) fn pop(&self, batch: BatchSize) -> Vec<WriteJob> {
        let mut state = self.lock();
        // `admit` wakes a writer only when there is enough work, so it must know how much that is.
        state.n_awaited = state.n_awaited.max(batch.n_awaited);
        let mut is_late = false;
        loop {
            let n_there = state.items.len();
            let is_full = state.bytes > self.bytes_max / 2 || state.n_waiting_for_room > 0;
            let n_wanted = state.n_wanted(batch.n_awaited);
            let is_enough = n_there >= n_wanted || ((is_full || is_late) && n_there > 0);
            if is_enough || state.end != QueueEnd::Open {
                let n_taken = state.n_taken(batch);
                let taken: Vec<WriteJob> = state.items.drain(..n_taken).collect();
                state.n_heavy -= taken.iter().filter(|job| job.is_heavy()).count();
                // A wake-up may have been for more records than one writer takes, so the next
                // writer is woken for the rest.
                if !state.items.is_empty() && state.n_waiting_for_work > 0 {
                    self.has_work.notify_one();
                }
                return taken;
            }
            state.n_waiting_for_work += 1;
            if n_there > 0 {
                let waited = self.has_work.wait_timeout(state, GATHERING_MAX);
                let (back, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                is_late = timeout.timed_out();
                state = back;
            } else {
                state = wait(&self.has_work, state);
            }
            state.n_waiting_for_work -= 1;
        }
    }

    /// Frees the space of a record that a writer has finished.
    pub(crate) fn release(&self, bytes: u64) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        // A model that is woken for each written record sleeps again after each. Below three
        // quarters several records fit, so that model and writers take longer turns.
        let has_room = state.bytes <= self.bytes_max / 4 * 3;
        let is_awaited = state.n_waiting_for_room > 0 && has_room;
        drop(state);
        if is_awaited {
            self.has_room.notify_all();
        }
    }

    /// Lets waiting writers end when the last record is taken.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        // An abandoned queue stays abandoned: its records were counted as lost.
        if state.end == QueueEnd::Open {
            state.end = QueueEnd::Closed;
        }
        drop(state);
        self.wake_all();
    }

    /// Removes everything that no writer has started; from now on no record is accepted.
    pub(crate) fn abandon(&self) -> VecDeque<WriteJob> {
        let mut state = self.lock();
        state.end = QueueEnd::Abandoned;
        let items = std::mem::take(&mut state.items);
        state.n_heavy = 0;
        let bytes: u64 = items.iter().map(WriteJob::cost).sum();
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.wake_all();
        items
    }

    fn has_room_for(&self, state: &QueueState, bytes: u64) -> bool {
        // Without the first case a record beyond the whole budget would wait for ever.
        state.bytes == 0 || state.bytes.saturating_add(bytes) <= self.bytes_max
    }

    fn wake_all(&self) {
        self.has_work.notify_all();
        self.has_room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // A panic while the lock is held cannot leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of the elements that a record keeps in the host's memory.
fn n_element_bytes(record: &Record) -> u64 {
    let slots = record.slots();
    slots
        .map(|(_, _, tensor)| tensor.host_bytes().map_or(0, <[u8]>::len) as u64)
        .sum()
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
    condition
        .wait(state)
        .unwrap_or_else(PoisonError::into_inner)
}
