//! Names in a configuration without a match.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_capture::{ModelSelection, Plan, SelectedOperators};
use opscope_store::record::ModelId;

/// Maximum number of stored model names.
const N_MODELS_MAX: usize = 64;

/// Model and operator names in a plan, and the models that occurred.
pub(super) struct AskedNames {
    state: Mutex<AskedState>,
}

struct AskedState {
    /// Models that the plan names but that have not occurred.
    models: BTreeSet<String>,
    /// Operators without a match in any model of the plan; `None` before the first.
    operators: Option<BTreeSet<String>>,
    /// The models that occurred.
    there: BTreeSet<String>,
}

/// Models and operators without a match, and the models that occurred.
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

    /// Records a model and what the plan selects in it, unless its operators are not known yet.
    pub(super) fn note(&self, model: &ModelId, selected: Option<&SelectedOperators>) {
        let mut state = self.lock();
        // A `model_name` is the name of either the model's file or its graph.
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
        let [models, operators, there] = [
            Some(&state.models),
            state.operators.as_ref(),
            Some(&state.there),
        ]
        .map(|names| names.into_iter().flatten().cloned().collect());
        (models, operators, there)
    }

    fn lock(&self) -> MutexGuard<'_, AskedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
