//! Names of a configuration that nothing has.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_capture::{ModelSelection, Plan, SelectedOperators};
use opscope_store::record::ModelId;

/// Most names of models that are remembered.
const N_MODELS_MAX: usize = 64;

/// Names that a plan has of models and operators, and what there was.
pub(super) struct AskedNames {
    state: Mutex<AskedState>,
}

struct AskedState {
    /// Models that the plan names and that did not come.
    models: BTreeSet<String>,
    /// Operators that no model had that the plan is for; `None` before the first.
    operators: Option<BTreeSet<String>>,
    /// The models that came.
    there: BTreeSet<String>,
}

/// Models and operators that nothing has, and the models there are.
pub(super) type Missing = (Vec<String>, Vec<String>, Vec<String>);

impl AskedNames {
    pub(super) fn new(plan: &Plan) -> AskedNames {
        let models = match &plan.models {
            ModelSelection::Named(models) => models.iter().map(|(name, _)| name.clone()).collect(),
            ModelSelection::None | ModelSelection::Every(_) => BTreeSet::new(),
        };
        AskedNames {
            state: Mutex::new(AskedState {
                models,
                operators: None,
                there: BTreeSet::new(),
            }),
        }
    }

    /// Notes a model, and with it what the plan selects, unless its operators are not known yet.
    pub(super) fn note(&self, model: &ModelId, selected: Option<&SelectedOperators>) {
        let mut state = self.lock();
        // A `model_name` is either the name of the model's file or the one that its graph carries.
        for name in [&model.graph_name, &model.file_stem] {
            state.models.remove(name);
            if state.there.len() < N_MODELS_MAX && !name.is_empty() {
                state.there.insert(name.clone());
            }
        }
        let Some(selected) = selected.filter(|selected| selected.is_model_matched) else {
            return;
        };
        let here: BTreeSet<String> = selected.unmatched.iter().cloned().collect();
        state.operators = Some(match state.operators.take() {
            Some(before) => before.intersection(&here).cloned().collect(),
            None => here,
        });
    }

    pub(super) fn missing(&self) -> Missing {
        let state = self.lock();
        let listed = |names: &BTreeSet<String>| names.iter().cloned().collect();
        let operators = state.operators.as_ref().map(listed).unwrap_or_default();
        (listed(&state.models), operators, listed(&state.there))
    }

    fn lock(&self) -> MutexGuard<'_, AskedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
