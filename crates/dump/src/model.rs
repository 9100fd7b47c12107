//! A loaded model as a session sees it.

use opscope_engine::LoadedModel;

/// Names of the values that a caller of the model provides.
pub fn input_names(model: &dyn LoadedModel) -> Vec<String> {
    let inputs = model.signature().inputs.iter();
    inputs.map(|value| value.name.clone()).collect()
}
