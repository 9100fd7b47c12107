//! A loaded model as a session sees it.

use std::sync::Arc;

use opscope_engine::LoadedModel;
use opscope_store::file_format::graph_json::GraphText;
use opscope_store::record::{ModelId, Operator};

/// Names of the values that a caller of the model provides.
pub fn input_names(model: &dyn LoadedModel) -> Vec<String> {
    let inputs = model.signature().inputs.iter();
    inputs.map(|value| value.name.clone()).collect()
}

/// Names of the values that the model returns, in its order.
pub(crate) fn result_names(model: &dyn LoadedModel) -> Vec<String> {
    let outputs = model.signature().outputs.iter();
    outputs.map(|value| value.name.clone()).collect()
}

/// The name of a model's graph: that of its file, or the graph's own without a file.
pub(crate) fn graph_title(id: &ModelId) -> &str {
    if id.file_stem.is_empty() {
        &id.graph_name
    } else {
        &id.file_stem
    }
}

/// The description of a model's graph; `arguments` are its [`input_names`], `results` its
/// [`result_names`].
pub(crate) fn graph_text<'a>(
    model: &'a dyn LoadedModel,
    id: &'a ModelId,
    arguments: &'a [String],
    results: &'a [String],
) -> GraphText<'a, Arc<Operator>> {
    GraphText {
        name: graph_title(id),
        graph_name: &id.graph_name,
        opsets: &model.description().opsets,
        arguments,
        results,
        types: &model.description().value_types,
        operators: model.operators(),
    }
}
