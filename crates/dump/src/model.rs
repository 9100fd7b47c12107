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

/// The name of a model's graph: that of its file, or the one inside where there is no file.
pub(crate) fn graph_title(id: &ModelId) -> &str {
    if id.file_stem.is_empty() {
        &id.graph_name
    } else {
        &id.file_stem
    }
}

/// The description of a model's graph; `arguments` are its [`input_names`].
pub(crate) fn graph_text<'a>(
    model: &'a dyn LoadedModel,
    id: &'a ModelId,
    arguments: &'a [String],
) -> GraphText<'a, Arc<Operator>> {
    GraphText {
        name: graph_title(id),
        graph_name: &id.graph_name,
        opsets: &model.description().opsets,
        arguments,
        types: &model.description().value_types,
        operators: model.operators(),
    }
}
