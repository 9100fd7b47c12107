//! The operators sorted by the effect of rounding each alone.

use std::sync::Arc;

use opscope_engine::{EngineError, ResultRounding};
use opscope_store::record::Operator;
use opscope_tensor::RoundingFormat;

use crate::{OutputDistance, SensitivityStudy};

/// An operator, and the outputs' distance when only its results are rounded.
#[derive(Clone, Debug)]
pub struct RankedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// The distance.
    pub distance: OutputDistance,
    /// Whether rounding turns a finite result into an infinity.
    pub overflows: bool,
}

/// Rounds the results of one operator at a time, and sorts the operators by the distance of the
/// outputs, the largest first; ties stay in file order. `done` is called after each.
///
/// # Errors
/// [`EngineError`] of a run.
pub fn rank(
    study: &mut SensitivityStudy<'_>,
    format: RoundingFormat,
    mut done: impl FnMut(),
) -> Result<Vec<RankedOperator>, EngineError> {
    let mut ranking = Vec::new();
    for operator in study.roundable() {
        let alone = ResultRounding::new(format, [operator.task_id]);
        let distance = study.distance(&alone)?;
        let overflows = alone.has_overflowed();
        ranking.push(RankedOperator {
            operator,
            distance,
            overflows,
        });
        done();
    }
    // The sort is stable, and no distance is NaN.
    ranking.sort_by(|a, b| b.distance.rel_l2().total_cmp(&a.distance.rel_l2()));
    Ok(ranking)
}
