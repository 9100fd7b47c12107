//! Findings about ranks that should agree.

use super::recomputed::ResultDifference;
use opscope_analysis::compare::result::SlotKey;

/// Findings in a run, and how much was checked.
#[derive(Debug, Default)]
pub struct RankDivergences {
    /// The findings, causes before their possible consequences.
    pub findings: Vec<DivergenceFinding>,
    /// Collectives whose results were recomputed.
    pub n_recomputed: u64,
    /// Collectives whose results were only compared with each other, because the dump lacks their
    /// inputs or the kind cannot be recomputed.
    pub n_compared: u64,
    /// Collectives that could not be checked.
    pub n_unchecked: u64,
    /// Collectives whose other ranks are unknown.
    pub n_unmatched: u64,
    /// Operators that several ranks executed with equal inputs.
    pub n_replicated: u64,
    /// Tensors that were compared with their producer's output.
    pub n_edges: u64,
    /// Parameters that several ranks read in several steps.
    pub n_parameters: u64,
    /// Tensors with unknown content.
    pub n_unknown: u64,
}

/// A violated expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct DivergenceFinding {
    /// The kind of finding.
    pub kind: DivergenceKind,
    /// The execution that shows it, on the first suspected rank.
    pub run: usize,
    /// The tensor that shows it, if any.
    pub slot: Option<SlotKey>,
    /// The suspected ranks: one of them, or each, depending on [`is_each`](Self::is_each).
    pub ranks: Vec<u32>,
    /// Whether every rank in the list is a culprit, or only one that cannot be singled out.
    pub is_each: bool,
    /// The ranks that agree with each other.
    pub others: Vec<u32>,
    /// The collective, as an index into the run's meetings.
    pub meeting: Option<usize>,
    /// Where values differ, if elements were compared.
    pub difference: Option<ResultDifference>,
    /// The evidence for the finding.
    pub evidence: DivergenceEvidence,
    /// Executions of the same operator in later steps with the same finding.
    pub later: Vec<usize>,
}

/// Kinds of violated expectations.
#[derive(Clone, Debug, PartialEq)]
pub enum DivergenceKind {
    /// Ranks of a group go on to different collectives; an index into the run's desyncs.
    Desync(usize),
    /// A collective's result does not follow from its group's contributions.
    WrongResult,
    /// A collective's result has the right parts in a wrong order: the rank at each place.
    WrongOrder(Vec<u32>),
    /// A collective returned different results to its ranks.
    UnequalResults,
    /// An operator computed another result than on other ranks, from equal inputs.
    OperatorDiffers,
    /// Tensors that should be equal on several ranks differ, and no earlier finding explains it.
    ReplicaDiffers,
    /// A parameter that was equal on several ranks no longer is.
    Drifted(DriftedParameter),
    /// A tensor changed between its producer (the given execution) and its reader.
    Overwritten(usize),
}

/// A parameter that was equal on several ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftedParameter {
    /// Its name.
    pub name: String,
    /// The last step in which these ranks agreed.
    pub equal_in: Option<u64>,
    /// Whether the optimizer read equal gradients in that step; `None` if the dump does not show
    /// them.
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

/// The evidence for a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceEvidence {
    /// The order of collectives.
    Order,
    /// Recomputed values.
    Recomputed,
    /// Digests of all bits.
    Bits,
    /// Different statistics.
    Statistics,
    /// Placements that declare the tensors replicated.
    Placement,
    /// The tensors were equal in earlier steps.
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

/// Members that disagree with the rest.
pub(super) struct Minority {
    pub(super) accused: Vec<usize>,
    pub(super) others: Vec<usize>,
    /// Whether a majority of all members agrees against them.
    pub(super) is_each: bool,
}

/// The members outside the majority class, or all members if there is no majority. `None` if all
/// agree.
pub(super) fn minority(mut classes: Vec<Vec<usize>>) -> Option<Minority> {
    if classes.len() < 2 {
        return None;
    }
    classes.sort_by_key(|class| (std::cmp::Reverse(class.len()), class[0]));
    let n: usize = classes.iter().map(Vec::len).sum();
    // Half against half singles out neither side.
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
