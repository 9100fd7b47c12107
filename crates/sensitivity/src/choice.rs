//! Chooses the few operators to leave unrounded so that rounding the rest stays within a limit.

use std::collections::BTreeSet;

use opscope_engine::{EngineError, ResultRounding};
use opscope_tensor::RoundingFormat;

use crate::ranking::RankedOperator;
use crate::{OutputDistance, SensitivityStudy};

/// A choice of operators to leave unrounded.
#[derive(Clone, Debug)]
pub struct KeptChoice {
    /// Positions in the ranking, ascending.
    pub kept: Vec<usize>,
    /// The measured distance when all other operators are rounded together.
    pub distance: OutputDistance,
    /// Whether the distance is within the limit. False only if the outputs differ by more with
    /// nothing rounded.
    pub is_within: bool,
    /// Number of choices tried.
    pub n_tried: u64,
}

impl KeptChoice {
    /// Whether the operator at this position of the ranking stays unrounded.
    pub fn keeps(&self, position: usize) -> bool {
        self.kept.binary_search(&position).is_ok()
    }
}

/// Searches for a small choice whose distance is at most `limit`.
///
/// Operators whose results overflow always stay unrounded: these samples may not show the effect of
/// an infinity. Bisection then finds how many of the most sensitive operators must stay unrounded.
/// Finally each of them is dropped, the least sensitive first, if the distance stays within the
/// limit. No single operator can be dropped from the result, but a smaller set of other operators
/// may exist.
///
/// # Errors
/// [`EngineError`] of a run.
pub fn choose(
    study: &mut SensitivityStudy<'_>,
    format: RoundingFormat,
    ranking: &[RankedOperator],
    limit: f64,
) -> Result<KeptChoice, EngineError> {
    let mut search = ChoiceSearch {
        study,
        format,
        ranking,
        n_tried: 0,
    };
    let overflowing = ranking.iter().enumerate();
    let overflowing = overflowing.filter(|(_, ranked)| ranked.overflows);
    let always: BTreeSet<usize> = overflowing.map(|(position, _)| position).collect();
    let none = search.measure(&always)?;
    if none.rel_l2() <= limit {
        return Ok(search.found(always, none, true));
    }
    // With nothing rounded, the distance is that of two runs of the model, which may be too large.
    let every: BTreeSet<usize> = (0..ranking.len()).collect();
    let untouched = search.measure(&every)?;
    if untouched.rel_l2() > limit {
        return Ok(search.found(every, untouched, false));
    }
    // Invariant: `low` operators were not enough, and `high` are.
    let (mut low, mut high) = (0, ranking.len());
    let mut best = untouched;
    while high - low > 1 {
        let middle = low.midpoint(high);
        let kept = always.iter().copied().chain(0..middle);
        let distance = search.measure(&kept.collect())?;
        if distance.rel_l2() <= limit {
            (high, best) = (middle, distance);
        } else {
            low = middle;
        }
    }
    // Bisection keeps the whole head of the ranking, including operators whose errors others hide.
    let mut kept: BTreeSet<usize> = always.iter().copied().chain(0..high).collect();
    for candidate in (0..high).rev().filter(|at| !always.contains(at)) {
        kept.remove(&candidate);
        let distance = search.measure(&kept)?;
        if distance.rel_l2() <= limit {
            best = distance;
        } else {
            kept.insert(candidate);
        }
    }
    Ok(search.found(kept, best, true))
}

struct ChoiceSearch<'s, 'a> {
    study: &'s mut SensitivityStudy<'a>,
    format: RoundingFormat,
    ranking: &'s [RankedOperator],
    n_tried: u64,
}

impl ChoiceSearch<'_, '_> {
    /// The distance when all operators but `kept` are rounded.
    fn measure(&mut self, kept: &BTreeSet<usize>) -> Result<OutputDistance, EngineError> {
        self.n_tried += 1;
        let others = self.ranking.iter().enumerate();
        let others = others.filter(|(position, _)| !kept.contains(position));
        let tasks = others.map(|(_, ranked)| ranked.operator.task_id);
        self.study
            .distance(&ResultRounding::new(self.format, tasks))
    }

    fn found(
        &self,
        kept: BTreeSet<usize>,
        distance: OutputDistance,
        is_within: bool,
    ) -> KeptChoice {
        KeptChoice {
            kept: kept.into_iter().collect(),
            distance,
            is_within,
            n_tried: self.n_tried,
        }
    }
}
