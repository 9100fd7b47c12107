//! Matching a plan against a loaded model.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_store::record::{ModelId, Operator};

use crate::{ModelSelection, OperatorSelection, Plan};

/// What a plan keeps of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// For each task id, whether the operator is kept.
    pub by_task: Vec<bool>,
    /// Operator names that the plan lists and the model lacks, in the plan's order.
    pub unmatched: Vec<String>,
    /// Whether the plan has a rule for this model at all.
    pub is_model_matched: bool,
}

/// Matches `plan` against a model with these operators.
pub fn select(plan: &Plan, model: &ModelId, operators: &[Arc<Operator>]) -> Selected {
    let n_tasks = operators
        .iter()
        .map(|op| op.task_id as usize + 1)
        .max()
        .unwrap_or(0);
    let mut by_task = vec![false; n_tasks];
    let mut unmatched = Vec::new();
    let rule = rule_for(&plan.models, model);
    match rule {
        None => {}
        Some(OperatorSelection { names: None, .. }) => by_task.fill(true),
        Some(OperatorSelection {
            names: Some(names), ..
        }) => {
            let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
            let mut found = HashSet::new();
            for operator in operators
                .iter()
                .filter(|op| wanted.contains(op.op_name.as_str()))
            {
                by_task[operator.task_id as usize] = true;
                found.insert(operator.op_name.as_str());
            }
            unmatched = names
                .iter()
                .filter(|n| !found.contains(n.as_str()))
                .cloned()
                .collect();
        }
    }
    Selected {
        by_task,
        unmatched,
        is_model_matched: rule.is_some(),
    }
}

fn rule_for<'a>(models: &'a ModelSelection, model: &ModelId) -> Option<&'a OperatorSelection> {
    let named = |rules: &'a [(String, OperatorSelection)], wanted: &str| {
        rules
            .iter()
            .rev()
            .find(|(name, _)| name == wanted)
            .map(|(_, rule)| rule)
    };
    match models {
        ModelSelection::None => None,
        ModelSelection::Every(rule) => Some(rule),
        ModelSelection::Named(rules) => {
            named(rules, &model.file_stem).or_else(|| named(rules, &model.graph_name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators(names: &[&str]) -> Vec<Arc<Operator>> {
        let operator = |(i, name): (usize, &&str)| {
            Arc::new(Operator {
                task_id: i as u32,
                op_type: "T".into(),
                op_name: (*name).to_owned(),
                inputs: vec![],
                outputs: vec![],
                ..Operator::default()
            })
        };
        names.iter().enumerate().map(operator).collect()
    }

    fn check(models: ModelSelection, by_task: &[bool], unmatched: &[&str], is_model_matched: bool) {
        let plan = Plan {
            models,
            ..Plan::everything()
        };
        let model = ModelId {
            file_stem: "file".into(),
            graph_name: "graph".into(),
            load: Some(1),
            device: 0,
        };
        let selected = select(&plan, &model, &operators(&["a", "b", "a"]));
        let unmatched = unmatched.iter().map(|name| (*name).to_owned()).collect();
        let expected = Selected {
            by_task: by_task.to_vec(),
            unmatched,
            is_model_matched,
        };
        assert_eq!(selected, expected);
    }

    #[test]
    fn rules_and_names() {
        let named = |names: &[&str]| OperatorSelection::named(names.iter().copied());
        let rule = |model: &str, names: &[&str]| (model.to_owned(), named(names));
        check(ModelSelection::None, &[false; 3], &[], false);
        check(
            ModelSelection::Every(OperatorSelection::every()),
            &[true; 3],
            &[],
            true,
        );
        check(
            ModelSelection::Every(named(&["a", "z", "A"])),
            &[true, false, true],
            &["z", "A"],
            true,
        );
        check(
            ModelSelection::Named(vec![rule("graph", &["a"]), rule("file", &["b"])]),
            &[false, true, false],
            &[],
            true,
        );
        check(
            ModelSelection::Named(vec![rule("graph", &["b"]), rule("graph", &["a"])]),
            &[true, false, true],
            &[],
            true,
        );
        check(
            ModelSelection::Named(vec![rule("other", &["a"])]),
            &[false; 3],
            &[],
            false,
        );
    }
}
