//! What happened to everything that was offered.

use std::sync::atomic::{AtomicU64, Ordering};

use opscope_store::record::Side;
use opscope_tensor::NonFinite;

/// Counts of one session. A *record* here is one tensor of one operator execution: one slot.
///
/// `n_selected` is always `n_written + n_refused + n_dropped + n_failed`.
///
/// Tensors that have a record of their own beside their operator's, such as graph inputs and what
/// watched values hold later, count as offered and selected once more. Under
/// [`Purpose::Overflow`](crate::Purpose::Overflow) and
/// [`Purpose::Failures`](crate::Purpose::Failures) the tensors of operators that overflowed or failed
/// are the selected ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Operator executions that an engine showed.
    pub n_operators_seen: u64,
    /// Operator executions of which at least one tensor was written.
    pub n_operators_written: u64,
    /// Operator executions whose arithmetic overflowed; counted under
    /// [`Purpose::Overflow`](crate::Purpose::Overflow) only.
    pub n_operators_overflowed: u64,
    /// Tensors that those operators read and produced.
    pub n_offered: u64,
    /// Tensors that the plan selected.
    pub n_selected: u64,
    /// Tensors that the sink took. It writes no file for a record whose tensors are all empty.
    pub n_written: u64,
    /// Tensors that the sink took with all their elements.
    pub n_whole: u64,
    /// Tensors that have no place in the form of the dump, such as one without elements where each
    /// tensor is a file of its own.
    pub n_refused: u64,
    /// Selected tensors that never reached the sink: the operator failed, the session was ended, or
    /// the engine holds the value in a form without bytes, such as text.
    pub n_dropped: u64,
    /// Tensors that the sink refused.
    pub n_failed: u64,
    /// Files that were created.
    pub n_files: u64,
    /// Bytes of tensors that were selected.
    pub n_bytes_selected: u64,
    /// Bytes that reached the sink, headers included.
    pub n_bytes_written: u64,
}

/// The first tensor, in execution order, that holds NaN or an infinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstNonFinite {
    /// Execution of the model.
    pub step: u64,
    /// Position of the operator in the model.
    pub task_id: u32,
    /// The operator's type.
    pub op_type: String,
    /// The operator's name.
    pub op_name: String,
    /// Input or output.
    pub side: Side,
    /// Which of them.
    pub index: usize,
    /// How many elements, by kind.
    pub counts: NonFinite,
}

/// The first operator, in execution order, whose arithmetic overflowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstOverflow {
    /// Execution of the model.
    pub step: u64,
    /// Position of the operator in the model.
    pub task_id: u32,
    /// The operator's type.
    pub op_type: String,
    /// The operator's name.
    pub op_name: String,
    /// The status bits that say what overflowed.
    pub status: u64,
}

macro_rules! live_counters {
    ($($field:ident),* $(,)?) => {
        /// [`Counters`] that several threads add to.
        #[derive(Default)]
        pub(crate) struct LiveCounters { $(pub(crate) $field: AtomicU64,)* }

        impl LiveCounters {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

live_counters! {
    n_operators_seen, n_operators_written, n_operators_overflowed, n_offered, n_selected, n_written, n_whole, n_refused, n_dropped, n_failed,
    n_files, n_bytes_selected, n_bytes_written,
}

/// Adds to a counter. Counters are only read together after the threads have ended, so no order
/// between them is needed.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
