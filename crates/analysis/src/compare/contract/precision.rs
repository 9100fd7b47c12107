//! Operators of the target that compute in a shorter dtype than those around them.

use opscope_tensor::DType;

use crate::compare::result::{Comparison, NarrowOperator, OperatorResult};

/// More than one in so many operators is not an island: the model was converted, or runs under
/// autocast.
const SHARE: usize = 8;

/// Operators with a float output that is shorter than golden's, where nearly all others have
/// golden's dtype. Later steps show the same operators again.
pub(super) fn islands(comparison: &Comparison) -> Vec<NarrowOperator> {
    let first = comparison
        .operators
        .first()
        .map(|operator| operator.place().1);
    let floats: Vec<(&OperatorResult, [DType; 2])> = (comparison.operators.iter())
        .filter(|operator| Some(operator.place().1) == first)
        .filter_map(|operator| Some((operator, float_outputs(operator)?)))
        .collect();
    let narrow: Vec<NarrowOperator> = (floats.iter())
        .filter(|(_, [target, golden])| target.bits() < golden.bits())
        .map(|(operator, dtypes)| NarrowOperator {
            operator: operator.index,
            target: dtypes[0].name().to_owned(),
            golden: dtypes[1].name().to_owned(),
        })
        .collect();
    // In the smallest models a single one is an island, if enough others surround it.
    let is_island = narrow.len() * SHARE <= floats.len() || narrow.len() == 1 && floats.len() > 2;
    if is_island { narrow } else { Vec::new() }
}

/// The dtypes of an output with floats on both sides.
fn float_outputs(operator: &OperatorResult) -> Option<[DType; 2]> {
    let slot = operator.outputs().next()?;
    let dtypes: [DType; 2] = [
        slot.target.dtype.parse().ok()?,
        slot.golden.dtype.parse().ok()?,
    ];
    dtypes
        .iter()
        .all(|dtype| dtype.is_float())
        .then_some(dtypes)
}
