//! Findings about ranks that must agree.

use super::recomputed::ResultDifference;
use crate::compare::result::SlotKey;

/// Findings in a run, and how much was looked at.
#[derive(Debug, Default)]
pub struct RankDivergences {
    /// The findings, in an order in which none comes before another that it may follow from.
    pub findings: Vec<DivergenceFinding>,
    /// Collectives of which the results were computed again.
    pub n_recomputed: u64,
    /// Collectives whose results were set against each other alone, because what was given is not
    /// in the dump or the kind is not computed here.
    pub n_compared: u64,
    /// Collectives of which nothing could be checked.
    pub n_unchecked: u64,
    /// Collectives of which nothing tells the other ranks.
    pub n_unmatched: u64,
    /// Operators that several ranks executed with equal inputs.
    pub n_replicated: u64,
    /// Tensors that were set against the operator that made them.
    pub n_edges: u64,
    /// Parameters that several ranks read in several steps.
    pub n_parameters: u64,
    /// Tensors of which nothing tells the content.
    pub n_unknown: u64,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct DivergenceFinding {
    /// The kind of finding.
    pub kind: DivergenceKind,
    /// The execution that shows it, on the first of the ranks that are accused.
    pub run: usize,
    /// The tensor that shows it, where one does.
    pub slot: Option<SlotKey>,
    /// The ranks that are accused: one of them, or each, as [`is_each`](Self::is_each) says.
    pub ranks: Vec<u32>,
    /// Whether each of the ranks is accused, or one of them that nothing tells from the others.
    pub is_each: bool,
    /// The ranks that agree with each other.
    pub others: Vec<u32>,
    /// The collective, as a number of the run's meetings.
    pub meeting: Option<usize>,
    /// Where values differ, if elements were looked at.
    pub difference: Option<ResultDifference>,
    /// The facts that the finding rests on.
    pub evidence: DivergenceEvidence,
    /// Executions of the same operator in later steps with the same finding.
    pub later: Vec<usize>,
}

/// The things that must not be.
#[derive(Clone, Debug, PartialEq)]
pub enum DivergenceKind {
    /// Ranks of a group go on to different collectives; the number is that of the run's list.
    Desync(usize),
    /// A collective's result is not what its group gave.
    WrongResult,
    /// A collective's result has the right parts in a wrong order: the ranks by place.
    WrongOrder(Vec<u32>),
    /// A collective gave its ranks different results.
    UnequalResults,
    /// An operator made something else than on other ranks, of equal inputs.
    OperatorDiffers,
    /// Tensors that must be equal on several ranks are not, and nothing before explains it.
    ReplicaDiffers,
    /// A parameter that was equal on several ranks is not equal any more.
    Drifted(DriftedParameter),
    /// A tensor changed between the execution that made it, which is given, and its reader.
    Overwritten(usize),
}

/// A parameter that ranks had alike.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftedParameter {
    /// Its name.
    pub name: String,
    /// The last step in which it was equal on these ranks.
    pub equal_in: Option<u64>,
    /// Whether the gradients that the optimizer read in that step were equal; none if the dump does
    /// not show them.
    pub had_equal_gradients: Option<bool>,
}

impl DivergenceKind {
    /// Its name in documents.
    pub fn name(&self) -> &'static str {
        match self {
            DivergenceKind::Desync(_) => "desync",
            DivergenceKind::WrongResult => "wrong_result",
            DivergenceKind::WrongOrder(_) => "wrong_order",
            DivergenceKind::UnequalResults => "unequal_results",
            DivergenceKind::OperatorDiffers => "operator_differs",
            DivergenceKind::ReplicaDiffers | DivergenceKind::Drifted(_) => "replica_differs",
            DivergenceKind::Overwritten(_) => "overwritten",
        }
    }
}

/// The facts that a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceEvidence {
    /// The order of collectives.
    Order,
    /// Values that were computed again.
    Recomputed,
    /// Digests of all bits.
    Bits,
    /// Statistics, which differ.
    Statistics,
    /// Placements, which say that tensors are replicated.
    Placement,
    /// That the tensors were equal in earlier steps.
    History,
}

impl DivergenceEvidence {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            DivergenceEvidence::Order => "order",
            DivergenceEvidence::Recomputed => "recomputed",
            DivergenceEvidence::Bits => "bits",
            DivergenceEvidence::Statistics => "statistics",
            DivergenceEvidence::Placement => "placement",
            DivergenceEvidence::History => "history",
        }
    }
}

/// Members that stand apart.
pub(super) struct Minority {
    pub(super) accused: Vec<usize>,
    pub(super) others: Vec<usize>,
    /// Whether more than half of all agree against them.
    pub(super) is_each: bool,
}

/// Members apart from the class that more than half of all are in, or all if there is none; none if
/// there is one class alone.
pub(super) fn minority(mut classes: Vec<Vec<usize>>) -> Option<Minority> {
    if classes.len() < 2 {
        return None;
    }
    classes.sort_by_key(|class| (std::cmp::Reverse(class.len()), class[0]));
    let n: usize = classes.iter().map(Vec::len).sum();
    // A half against a half accuses nobody more than the others.
    let has_majority = classes[0].len() * 2 > n;
    let others = if has_majority {
        classes.remove(0)
    } else {
        Vec::new()
    };
    let mut accused: Vec<usize> = classes.into_iter().flatten().collect();
    accused.sort_unstable();
    Some(Minority {
        accused,
        others,
        is_each: has_majority,
    })
}

pub(super) fn evidence_of(is_of_bits: bool) -> DivergenceEvidence {
    if is_of_bits {
        DivergenceEvidence::Bits
    } else {
        DivergenceEvidence::Statistics
    }
}
