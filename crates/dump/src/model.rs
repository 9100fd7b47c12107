//! A loaded model as a session sees it.

use opscope_capture::GraphView;
use opscope_engine::LoadedModel;

/// The graph of `model`. `inputs` are its [`input_names`].
pub fn graph_view<'a>(model: &'a dyn LoadedModel, inputs: &'a [String]) -> GraphView<'a> {
    GraphView {
        operators: model.operators(),
        inputs,
        constants: model.constants(),
        carried: model.carried(),
        types: model.value_types(),
        quantised: model.quantised(),
        ..GraphView::default()
    }
}

/// Names of the values that a caller of the model provides.
pub fn input_names(model: &dyn LoadedModel) -> Vec<String> {
    let inputs = model.signature().inputs.iter();
    inputs.map(|value| value.name.clone()).collect()
}
