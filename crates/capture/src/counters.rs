//! Counts of everything that was offered to a session, by outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::WrittenFiles;

/// Counts of one session, in tensors: each slot of an operator execution counts once.
///
/// `n_selected` is always `n_written + n_refused + n_dropped + n_failed`.
///
/// Tensors with a separate record in addition to their operator's, such as graph inputs and later
/// contents of watched values, count as offered and selected once more. Under
/// [`Purpose::Overflow`](crate::Purpose::Overflow) and
/// [`Purpose::Failures`](crate::Purpose::Failures) the tensors of operators that overflowed or
/// failed are the selected ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Executions of models that began.
    pub n_steps: u64,
    /// Those in which the dump was on and whose number the plan selects. Operators of other
    /// executions are not inspected, so no count below includes them.
    pub n_steps_active: u64,
    /// Operator executions that an engine reported.
    pub n_operators_seen: u64,
    /// Operator executions with at least one written tensor.
    pub n_operators_written: u64,
    /// Operator executions whose arithmetic overflowed; counted under
    /// [`Purpose::Overflow`](crate::Purpose::Overflow) only.
    pub n_operators_overflowed: u64,
    /// Tensors that the reported operators read and produced.
    pub n_offered: u64,
    /// Tensors that the plan selected.
    pub n_selected: u64,
    /// Tensors that the sink took. It writes no file for a record whose tensors are all empty.
    pub n_written: u64,
    /// Tensors that the sink took with all their elements.
    pub n_whole: u64,
    /// Tensors that the dump's format cannot represent, such as an empty tensor where each tensor
    /// is a separate file.
    pub n_refused: u64,
    /// Selected tensors that never reached the sink; [`Counters::dropped`] has the reasons.
    pub n_dropped: u64,
    /// The same, by reason.
    pub dropped: DropCounts,
    /// Tensors that the sink refused.
    pub n_failed: u64,
    /// Executions of selected operators that were not inspected because capturing had ended or the
    /// writers were behind. Whether their tensors would have been selected is unknown, so no other
    /// count includes them. Always 0 under [`Purpose::Values`](crate::Purpose::Values).
    pub n_operators_skipped: u64,
    /// Files that were created, links included.
    pub n_files: u64,
    /// Those of the files that are additional names of existing bytes. Their tensors count as
    /// written, like any others.
    pub n_linked: u64,
    /// Bytes of tensors that were selected and were within the limits.
    pub n_bytes_selected: u64,
    /// Bytes that reached the sink, headers included.
    pub n_bytes_written: u64,
    /// Bytes of the linked files, which are not in `n_bytes_written`.
    pub n_bytes_linked: u64,
    /// Files that were removed again with a step that became too old.
    pub n_files_removed: u64,
    /// Bytes that reached the sink and were removed again.
    pub n_bytes_removed: u64,
}

impl Counters {
    /// Bytes of all files, as if linked ones had been written too.
    pub fn n_bytes_asked(&self) -> u64 {
        self.n_bytes_written.saturating_add(self.n_bytes_linked)
    }
}

/// Selected tensors that never reached the sink, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// The engine did not provide them: the value is in a form without bytes, such as a sequence,
    /// or in memory that cannot be read. Or they had to be computed
    /// ([`FloatView`](crate::FloatView)) from values that were not provided or do not match.
    pub n_not_shown: u64,
    /// The operator failed, or the engine stopped while it ran.
    pub n_operator_failed: u64,
    /// They were beyond [`SessionOptions::n_bytes_max`](crate::SessionOptions::n_bytes_max) or
    /// [`SessionOptions::n_tensors_max`](crate::SessionOptions::n_tensors_max).
    pub n_limit: u64,
    /// The queue was full, and the session does not wait.
    pub n_behind: u64,
    /// The sink had failed before, which ended capturing.
    pub n_stopped: u64,
    /// The session had ended.
    pub n_ended: u64,
}

impl DropCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, n)| n).sum()
    }

    /// The numbers with a short name for each.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("not_shown", self.n_not_shown),
            ("operator_failed", self.n_operator_failed),
            ("limit", self.n_limit),
            ("behind", self.n_behind),
            ("stopped", self.n_stopped),
            ("ended", self.n_ended),
        ]
    }
}

/// Why a selected tensor never reached the sink; see [`DropCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    NotShown,
    OperatorFailed,
    Limit,
    Behind,
    Stopped,
    Ended,
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
    /// The status bits of what overflowed.
    pub status: u64,
}

macro_rules! live_counters {
    ($($field:ident),*; dropped: $($reason:ident),* $(,)?) => {
        /// [`Counters`] that several threads add to.
        #[derive(Default)]
        pub(crate) struct LiveCounters {
            $(pub(crate) $field: AtomicU64,)*
            dropped: LiveDropCounts,
        }

        #[derive(Default)]
        struct LiveDropCounts { $($reason: AtomicU64,)* }

        impl LiveCounters {
            pub(crate) fn snapshot(&self) -> Counters {
                let dropped = DropCounts { $($reason: self.dropped.$reason.load(Ordering::Relaxed),)* };
                Counters {
                    $($field: self.$field.load(Ordering::Relaxed),)*
                    n_dropped: dropped.total(),
                    dropped,
                }
            }
        }

        impl Counters {
            /// All counts with their names.
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}

live_counters! {
    n_steps, n_steps_active,
    n_operators_seen, n_operators_written, n_operators_overflowed, n_operators_skipped, n_offered, n_selected, n_written,
    n_whole, n_refused, n_failed, n_files, n_linked, n_bytes_selected, n_bytes_written, n_bytes_linked, n_files_removed, n_bytes_removed;
    dropped: n_not_shown, n_operator_failed, n_limit, n_behind, n_stopped, n_ended,
}

impl LiveCounters {
    /// Counts selected tensors that will not reach the sink.
    pub(crate) fn count_dropped(&self, reason: DropReason, n: u64) {
        let dropped = &self.dropped;
        let counter = match reason {
            DropReason::NotShown => &dropped.n_not_shown,
            DropReason::OperatorFailed => &dropped.n_operator_failed,
            DropReason::Limit => &dropped.n_limit,
            DropReason::Behind => &dropped.n_behind,
            DropReason::Stopped => &dropped.n_stopped,
            DropReason::Ended => &dropped.n_ended,
        };
        add(counter, n);
    }

    /// Counts the files that a sink created.
    pub(crate) fn add_files(&self, written: WrittenFiles) {
        add(&self.n_files, written.n_files);
        add(&self.n_linked, written.n_linked);
        add(&self.n_bytes_written, written.n_bytes);
        add(&self.n_bytes_linked, written.n_bytes_linked);
    }
}

/// Adds to a counter. Counters are only read together after the threads have ended, so no order
/// between them is needed.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
