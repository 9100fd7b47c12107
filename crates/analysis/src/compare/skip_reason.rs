//! Reasons why something was not compared, with their names in results.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::party::Party;

/// Why an operator, a slot or a file was not compared. `docs/compare.md` lists the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The other side has no such operator.
    #[default]
    Missing,
    /// The other side has no such rank, model or step.
    MissingPlace,
    /// The other side ran the operator less often.
    MissingRepeat,
    /// The operator with its name on the other side has another type.
    OtherType,
    /// Several operators of the other side are about equally similar to it.
    Ambiguous,
    /// It became part of a fused operator.
    InsideFusion,
    /// A mapping or a selection excludes it.
    LeftOut,
    /// The other side does not have the slot.
    MissingSlot,
    /// A file or slot cannot be read.
    Damaged,
    /// The sides have no evidence of the same kind.
    NoEvidence,
    /// The elements have no values, such as text.
    NotComparable,
    /// The shapes differ.
    Shape,
    /// Its parts on several ranks cannot be combined.
    InParts,
    /// It is a collective, which a side without ranks does not need.
    Collective,
    /// Its outputs have no defined value.
    NotJudged,
}

impl SkipReason {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Missing => "missing",
            SkipReason::MissingPlace => "missing_place",
            SkipReason::MissingRepeat => "missing_repeat",
            SkipReason::OtherType => "other_type",
            SkipReason::Ambiguous => "ambiguous",
            SkipReason::InsideFusion => "inside_fusion",
            SkipReason::LeftOut => "left_out",
            SkipReason::MissingSlot => "missing_slot",
            SkipReason::Damaged => "damaged",
            SkipReason::NoEvidence => "no_evidence",
            SkipReason::NotComparable => "not_comparable",
            SkipReason::Shape => "shape",
            SkipReason::InParts => "in_parts",
            SkipReason::Collective => "collective",
            SkipReason::NotJudged => "not_judged",
        }
    }
}

impl SkipReason {
    /// Whether it is no flaw of the comparison, because the other side needs no counterpart.
    pub fn is_expected(self) -> bool {
        self == SkipReason::Collective
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The side or sides of something that was not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SkipSide {
    /// The dump under test.
    Target,
    /// The trusted dump.
    Golden,
    /// Both of them.
    #[default]
    Both,
    /// The dump whose distance from the golden one is the yardstick.
    Reference,
}

impl SkipSide {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            SkipSide::Target => "target",
            SkipSide::Golden => "golden",
            SkipSide::Both => "both",
            SkipSide::Reference => "reference",
        }
    }
}

impl From<Party> for SkipSide {
    fn from(party: Party) -> SkipSide {
        party.pick(SkipSide::Target, SkipSide::Golden)
    }
}

impl fmt::Display for SkipSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
