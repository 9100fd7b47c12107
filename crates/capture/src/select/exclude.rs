//! Leaving out operators and tensors that are selected otherwise.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::{ModelId, Operator, SlotSide};

use crate::{Exclusion, OperatorRule, OperatorSelection, Plan, Purpose};

/// The exclusions that are about one model, by the operators they are about.
pub(super) struct ModelExclusions<'a> {
    by_name: HashMap<&'a str, ExcludedSlots>,
    by_type: HashMap<&'a str, ExcludedSlots>,
    /// Of these types operators are left out unless the plan names them.
    unnamed_types: HashSet<&'a str>,
    /// The names that the plan has of operators, for whatever reason.
    named: HashSet<&'a str>,
    /// Names in the plan's order.
    names: Vec<&'a str>,
}

#[derive(Default)]
struct ExcludedSlots {
    is_whole: bool,
    slots: HashSet<(SlotSide, usize)>,
}

impl<'a> ModelExclusions<'a> {
    /// The exclusions of `plan` that concern `model`, which `rule` is for.
    ///
    /// For overflow and failures single tensors are not excluded: neither can be judged from half
    /// of an operator.
    pub(super) fn new(
        plan: &'a Plan,
        rule: &'a OperatorSelection,
        model: &ModelId,
    ) -> ModelExclusions<'a> {
        let ends = rule
            .ranges
            .iter()
            .flat_map(|range| [&range.begin, &range.end]);
        let named = rule.names.iter().flatten().chain(&rule.watched).chain(ends);
        let mut exclusions = ModelExclusions {
            by_name: HashMap::new(),
            by_type: HashMap::new(),
            unnamed_types: HashSet::new(),
            named: named.map(String::as_str).collect(),
            names: Vec::new(),
        };
        // Overflows and failures are judged by all tensors of an operator.
        let has_slots = matches!(plan.purpose, Purpose::Values | Purpose::Watch);
        for exclusion in plan.excluded.iter().filter(|e| concerns(e, model)) {
            let excluded = match &exclusion.operators {
                OperatorRule::Name(name) => {
                    exclusions.names.push(name);
                    exclusions.by_name.entry(name).or_default()
                }
                OperatorRule::Type(op_type) => exclusions.by_type.entry(op_type).or_default(),
                OperatorRule::UnnamedOfType(op_type) => {
                    exclusions.unnamed_types.insert(op_type);
                    continue;
                }
            };
            match &exclusion.slots {
                None => excluded.is_whole = true,
                Some(slots) if has_slots => excluded.slots.extend(slots),
                Some(_) => {}
            }
        }
        exclusions
    }

    /// Adds the names that neither an operator nor a graph input has.
    pub(super) fn add_unmatched(
        &self,
        operators: &[Arc<Operator>],
        graph_inputs: &[String],
        unmatched: &mut Vec<String>,
    ) {
        // A graph input with a separate record may be excluded by its name as well.
        let names = operators.iter().map(|operator| &operator.op_name);
        let known: HashSet<&str> = names.chain(graph_inputs).map(String::as_str).collect();
        let missing = self.names.iter().filter(|name| !known.contains(*name));
        unmatched.extend(missing.map(|name| (*name).to_owned()));
    }

    /// Whether the operator is left out.
    pub(super) fn whole(&self, operator: &Operator) -> bool {
        self.about(operator).any(|excluded| excluded.is_whole)
            || (self.unnamed_types.contains(operator.op_type.as_str()) && !self.names(operator))
    }

    /// Whether the plan has one of the operator's names.
    fn names(&self, operator: &Operator) -> bool {
        let mut own = std::iter::once(&operator.op_name).chain(&operator.original_names);
        own.any(|name| self.named.contains(name.as_str()))
    }

    /// Whether one of the operator's tensors is left out.
    pub(super) fn slot(&self, operator: &Operator, side: SlotSide, index: usize) -> bool {
        self.about(operator)
            .any(|excluded| excluded.slots.contains(&(side, index)))
    }

    fn about(&self, operator: &Operator) -> impl Iterator<Item = &ExcludedSlots> {
        let by_name = self.by_name.get(operator.op_name.as_str());
        by_name
            .into_iter()
            .chain(self.by_type.get(operator.op_type.as_str()))
    }
}

fn concerns(exclusion: &Exclusion, model: &ModelId) -> bool {
    exclusion
        .model
        .as_ref()
        .is_none_or(|name| *name == model.file_stem || *name == model.graph_name)
}
