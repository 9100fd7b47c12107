//! Inputs that read another value of the network than golden's operator does.

use opscope_store::record::SlotSide;

use super::{ComparedValues, is_apart, is_one_type, name_of, wired_alike};
use crate::compare::matching::{MatchEvidence, MatchedDumps, RunPair, SlotRef};
use crate::compare::result::RewiredInput;
use crate::compare::result::{Cause, OperatorName, OperatorResult, PartingOperator};

impl ComparedValues {
    /// The finding on a pair of one name or origin that reads another value of the same network, of
    /// which values tell nothing, as that it makes is made elsewhere as well.
    pub(super) fn rewired_pair(
        &self,
        sides: MatchedDumps<'_>,
        pair: &RunPair,
        operator: &OperatorResult,
    ) -> Option<PartingOperator> {
        let (&[target], &[golden]) = (&pair.target[..], &pair.golden[..]) else {
            return None;
        };
        let is_known = matches!(pair.how, MatchEvidence::Name | MatchEvidence::Origin)
            && is_one_type(sides, pair);
        let mut inputs = operator.inputs();
        let mut outputs = operator.outputs();
        if !is_known || inputs.any(|slot| is_apart(slot) && slot.agreement.is_none()) {
            return None;
        }
        let output = outputs.find(|slot| is_apart(slot) && slot.agreement.is_none())?;
        let rewired = self.rewired(sides, [target, golden]);
        (!rewired.is_empty()).then(|| PartingOperator {
            operator: operator.index,
            name: OperatorName::for_execution(&sides.target.runs[target]),
            slot: output.slot,
            cause: Cause::Own,
            rewired,
            ..PartingOperator::default()
        })
    }

    /// Inputs of an operator that are on the golden side, and that its operator there does not
    /// read, while it reads something else that the target has.
    pub(super) fn rewired(
        &self,
        sides: MatchedDumps<'_>,
        [target, golden]: [usize; 2],
    ) -> Vec<RewiredInput> {
        let [of_target, of_golden] = &self.sides;
        let mut left = of_golden.inputs_of(golden).filter(|&value| {
            let equal = self.equals[1][value.0];
            of_golden.values[value.0].is_computed()
                && equal.is_some_and(|equal| !of_target.reads(target, equal))
        });
        let Some(left) = left.next() else {
            return Vec::new();
        };
        let instead = name_of(sides, of_golden.first_slot(left));
        let slots = sides.target.runs[target].slots.iter().enumerate();
        let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
        let pair = sides.matching.pair_of([target, golden]);
        let rewired = inputs.filter_map(|(slot, described)| {
            let of_slot = SlotRef { run: target, slot };
            let value = of_target.value_of(of_slot)?;
            // Codes are the same where a scale takes the place of a factor.
            let [own, other] = [&of_target.values[value.0], &of_golden.values[left.0]];
            let equal = self.equals[0][value.0].filter(|_| own.is_computed())?;
            let mut slots = pair.into_iter().flat_map(|pair| &pair.slots);
            let found = slots.find(|pair| pair.target == of_slot);
            let is_wired_alike = found.is_some_and(|pair| wired_alike(sides, pair));
            let is_other = !of_golden.reads(golden, equal) && !is_wired_alike;
            (is_other && own.is_integer == other.is_integer).then(|| RewiredInput {
                slot: described.key(),
                golden: name_of(sides, of_golden.first_slot(equal)),
                instead: Some(instead.clone()),
            })
        });
        rewired.collect()
    }
}
