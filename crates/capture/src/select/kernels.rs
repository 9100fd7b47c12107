//! Operators that rules or marks choose.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_store::record::Operator;

use crate::{KernelRule, KernelSelection, OperatorSelection, rule_for_name, rule_for_operator};

/// What parts a scope from what is in it.
const SCOPE_END: char = '/';
/// The attribute by which an operator asks to be dumped.
const MARK: (&str, &str) = ("dump", "true");

/// Rules at work, and which of them were of use.
pub(super) struct Chosen<'a> {
    selection: Option<&'a KernelSelection>,
    marks: &'a [(String, bool)],
    used: HashSet<usize>,
}

impl<'a> Chosen<'a> {
    pub(super) fn new(rule: &'a OperatorSelection, marks: &'a [(String, bool)]) -> Chosen<'a> {
        Chosen {
            selection: rule.kernels.as_ref(),
            marks,
            used: HashSet::new(),
        }
    }

    /// Selects the operators that are chosen.
    pub(super) fn mark(&mut self, operators: &[Arc<Operator>], is_selected: &mut [bool]) {
        match self.selection {
            None => {}
            Some(KernelSelection::Rules(rules)) => {
                for (operator, is_selected) in operators.iter().zip(is_selected) {
                    *is_selected |= self.note(rule_for_operator(rules, operator));
                }
            }
            Some(KernelSelection::Marked) => {
                for (operator, is_selected) in operators.iter().zip(is_selected) {
                    let mark = last_mark(self.marks, &operator.op_name);
                    *is_selected |= mark.unwrap_or_else(|| marks_itself(operator));
                }
            }
        }
    }

    /// Whether a parameter or constant is chosen by its name.
    pub(super) fn has_name(&mut self, name: &str) -> bool {
        match self.selection {
            None => true,
            Some(KernelSelection::Rules(rules)) => self.note(rule_for_name(rules, name)),
            Some(KernelSelection::Marked) => last_mark(self.marks, name).unwrap_or(false),
        }
    }

    fn note(&mut self, hit: Option<usize>) -> bool {
        self.used.extend(hit);
        hit.is_some()
    }

    /// Texts of the rules that chose nothing.
    pub(super) fn unused(&self) -> Vec<String> {
        let rules: &[KernelRule] = match self.selection {
            Some(KernelSelection::Rules(rules)) => rules,
            _ => &[],
        };
        let unused = rules
            .iter()
            .enumerate()
            .filter(|(i, _)| !self.used.contains(i));
        unused.map(|(_, rule)| rule.text().to_owned()).collect()
    }
}

/// What the last mark says that is about the operator or a scope it is in.
fn last_mark(marks: &[(String, bool)], name: &str) -> Option<bool> {
    let concerns = |target: &str| {
        let rest = name.strip_prefix(target.trim_end_matches(SCOPE_END));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SCOPE_END))
    };
    let last = marks.iter().rev().find(|(target, _)| concerns(target));
    last.map(|(_, is_on)| *is_on)
}

/// Whether the operator says so of itself, as nodes of MindSpore's do.
fn marks_itself(operator: &Operator) -> bool {
    let (name, value) = MARK;
    let mut attributes = operator.attributes.iter();
    attributes.any(|(known, text)| known == name && text == value)
}
