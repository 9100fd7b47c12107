//! Decides whether an operator's arithmetic overflowed, from its inputs and outputs.
//!
//! An accelerator keeps a status register; a CPU has none that survives an operator.
//! [`ValueDetector`] replaces it: a pure function over one execution with inputs and outputs. The
//! rules, one for each bit of the register, are in `docs/overflow.md`.
//!
//! `opscope-capture` depends on this crate for the trait [`OverflowDetector`], for the
//! [`ArithmeticKind`] by which it judges NaN and infinities, and for [`ValueDetector`], the default
//! detector of a session. This crate knows no session, no thread and no file.

mod contract;
mod conv;
mod convert;
mod einsum;
mod elementwise;
mod float;
mod float_bits;
mod floats;
mod integer;
mod integers;
mod matmul;
mod needed;
mod non_finite;
mod operands;
mod operators;
mod reduce;
mod tally;
mod walk;

use opscope_store::file_format::op_debug::{AiCore, BlockRecord, StatusCause, TaskInfo};
use opscope_store::record::Record;

pub use self::needed::InfiniteResult;
pub use self::operators::{ArithmeticKind, arithmetic_kind, attributes_may_be_non_finite};

/// The overflows in one execution of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorOverflow {
    /// The bits of the status register, for all causes; never 0.
    pub status: u64,
    /// Where it happened, at most once for each cause and output.
    pub places: Vec<OutputOverflow>,
}

/// Elements of one output that overflowed for the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOverflow {
    /// The cause.
    pub cause: StatusCause,
    /// Index of the operator's output.
    pub output: usize,
    /// Number of such elements.
    pub n_elements: u64,
    /// Flat index of the first such element, in memory order.
    pub first_element: usize,
}

/// Decides whether executions of operators overflowed.
///
/// Called from several threads at once; the answer must depend on the record alone.
pub trait OverflowDetector: Send + Sync {
    /// Returns where the arithmetic of an execution overflowed; `None` if it did not.
    fn detect(&self, record: &Record) -> Option<OperatorOverflow>;
}

/// Detects overflows from the values that an operator read and produced.
///
/// The record must hold both sides: a missing input may have held anything, and an overflow that it
/// could explain is not reported. Passing on an infinity or NaN of an input is not an overflow.
/// Operators that only move, choose or make up values never overflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueDetector;

impl OverflowDetector for ValueDetector {
    fn detect(&self, record: &Record) -> Option<OperatorOverflow> {
        let mut places = match arithmetic_kind(&record.operator) {
            ArithmeticKind::Moves => return None,
            ArithmeticKind::Converts => convert::place(record).into_iter().collect(),
            ArithmeticKind::Accumulates => float::places(record, StatusCause::CubeAccumulate),
            ArithmeticKind::Computes => float::places(record, StatusCause::Float),
        };
        // An integer that wrapped leaves no trace in the result, so these are recomputed.
        places.extend(integer::place(record));
        OperatorOverflow::from_places(places)
    }
}

impl OperatorOverflow {
    fn from_places(places: Vec<OutputOverflow>) -> Option<OperatorOverflow> {
        let status = places
            .iter()
            .fold(0, |status, place| status | place.cause.bit());
        (status != 0).then_some(OperatorOverflow { status, places })
    }

    /// The record that a device would write: first layout, the AI Core block filled. Addresses,
    /// kinds of task and block numbers have no meaning here and are 0.
    pub fn to_record(&self, model_id: u64, stream_id: u64, task_id: u64) -> BlockRecord {
        BlockRecord {
            ai_core: AiCore {
                task: TaskInfo {
                    model_id,
                    stream_id,
                    task_id,
                    ..TaskInfo::default()
                },
                status: self.status,
                ..AiCore::default()
            },
            ..BlockRecord::default()
        }
    }
}
