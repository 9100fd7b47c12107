//! Choosing the tensors to keep of an operator that nobody knew before it ran.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opscope_capture::{ModelSelection, OperatorSelection, Plan, SelectedSlots, WatchRole, select};
use opscope_store::record::{ModelId, Operator};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;

use super::lock::lock;

/// How many inputs an operator has, and which of its outputs are tensors.
type Form = (usize, Vec<bool>);

/// Says what is kept of an operator.
pub(super) struct TensorChooser {
    plan: Plan,
    model: ModelId,
    /// Whether the plan has no rule for single operators.
    is_every: bool,
    /// Asked besides: name, alias, target, base and module of an operator.
    choose: Option<Py<PyAny>>,
    /// Slots to keep of operators with so many inputs, and outputs as given.
    of_shape: Mutex<HashMap<Form, Arc<SelectedSlots>>>,
}

impl TensorChooser {
    /// # Errors
    /// `NotImplementedError` for a rule that needs to know what comes later.
    pub(super) fn new(
        plan: &Plan,
        model: &ModelId,
        choose: Option<Py<PyAny>>,
    ) -> PyResult<TensorChooser> {
        // Without a graph nobody can say which inputs are its own, its parameters or its constants.
        let mut plan = Plan {
            has_graph_inputs: false,
            has_parameters: false,
            has_constants: false,
            ..plan.clone()
        };
        if model.load.is_none() {
            // Operators that run on their own are chosen all or not at all.
            plan.models = ModelSelection::Every(OperatorSelection::every());
        }
        let has_ranges = match &plan.models {
            ModelSelection::None => false,
            ModelSelection::Every(rule) => !rule.ranges.is_empty(),
            ModelSelection::Named(rules) => rules.iter().any(|(_, rule)| !rule.ranges.is_empty()),
        };
        if has_ranges {
            return Err(PyNotImplementedError::new_err(
                "the acl.json chooses operators from one to another one, which takes a graph: in eager mode nobody \
                 knows what comes later",
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

    /// Whether an operator is chosen by the names that it has.
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

    /// The same of outputs.
    pub(super) fn wants_outputs(&self) -> bool {
        self.plan.sides.outputs()
    }

    /// Returns the slots to keep of an operator; `None` if there are none.
    pub(super) fn kept(&self, operator: &Operator) -> Option<Arc<SelectedSlots>> {
        if !self.is_every {
            // The selection is asked about a graph of one operator, whose number is 0.
            let operator = Arc::new(Operator {
                task_id: 0,
                ..operator.clone()
            });
            let mut selected = select(&self.plan, &self.model, &[operator], &[]);
            return selected.kept.remove(&0);
        }
        let outputs: Vec<bool> = operator.outputs.iter().map(|o| !o.is_empty()).collect();
        // Without rules the form alone decides, so that few answers serve all operators.
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
