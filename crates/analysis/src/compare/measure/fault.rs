//! Why matched slots were not measured.

use crate::compare::matching::{MatchedDumps, SlotPair, SlotRef};
use crate::compare::result::{OperatorName, Party, Skip, SkipReason, SkipSide};
use crate::compare::side::{ExecutionSlot, LoadError};
use crate::error_chain::chain;

/// Why two slots have no numbers.
pub(crate) enum MeasureFault {
    /// The shapes differ by more than axes of 1.
    Shape,
    /// The elements of one side cannot be read.
    Read(Party, LoadError),
    /// The parts of one side cannot be combined, and the reason.
    InParts(Party, String),
    /// They have no values to compare.
    Difference(String),
}

impl MeasureFault {
    /// The slots as ones that were not compared.
    pub(super) fn skip(self, sides: MatchedDumps<'_>, pair: SlotPair) -> Skip {
        let target = sides.target.slot(pair.target);
        match self {
            MeasureFault::Read(party, error) => {
                let golden = sides.golden.slot(pair.golden);
                let (place, slot) = party.pick((pair.target, target), (pair.golden, golden));
                let reason = match error {
                    LoadError::Elements(_) | LoadError::Damaged(_) => SkipReason::Damaged,
                    LoadError::NoElements => SkipReason::NoEvidence,
                    LoadError::InParts => SkipReason::InParts,
                };
                skip(sides, party.into(), place, slot, (reason, chain(&error)))
            }
            MeasureFault::InParts(party, message) => {
                let golden = sides.golden.slot(pair.golden);
                let (place, slot) = party.pick((pair.target, target), (pair.golden, golden));
                let side = party.pick(sides.target, sides.golden);
                // With other ranks there are other collectives, and what reads their results is compared
                // by itself.
                let is_collective = side.runs[place.run].collective.is_some();
                let reason = if is_collective {
                    SkipReason::Collective
                } else {
                    SkipReason::InParts
                };
                skip(sides, party.into(), place, slot, (reason, message))
            }
            MeasureFault::Difference(message) => skip(
                sides,
                SkipSide::Both,
                pair.target,
                target,
                (SkipReason::NotComparable, message),
            ),
            MeasureFault::Shape => skip(
                sides,
                SkipSide::Both,
                pair.target,
                target,
                (SkipReason::Shape, String::new()),
            ),
        }
    }
}

/// A slot that was not compared.
pub(super) fn skip(
    sides: MatchedDumps<'_>,
    side: SkipSide,
    place: SlotRef,
    slot: &ExecutionSlot,
    (reason, message): (SkipReason, String),
) -> Skip {
    let runs = if side == SkipSide::Golden {
        &sides.golden.runs
    } else {
        &sides.target.runs
    };
    Skip {
        side,
        operator: Some(OperatorName::for_execution(&runs[place.run])),
        slot: Some(slot.key()),
        path: Some(slot.path.display().to_string()),
        reason,
        message,
        ..Skip::default()
    }
}
