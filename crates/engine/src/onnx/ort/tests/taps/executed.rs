//! The graph that is really executed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use opscope_store::record::Operator;
use ort::session::builder::GraphOptimizationLevel;

use super::*;
use crate::input::RandomNumbers;
use crate::onnx::ort::session::{self, SessionSource};
use crate::onnx::ort::{error, names};
use crate::{DeclaredDim, GraphKind};

/// Types that are only there to bring values into another layout or precision.
const MOVING: [&str; 5] = [
    "Cast",
    "Reshape",
    "ReorderInput",
    "ReorderOutput",
    "Transpose",
];

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models")
}

fn executed(threads: usize) -> LoadOptions {
    LoadOptions {
        graph: GraphKind::Executed,
        ..LoadOptions::with_threads(threads)
    }
}

fn made_inputs(model: &dyn LoadedModel) -> Vec<Tensor> {
    let mut random = RandomNumbers::new(7);
    let values = model.signature().inputs.iter().map(|value| {
        let extent = |dim: &DeclaredDim| match dim {
            DeclaredDim::Fixed(n) => *n,
            DeclaredDim::Named(_) | DeclaredDim::Unknown => 4,
        };
        let dims: Vec<usize> = value.dims.iter().flatten().map(extent).collect();
        random.tensor(value, Shape::new(dims).unwrap()).unwrap()
    });
    values.collect()
}

/// Returns the results that ONNX Runtime computes on its own, with every optimisation.
fn optimised(engine: &OnnxRuntime, file: &Path, inputs: &[Tensor], names: &[&str]) -> Vec<Tensor> {
    let builder = session::builder(&engine.library, &LoadOptions::with_threads(2)).unwrap();
    let builder =
        error::quietly(|| Ok(builder.with_optimization_level(GraphOptimizationLevel::All)?));
    let session =
        session::LoadedSession::new(&engine.library, builder.unwrap(), SessionSource::File(file));
    session.unwrap().run(names, inputs).unwrap()
}

fn check(engine: &OnnxRuntime, name: &str) {
    let file = models().join(name);
    let original = engine
        .load(ModelSource::File(&file), &LoadOptions::with_threads(2))
        .unwrap();
    let known: HashSet<&str> = original
        .operators()
        .iter()
        .map(|o| o.op_name.as_str())
        .collect();
    let mut model = engine.load(ModelSource::File(&file), &executed(2)).unwrap();
    assert_eq!(
        model.signature().inputs,
        original.signature().inputs,
        "{name}"
    );
    let inputs = made_inputs(&*model);
    let expected = optimised(engine, &file, &inputs, &names(model.signature()));
    let captured = capture(&mut *model, &inputs);
    let outputs = captured.outputs.unwrap();
    let bytes = |tensors: &[Tensor]| -> Vec<Vec<u8>> {
        tensors
            .iter()
            .map(|tensor| tensor.host_bytes().unwrap().to_vec())
            .collect()
    };
    assert_eq!(bytes(&outputs), bytes(&expected), "{name}");
    assert_eq!(captured.records.len(), model.operators().len(), "{name}");
    for operator in model.operators() {
        let names = &operator.original_names;
        assert!(
            names.iter().all(|one| known.contains(one.as_str())),
            "{name}: {operator:?}"
        );
        let is_told = !names.is_empty() || known.contains(operator.op_name.as_str());
        assert!(
            is_told || MOVING.contains(&operator.op_type.as_str()),
            "{name}: {operator:?}"
        );
    }
    let is_fused = |operator: &Arc<Operator>| operator.original_names.len() > 1;
    assert!(model.operators().iter().any(is_fused), "{name}");
    // Every original operator went somewhere.
    let told = model
        .operators()
        .iter()
        .flat_map(|o| std::iter::once(&o.op_name).chain(&o.original_names));
    let told: HashSet<&str> = told.map(String::as_str).collect();
    let lost: Vec<&&str> = known.iter().filter(|name| !told.contains(**name)).collect();
    assert!(lost.is_empty(), "{name}: {lost:?}");
}

#[test]
fn the_executed_graph_computes_the_same_to_the_last_bit() {
    let Some(engine) = engine() else {
        return;
    };
    for name in [
        "shapes_cnn_f32.onnx",
        "shapes_cnn_f16.onnx",
        "shapes_cnn_qdq_int8.onnx",
        "char_lm.onnx",
        "light_squeezenet.onnx",
    ] {
        check(&engine, name);
    }
}

#[test]
fn models_in_memory_have_an_executed_graph_too() {
    let Some(engine) = engine() else {
        return;
    };
    let bytes = std::fs::read(models().join("shapes_cnn_f32.onnx")).unwrap();
    let model = engine
        .load(ModelSource::Memory(&bytes), &executed(1))
        .unwrap();
    assert!(
        model
            .operators()
            .iter()
            .any(|operator| operator.original_names.len() > 1)
    );
}
