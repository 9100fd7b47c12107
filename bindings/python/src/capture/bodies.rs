//! Runs of the graphs inside operators: branches and loop bodies.

use std::sync::Arc;

use opscope_store::record::Operator;

use super::parts::GraphParts;

/// Number of runs of each body.
pub(super) struct BodyCalls(Vec<u64>);

impl BodyCalls {
    pub(super) fn new(parts: &GraphParts) -> BodyCalls {
        BodyCalls(vec![0; parts.bodies.len()])
    }

    /// Counts the start of a body's run; returns whether its operators belong to the model.
    pub(super) fn enter(&mut self, parts: &GraphParts, body: usize) -> bool {
        let (Some(part), Some(calls)) = (parts.bodies.get(body), self.0.get_mut(body)) else {
            return false;
        };
        *calls += 1;
        let is_dry = *calls <= part.n_dry_runs;
        // Resets nested bodies, which follow in the list.
        let mut is_inside = vec![false; parts.bodies.len()];
        is_inside[body] = true;
        for (inner, found) in parts.bodies.iter().enumerate().skip(body + 1) {
            is_inside[inner] = found.parent.is_some_and(|parent| is_inside[parent]);
            if is_inside[inner] {
                self.0[inner] = 0;
            }
        }
        !is_dry
    }

    /// Returns the operator under its name in this run of its body: loops append the iteration
    /// number, from 0, outer ones first.
    pub(super) fn named(&self, parts: &GraphParts, operator: usize) -> Option<Arc<Operator>> {
        let part = &parts.operators[operator];
        let mut numbers = Vec::new();
        let mut next = part.body;
        while let Some(body) = next {
            let found = &parts.bodies[body];
            let n_before = self.0[body].saturating_sub(1 + found.n_dry_runs);
            // A branch keeps its plain name unless it runs again: two records must not share a
            // name.
            if found.is_loop || n_before > 0 {
                numbers.push(n_before);
            }
            next = found.parent;
        }
        if numbers.is_empty() {
            return None;
        }
        let mut named = Operator::clone(&part.operator);
        for number in numbers.iter().rev() {
            named.op_name.push_str(&format!(".{number}"));
            named
                .iterations
                .push(i64::try_from(*number).unwrap_or(i64::MAX));
        }
        Some(Arc::new(named))
    }
}
