//! Tensors that are put together from the parts that ranks hold.
//!
//! Operators of all ranks become one without a rank, and its slots become whole tensors that are
//! read a piece at a time. `docs/compare/ranks.md` has the rules.
//!
//! | module | job |
//! | --- | --- |
//! | `rules` | what a mapping says of ranks |
//! | `cut` | how an axis is cut, and where the parts belong |
//! | `note` | from notes and parts to a whole tensor |
//! | `gather` | which executions of ranks are one |
//! | `inferred` | parts of which no note tells, by what the other side has |
//! | `names` | names that are numbers, which are others with other ranks |
//! | `tensor` | a whole tensor: which part holds which element |
//! | `read` | its elements, a piece at a time |
//! | `reduce` | one value of several contributions |
//! | `replicas` | whether parts that must agree do |
//! | `measured` | the difference of two whole tensors |

mod cut;
mod gather;
mod inferred;
mod measured;
mod names;
mod note;
mod read;
mod reduce;
mod replicas;
mod rules;
mod tensor;
#[cfg(test)]
mod tests;

pub(in crate::compare) use gather::{has_placements, put_together, share_otherwise};
pub(in crate::compare) use inferred::cut_like_others;
pub(in crate::compare) use measured::{WholeNumbers, differing_parts, measure_whole};
pub(in crate::compare) use names::name_by_call;
pub(in crate::compare) use replicas::read_all;
pub(in crate::compare) use rules::CheckedRules;
pub use rules::{
    PaddingSide, RankRules, RenumberRule, SideRules, TensorRule, TokenNumbers, TokenRule,
};
pub use tensor::{RankPart, WholeTensor};
