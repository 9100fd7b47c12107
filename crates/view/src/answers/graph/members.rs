//! Operators of both sides that belong together, as the graph shows them.

use opscope_analysis::compare::result::{PairingEvidence, SkipReason, VerdictLevel};

use crate::viewed::{OperatorFacts, ShownSide};

/// Both sides, in the order of arrays that have one entry for each.
pub(super) const SIDES: [ShownSide; 2] = [ShownSide::Target, ShownSide::Golden];

/// An operator of a side.
pub(super) struct ShownMember<'a> {
    pub(super) op_type: &'a str,
    pub(super) op_name: &'a str,
    pub(super) model: Option<&'a str>,
    /// Which execution of the operator it is.
    pub(super) call: usize,
    /// Which of the executions of its name it is, as mappings count them; none if there is one.
    pub(super) number: Option<usize>,
    /// Its execution; none of a comparison without its dumps.
    pub(super) run: Option<usize>,
    /// The reason why it is in no pair, if it is in none.
    pub(super) reason: Option<SkipReason>,
}

/// Operators that belong together, or one alone.
#[derive(Default)]
pub(super) struct ShownNode<'a> {
    /// The pair, or the operator of a dump alone; none of an operator without a partner.
    pub(super) facts: Option<OperatorFacts<'a>>,
    /// Those of the target and of the golden side, in the order of execution.
    pub(super) members: [Vec<ShownMember<'a>>; 2],
    /// The groups around it from the outside.
    pub(super) scopes: Vec<String>,
}

impl ShownNode<'_> {
    /// Whether one side has nothing of it.
    pub(super) fn is_alone(&self) -> bool {
        self.members.iter().any(Vec::is_empty)
    }

    /// Whether one operator stands for several.
    pub(super) fn is_fused(&self) -> bool {
        let compared = self.facts.as_ref().and_then(|facts| facts.compared);
        let is_fusion = compared.is_some_and(|pair| pair.how == PairingEvidence::Fusion);
        !self.is_alone() && (is_fusion || self.members.iter().any(|members| members.len() > 1))
    }

    /// The number of the pair, or of the operator of a dump alone.
    pub(super) fn id(&self) -> Option<usize> {
        self.facts.as_ref().map(|facts| facts.id)
    }

    /// The verdict; what has no partner was compared with nothing.
    pub(super) fn level(&self) -> VerdictLevel {
        self.facts
            .as_ref()
            .map_or(VerdictLevel::Skip, |facts| facts.level)
    }

    /// Whether it is drawn as being at fault.
    pub(super) fn is_at_fault(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_at_fault)
    }
}
