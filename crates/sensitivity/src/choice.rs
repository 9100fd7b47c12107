//! The few operators that are kept as they are, so that rounding all others stays within a limit.

use std::collections::BTreeSet;

use opscope_engine::{EngineError, ResultRounding};
use opscope_tensor::RoundingFormat;

use crate::ranking::RankedOperator;
use crate::{OutputDistance, SensitivityStudy};

/// A choice of operators that are kept.
#[derive(Clone, Debug)]
pub struct KeptChoice {
    /// Positions in the ranking, ascending.
    pub kept: Vec<usize>,
    /// The distance when all operators but these are rounded at once, as a run has shown.
    pub distance: OutputDistance,
    /// Whether it is within the limit. It is not only if the outputs move by more with nothing
    /// rounded.
    pub is_within: bool,
    /// How many choices were tried.
    pub n_tried: u64,
}

impl KeptChoice {
    /// Whether the operator at this position of the ranking is kept.
    pub fn keeps(&self, position: usize) -> bool {
        self.kept.binary_search(&position).is_ok()
    }
}

/// Looks for a small choice whose distance is at most `limit`.
///
/// Operators whose results overflow are kept in any case: these samples may not show what becomes of
/// an infinity. Then it begins with the operators that do most by themselves: bisection finds how many of them have
/// to be kept. Then each of them is given up, the least sensitive first, if the distance stays
/// within the limit. The result is a set from which no single operator was found that could be
/// left out; there may be a smaller one that is made of others.
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
    // With nothing rounded the distance is that of the model from itself, which may be too large.
    let every: BTreeSet<usize> = (0..ranking.len()).collect();
    let untouched = search.measure(&every)?;
    if untouched.rel_l2() > limit {
        return Ok(search.found(every, untouched, false));
    }
    // Fewer than `low + 1` do not suffice as far as was tried, and `high` do.
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
    // Bisection takes the head of the ranking whole, with operators whose errors others hide.
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
