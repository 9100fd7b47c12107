//! Operators by which ranks cut and join tensors that one process has whole.

use crate::compare::attribution::kinds::plain_type;
use crate::compare::side::ComparedDump;

/// Types of operators that take some elements of their input.
const SELECTING: [&str; 9] = [
    "split",
    "split_with_sizes",
    "chunk",
    "tensor_split",
    "unbind",
    "slice",
    "narrow",
    "select",
    "index_select",
];
/// Types of operators that put tensors one behind the other.
const JOINING: [&str; 4] = ["cat", "concat", "concatenate", "stack"];
/// Types of operators that count or fill, and read no tensor for it.
const FILLING: [&str; 8] = [
    "arange",
    "range",
    "linspace",
    "zeros",
    "ones",
    "full",
    "eye",
    "new_zeros",
];

pub(super) fn selects(op_type: &str) -> bool {
    SELECTING.contains(&&*plain_type(op_type))
}

pub(super) fn fills(op_type: &str) -> bool {
    FILLING.contains(&&*plain_type(op_type))
}

/// Whether an operator takes or joins elements of which none comes from a collective.
pub(in crate::compare) fn moves_parts(side: &ComparedDump, run: usize) -> bool {
    let op_type = &side.runs[run].op_type;
    let is_moving = selects(op_type) || JOINING.contains(&&*plain_type(op_type));
    let mut made = side
        .inputs_of(run)
        .filter_map(|slot| side.producer_of(slot));
    is_moving && !made.any(|made| side.runs[made.run].collective.is_some())
}
