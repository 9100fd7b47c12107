//! The operators in the order of what rounding each of them does.

use std::sync::Arc;

use opscope_engine::{EngineError, ResultRounding};
use opscope_store::record::Operator;
use opscope_tensor::RoundingFormat;

use crate::{OutputDistance, SensitivityStudy};

/// An operator, with the outputs' distance when its results alone are rounded.
#[derive(Clone, Debug)]
pub struct RankedOperator {
    /// The operator.
    pub operator: Arc<Operator>,
    /// The distance.
    pub distance: OutputDistance,
    /// Whether a finite result of it is beyond the format, which has infinities.
    pub overflows: bool,
}

/// Rounds the results of one operator after the other, and sorts the operators by the distance of
/// the outputs, the largest first; equal ones stay in file order. `done` is told of each.
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
