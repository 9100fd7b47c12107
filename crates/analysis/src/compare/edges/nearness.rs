//! Which values count as agreeing where the target is quantised, and all of its values differ.

use super::Edges;
use crate::compare::attribution::distance::slot_distance;
use crate::compare::result::{OperatorResult, PairingEvidence, SlotResult, VerdictLevel};

/// The relative error of rounding to 8 bits.
const ROUNDING: f64 = 0.01;
/// The least ratio of a distance that a fault makes to one that quantising makes.
const GROWTH_MIN: f64 = 2.0;

impl Edges<'_> {
    /// Whether a value agrees, of which something else is read that is `behind` apart. Of quantised
    /// values one that is far nearer does.
    pub(super) fn agrees(&self, slot: &SlotResult, behind: f64) -> bool {
        let is_nearer = || behind >= GROWTH_MIN * (slot_distance(slot) + ROUNDING);
        slot.level == VerdictLevel::Pass || self.is_quantised && slot.is_apart() && is_nearer()
    }

    /// Whether an operator of a quantised model has the name of golden's, and reads the same but for
    /// one input.
    pub(super) fn is_known_by_inputs(&self, operator: &OperatorResult) -> bool {
        let inputs = operator.inputs();
        let farthest = inputs.clone().map(slot_distance).fold(0.0, f64::max);
        let n = inputs.clone().count();
        let n_near = inputs.filter(|slot| self.agrees(slot, farthest)).count();
        self.is_quantised && operator.how == PairingEvidence::Name && n > 1 && n_near + 1 == n
    }
}
