//! Operators that rules or marks choose.

use std::collections::HashSet;
use std::sync::Arc;

use opscope_store::record::Operator;

use crate::{
    CompiledKernelRule, KernelSelection, OperatorSelection, rule_for_name, rule_for_operator,
};

/// Character that separates a scope from the names in it.
const SCOPE_END: char = '/';
/// The attribute by which an operator asks to be dumped.
const MARK: (&str, &str) = ("dump", "true");

/// Rules, and which of them matched.
pub(super) struct KernelMatches<'a> {
    selection: Option<&'a KernelSelection>,
    marks: &'a [(String, bool)],
    used: HashSet<usize>,
    /// Marks that are about a parameter or a constant.
    used_marks: HashSet<String>,
}

impl<'a> KernelMatches<'a> {
    pub(super) fn new(
        rule: &'a OperatorSelection,
        marks: &'a [(String, bool)],
    ) -> KernelMatches<'a> {
        KernelMatches {
            selection: rule.kernels.as_ref(),
            marks,
            used: HashSet::new(),
            used_marks: HashSet::new(),
        }
    }

    /// Selects the operators that are chosen.
    pub(super) fn mark(&mut self, operators: &[Arc<Operator>], is_selected: &mut [bool]) {
        match self.selection {
            None => {}
            Some(KernelSelection::Rules(rules)) => {
                // Every operator is asked even if it is selected already, so that each rule that
                // matches counts as used.
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
            Some(KernelSelection::Marked) => {
                let found = self
                    .marks
                    .iter()
                    .filter(|(target, _)| concerns(target, name));
                self.used_marks
                    .extend(found.map(|(target, _)| target.clone()));
                last_mark(self.marks, name).unwrap_or(false)
            }
        }
    }

    fn note(&mut self, hit: Option<usize>) -> bool {
        self.used.extend(hit);
        hit.is_some()
    }

    /// Whether the plan selects by marks but no marks exist.
    pub(super) fn is_unmarked(&self) -> bool {
        matches!(self.selection, Some(KernelSelection::Marked)) && self.marks.is_empty()
    }

    /// The marks that match nothing in the model. Call it after parameters have been matched.
    pub(super) fn unmatched_marks(&self, operators: &[Arc<Operator>]) -> Vec<String> {
        if !matches!(self.selection, Some(KernelSelection::Marked)) {
            return Vec::new();
        }
        let targets = self.marks.iter().map(|(target, _)| target);
        let unused = targets.filter(|target| {
            let mut names = operators.iter().map(|operator| &operator.op_name);
            !self.used_marks.contains(*target) && !names.any(|name| concerns(target, name))
        });
        unused.cloned().collect()
    }

    /// Texts of the rules that chose nothing.
    pub(super) fn unused(&self) -> Vec<String> {
        let rules: &[CompiledKernelRule] = match self.selection {
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

/// Returns whether the last mark about the operator, or about a scope it is in, is on; `None`
/// without one.
fn last_mark(marks: &[(String, bool)], name: &str) -> Option<bool> {
    // A part of a scope can be switched off again after the whole was switched on.
    let mut latest_first = marks.iter().rev();
    let last = latest_first.find(|(target, _)| concerns(target, name));
    last.map(|(_, is_on)| *is_on)
}

/// Whether a mark is of this name, or of a scope that it is in.
fn concerns(target: &str, name: &str) -> bool {
    let rest = name.strip_prefix(target.trim_end_matches(SCOPE_END));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SCOPE_END))
}

/// Whether the operator itself requests it, like nodes of MindSpore.
fn marks_itself(operator: &Operator) -> bool {
    let (name, value) = MARK;
    let mut attributes = operator.attributes.iter();
    attributes.any(|(known, text)| known == name && text == value)
}
