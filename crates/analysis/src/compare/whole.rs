//! Assembles tensors from the parts that ranks hold.
//!
//! Operators of all ranks are merged into one without a rank, and its slots become whole tensors
//! that are read piece by piece. `docs/compare/ranks.md` has the rules.
//!
//! | module | job |
//! | --- | --- |
//! | `rules` | rank rules of a mapping |
//! | `cut` | how an axis is split, and the places of the parts |
//! | `note` | builds a whole tensor from notes and parts |
//! | `grouping` | which executions of ranks are one operator |
//! | `pipeline` | stages of a pipeline, and the order of their operators |
//! | `gather` | merges executions of ranks |
//! | `inferred` | parts without a note, by comparison with the other side |
//! | `candidate` | how a slot may be shared, and whether it agrees so |
//! | `share` | the ways in which ranks may share axes |
//! | `likeness` | whether the tensor of ranks is that of the other side |
//! | `movement` | operators by which ranks cut and join tensors |
//! | `unlike` | ranks that should hold one tensor, and do not |
//! | `names` | numeric names, which differ with the number of ranks |
//! | `tensor` | a whole tensor: which part holds which element |
//! | `read` | its elements, piece by piece |
//! | `reduce` | reduces several contributions to one value |
//! | `replicas` | checks that replicated parts agree |
//! | `measured` | the difference of two whole tensors |

mod candidate;
mod cut;
mod gather;
mod grouping;
mod inferred;
mod likeness;
mod measured;
mod movement;
mod names;
mod note;
mod part_axes;
mod pipeline;
mod read;
mod reduce;
mod replicas;
mod rules;
mod share;
mod shared_axis;
mod tensor;
#[cfg(test)]
mod tests;
mod unlike;

pub(super) use gather::{has_placements, put_together, share_otherwise};
pub(super) use inferred::cut_like_others;
pub(super) use measured::{WholeNumbers, differing_parts, measure_whole};
pub(super) use movement::moves_parts;
pub(super) use names::name_by_call;
pub(super) use replicas::read_all;
pub(super) use rules::CheckedRules;
pub use rules::{
    PaddingSide, RankRules, RenumberRule, SideRules, TensorRule, TokenNumbers, TokenRule,
};
pub use tensor::{RankPart, WholeTensor};
