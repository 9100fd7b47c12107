//! Selecting tensors of an operator that was unknown before it ran.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opscope_capture::{ModelSelection, OperatorSelection, Plan, SelectedSlots, WatchRole, select};
use opscope_store::record::{ModelId, Operator};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;

use super::lock::lock;

/// Number of inputs, and for each output whether it is a tensor.
type Form = (usize, Vec<bool>);

/// Selects the slots to keep of an operator.
pub(super) struct TensorChooser {
    plan: Plan,
    model: ModelId,
    /// Whether the plan has no rules for single operators.
    is_every: bool,
    /// An additional predicate on name, alias, target, base and module.
    choose: Option<Py<PyAny>>,
    /// Slots to keep, by operator form.
    of_shape: Mutex<HashMap<Form, Arc<SelectedSlots>>>,
}

impl TensorChooser {
    /// # Errors
    ///
    /// `NotImplementedError` for a rule that depends on later operators.
    pub(super) fn new(
        plan: &Plan,
        model: &ModelId,
        choose: Option<Py<PyAny>>,
    ) -> PyResult<TensorChooser> {
        // Without a graph, an operator's own inputs, parameters and constants cannot be told apart.
        let mut plan = Plan {
            has_graph_inputs: false,
            has_parameters: false,
            has_constants: false,
            ..plan.clone()
        };
        if model.load.is_none() {
            // Separately run operators are selected all or not at all.
            plan.models = ModelSelection::Every(OperatorSelection::every());
        }
        let has_ranges = match &plan.models {
            ModelSelection::None => false,
            ModelSelection::Every(rule) => !rule.ranges.is_empty(),
            ModelSelection::Named(rules) => rules.iter().any(|(_, rule)| !rule.ranges.is_empty()),
        };
        if has_ranges {
            return Err(PyNotImplementedError::new_err(
                "the acl.json selects a range of operators, which needs a graph: in eager mode later \
                 operators are unknown",
            ));
        }
        let is_every = plan.excluded.is_empty()
            && matches!(&plan.models, ModelSelection::Every(rule) if rule.is_every());
        Ok(TensorChooser {
            plan,
            model: model.clone(),
            is_every,
            choose,
            of_shape: Mutex::default(),
        })
    }

    /// Whether an operator is selected by its names.
    pub(super) fn is_chosen(
        &self,
        py: Python<'_>,
        names: [&str; 4],
        module: &str,
    ) -> PyResult<bool> {
        match &self.choose {
            None => Ok(true),
            Some(choose) => choose.call1(py, (names.to_vec(), module))?.extract(py),
        }
    }

    /// Whether inputs of an operator may be kept.
    pub(super) fn wants_inputs(&self) -> bool {
        self.plan.sides.inputs()
    }

    /// Whether outputs of an operator may be kept.
    pub(super) fn wants_outputs(&self) -> bool {
        self.plan.sides.outputs()
    }

    /// Returns the slots to keep of an operator; `None` if there are none.
    pub(super) fn slots_to_keep(&self, operator: &Operator) -> Option<Arc<SelectedSlots>> {
        if !self.is_every {
            // The selection is evaluated on a graph with one operator, number 0.
            let operator = Arc::new(Operator {
                task_id: 0,
                ..operator.clone()
            });
            let mut selected = select(&self.plan, &self.model, &[operator], &[]);
            return selected.kept.remove(&0);
        }
        let outputs: Vec<bool> = operator.outputs.iter().map(|o| !o.is_empty()).collect();
        // Without rules the form alone decides, so few results serve all operators.
        let key = (operator.inputs.len(), outputs);
        let mut of_shape = lock(&self.of_shape);
        let kept = of_shape.entry(key).or_insert_with_key(|(n, outputs)| {
            let present = outputs
                .iter()
                .enumerate()
                .filter(|(_, is_there)| **is_there);
            Arc::new(SelectedSlots {
                inputs: if self.wants_inputs() {
                    (0..*n).collect()
                } else {
                    Vec::new()
                },
                outputs: if self.wants_outputs() {
                    present.map(|(i, _)| i).collect()
                } else {
                    Vec::new()
                },
                role: WatchRole::None,
                ..SelectedSlots::default()
            })
        });
        Some(kept.clone()).filter(|kept| kept.n_slots() > 0)
    }
}
