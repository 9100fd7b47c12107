//! Operators of both sides that belong together, as the graph shows them.

use opscope_analysis::compare::result::{PairingEvidence, SkipReason};

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
        let is_fusion = |facts: &OperatorFacts<'_>| {
            let how = facts.compared.map(|operator| operator.how);
            how == Some(PairingEvidence::Fusion)
        };
        !self.is_alone()
            && (self.facts.as_ref().is_some_and(is_fusion)
                || self.members.iter().any(|members| members.len() > 1))
    }
}
