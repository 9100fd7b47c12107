//! Matched operators of both sides, as the graph shows them.

use opscope_analysis::compare::result::{PairingEvidence, SkipReason, VerdictLevel};

use crate::viewed::{OperatorFacts, ShownSide};

/// Both sides, in the order of arrays with one entry for each.
pub(super) const SIDES: [ShownSide; 2] = [ShownSide::Target, ShownSide::Golden];

/// An operator of a side.
pub(super) struct ShownMember<'a> {
    pub(super) op_type: &'a str,
    pub(super) op_name: &'a str,
    pub(super) model: Option<&'a str>,
    /// The operator's execution number.
    pub(super) call: usize,
    /// The number among executions of the same name, as mappings count them; `None` if there is
    /// one.
    pub(super) number: Option<usize>,
    /// Its execution; `None` for a comparison without its dumps.
    pub(super) run: Option<usize>,
    /// Why it is unmatched, if so.
    pub(super) reason: Option<SkipReason>,
}

/// A set of matched operators, or a single unmatched one.
#[derive(Default)]
pub(super) struct ShownNode<'a> {
    /// The pair, or the operator of a single dump; `None` for an unmatched operator.
    pub(super) facts: Option<OperatorFacts<'a>>,
    /// The target's and golden's operators, in execution order.
    pub(super) members: [Vec<ShownMember<'a>>; 2],
    /// The enclosing groups, outermost first.
    pub(super) scopes: Vec<String>,
}

impl ShownNode<'_> {
    /// Whether one side has no operator here.
    pub(super) fn is_alone(&self) -> bool {
        self.members.iter().any(Vec::is_empty)
    }

    /// Whether one operator replaces several.
    pub(super) fn is_fused(&self) -> bool {
        let compared = self.facts.as_ref().and_then(|facts| facts.compared);
        let is_fusion = compared.is_some_and(|pair| pair.how == PairingEvidence::Fusion);
        !self.is_alone() && (is_fusion || self.members.iter().any(|members| members.len() > 1))
    }

    /// The number of the pair, or of the operator of a single dump.
    pub(super) fn id(&self) -> Option<usize> {
        self.facts.as_ref().map(|facts| facts.id)
    }

    /// The verdict; unmatched operators were not compared.
    pub(super) fn level(&self) -> VerdictLevel {
        self.facts
            .as_ref()
            .map_or(VerdictLevel::Skip, |facts| facts.level)
    }

    /// Whether it is drawn as faulty.
    pub(super) fn is_at_fault(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_at_fault)
    }
}
