//! Findings about the ranks from whose parts a slot was assembled.

use opscope_store::SharedText;
use serde::{Deserialize, Serialize};

use super::metrics::Metrics;
use super::party::Party;

/// The ranks of a slot's parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotRanks {
    /// Number of ranks from whose parts the target's tensor was assembled; 0 if it is in one piece.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_target: usize,
    /// The same for the golden side.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_golden: usize,
    /// Whether ranks without notes hold the same elements, and are considered replicas only for
    /// that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_unnoted_replicas: bool,
    /// Whether the mapping leaves the sharing open (`varying`) and the ranks hold parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_varying: bool,
    /// Whether the ranks' tensors count as replicas because one of them, or their sum or mean, is
    /// the other side's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inferred: bool,
    /// Whether each rank reads its contribution to a sum or mean that the other side has: no
    /// collective reduces them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unreduced: bool,
    /// The operators that compute it, if ranks have several in place of each other. Only of slots
    /// that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<RankOperator>,
    /// Replicas that do not have the same elements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaMismatch>,
    /// The element with the largest difference: its index in the whole tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Vec<u64>>,
    /// The parts that hold that element.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_parts: Vec<PartElement>,
    /// The parts of the target with elements that differ, those with most of them first; of a sum,
    /// all that contribute. Only of the operators that the verdict names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<PartApart>,
    /// Whether these are all parts of the target that could differ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_everywhere: bool,
}

/// An operator that some ranks have in the place of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankOperator {
    /// The ranks.
    pub ranks: Vec<u32>,
    /// Its type.
    pub op_type: SharedText,
    /// Its name.
    pub op_name: SharedText,
    /// The line of the program that calls it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Replicas that do not agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaMismatch {
    /// The side.
    pub side: Party,
    /// The ranks that disagree with the others.
    pub apart: Vec<u32>,
    /// The ranks that have what was compared.
    pub others: Vec<u32>,
    /// Whether two groups of ranks are equally large, so that the count does not decide which is
    /// right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tied: bool,
    /// The tensor with the disagreeing parts, compared with the tensor that was used.
    pub metrics: Metrics,
}

/// An element in the part of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartElement {
    /// The side.
    pub side: Party,
    /// The rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Its place on the axes of the mesh that share the tensor, as `tp=1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub coordinates: String,
    /// The index in the rank's own tensor.
    pub index: Vec<u64>,
}

/// A part with elements that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartApart {
    /// The side: the target, unless only the golden side is in parts.
    pub side: Party,
    /// The ranks that hold the part; several of a sum, and replicas.
    pub ranks: Vec<u32>,
    /// Their place on the axes of the mesh that share the tensor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub coordinates: String,
    /// The part of the whole tensor, as Python would index it.
    pub region: String,
    /// Number of its elements that differ.
    pub n: u64,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}
