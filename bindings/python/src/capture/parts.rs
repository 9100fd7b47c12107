//! The parts of a graph: its operators, its values, and the graphs inside operators.

use std::sync::Arc;

use opscope_capture::SelectedSlots;
use opscope_store::record::Operator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::description::{BodyDescription, OperatorDescription, Stability, ValueDescription};
use super::reason::UnseenReason;

/// The static parts of a graph.
pub(super) struct GraphParts {
    pub(super) operators: Vec<OperatorPart>,
    pub(super) values: Vec<ValuePart>,
    pub(super) bodies: Vec<BodyPart>,
    /// The graph's name.
    pub(super) name: String,
}

pub(super) struct OperatorPart {
    pub(super) operator: Arc<Operator>,
    /// Values in its record, by position.
    pub(super) inputs: Vec<(usize, usize)>,
    /// Values by number, one per result.
    pub(super) outputs: Vec<Option<usize>>,
    /// The operator after which its results are passed, by number, if another.
    pub(super) shown_after: Option<usize>,
    /// All values that it reads, by number.
    pub(super) reads: Vec<usize>,
    /// Whether it has a record.
    pub(super) is_kept: bool,
    /// Values that are not needed after it.
    pub(super) last_uses: Vec<usize>,
    /// The enclosing body, by number.
    pub(super) body: Option<usize>,
    /// Its bodies that cannot be observed.
    pub(super) hidden: Vec<usize>,
}

pub(super) struct ValuePart {
    pub(super) name: String,
    pub(super) stability: Stability,
    /// Whether any record contains it.
    pub(super) is_wanted: bool,
    pub(super) reason: Option<UnseenReason>,
}

/// A graph inside an operator.
pub(super) struct BodyPart {
    /// Its own operators.
    pub(super) operators: Vec<usize>,
    pub(super) parent: Option<usize>,
    pub(super) is_loop: bool,
    pub(super) n_dry_runs: u64,
    /// Why its operators cannot be observed, if so.
    pub(super) reason: Option<UnseenReason>,
}

impl GraphParts {
    pub(super) fn add(
        &mut self,
        operator: Arc<Operator>,
        described: &OperatorDescription,
        kept: Option<&SelectedSlots>,
    ) {
        let mut part = OperatorPart {
            operator,
            inputs: Vec::new(),
            outputs: described.outputs.clone(),
            shown_after: described.shown_after,
            reads: described.inputs.clone(),
            is_kept: kept.is_some(),
            last_uses: Vec::new(),
            body: None,
            hidden: Vec::new(),
        };
        if let Some(kept) = kept {
            let beside = [&kept.graph_inputs, &kept.parameters];
            let beside = beside.into_iter().flatten().map(|input| input.position);
            // A graph input may be in the operator's record and have a separate one: it is passed
            // once.
            let mut positions: Vec<usize> = kept.inputs.iter().copied().chain(beside).collect();
            positions.sort_unstable();
            positions.dedup();
            for position in positions {
                let value = described.inputs[position];
                self.values[value].is_wanted = true;
                part.inputs.push((position, value));
            }
            for value in kept.outputs.iter().filter_map(|&i| described.outputs[i]) {
                self.values[value].is_wanted = true;
            }
        }
        self.operators.push(part);
    }

    /// Finds the operator after which each wanted value is no longer needed.
    pub(super) fn find_last_uses(&mut self) {
        let mut is_needed = vec![false; self.values.len()];
        // A collective is recorded right before the operator that waits for it.
        let mut order: Vec<usize> = (0..self.operators.len()).collect();
        order.sort_by_key(|&number| match self.operators[number].shown_after {
            Some(after) => (after, 0, number),
            None => (number, 1, number),
        });
        for number in order.into_iter().rev() {
            let part = &mut self.operators[number];
            let read = part.inputs.iter().map(|(_, value)| *value);
            // Outputs count as well: an unread one is needed until its own operator's record.
            for value in read.chain(part.outputs.iter().flatten().copied()) {
                if self.values[value].is_wanted && !is_needed[value] {
                    is_needed[value] = true;
                    part.last_uses.push(value);
                }
            }
        }
    }

    /// Assigns operators to their bodies, and bodies to their operators.
    pub(super) fn add_bodies(&mut self, bodies: Vec<BodyDescription>) -> PyResult<()> {
        for (number, body) in bodies.into_iter().enumerate() {
            let unknown = || PyValueError::new_err(format!("body {number} is not of this graph"));
            let outer = self.operators.get_mut(body.outer).ok_or_else(unknown)?;
            // Outer bodies come first, so that walking outwards terminates.
            if body.parent.is_some_and(|parent| parent >= number) {
                return Err(unknown());
            }
            if body.reason.is_some() {
                outer.hidden.push(number);
            }
            for &operator in &body.operators {
                self.operators.get_mut(operator).ok_or_else(unknown)?.body = Some(number);
            }
            self.bodies.push(BodyPart {
                operators: body.operators,
                parent: body.parent,
                is_loop: body.is_loop,
                n_dry_runs: body.n_dry_runs,
                reason: body.reason.map(UnseenReason::Known),
            });
        }
        Ok(())
    }

    /// Whether any operator of a body has a record.
    pub(super) fn is_body_kept(&self, body: usize) -> bool {
        let mut operators = self.bodies[body].operators.iter();
        operators.any(|&operator| self.operators[operator].is_kept)
    }
}

impl ValuePart {
    pub(super) fn new(value: ValueDescription) -> ValuePart {
        ValuePart {
            name: value.name,
            stability: value.stability,
            is_wanted: false,
            reason: value.reason.map(UnseenReason::Known),
        }
    }
}
