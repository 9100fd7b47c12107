//! Tests of models and inputs that the engine refuses.

use super::*;
use crate::InputError;

#[test]
fn what_is_no_tensor_is_refused_or_left_out() {
    let Some(engine) = engine() else { return };
    let takes = graph(
        vec![node("SequenceLength", "", &["s"], &["n"])],
        vec![sequence("s")],
        vec![value("n", INT64, &[])],
    );
    assert_eq!(
        refusal(&engine, &model(takes)),
        "`model in memory` is not a usable ONNX model: input `s` takes a sequence of a tensor of \
         float32; only tensors can be given"
    );
    let gives = graph(
        vec![
            node("SequenceConstruct", "", &["x", "x"], &["s"]),
            node("SequenceLength", "", &["s"], &["n"]),
        ],
        vec![value("x", FLOAT, &[2])],
        vec![sequence("s"), value("n", INT64, &[])],
    );
    let mut model = load(&engine, &model(gives)).unwrap();
    let names: Vec<&str> = model.signature().outputs.iter().map(|v| &*v.name).collect();
    assert_eq!(names, ["n"]);
    let results = model.run(&[floats(&[1.0, 2.0])], None).unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].host_bytes().unwrap(), 2_i64.to_le_bytes());
    let only_sequences = graph(
        vec![node("SequenceConstruct", "", &["x", "x"], &["s"])],
        vec![value("x", FLOAT, &[2])],
        vec![sequence("s")],
    );
    assert_eq!(
        refusal(&engine, &self::model(only_sequences)),
        "`model in memory` is not a usable ONNX model: none of its outputs (`s`) is a tensor; \
         expected at least one, as sequences and other types cannot be returned"
    );
}

#[test]
fn models_that_the_library_cannot_run_are_refused_by_name() {
    let Some(engine) = engine() else { return };
    let version = engine.version().unwrap().to_owned();
    let unary = |op_type: &str, name: &str, code: i32| {
        let (x, y) = (value("x", code, &[2]), value("y", code, &[2]));
        model(graph(
            vec![node(op_type, name, &["x"], &["y"])],
            vec![x],
            vec![y],
        ))
    };
    let check = |model: &ModelProto, parts: &[&str]| {
        let text = refusal(&engine, model);
        for part in parts {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(!text.contains("onnxruntime_src"), "{text}");
    };
    let lacks = format!("ONNX Runtime {version} has no such operator up to version 21 of its set");
    check(
        &unary("Foo", "n1", FLOAT),
        &["operator `n1` of type `Foo`: ", &lacks],
    );
    check(
        &unary("Foo", "", FLOAT),
        &["operator `y` of type `Foo`: ", &lacks],
    );
    check(
        &unary("Sin", "n1", INT64),
        &["operator `n1` of type `Sin`: ", "tensor(int64)"],
    );
    check(
        &unary("Relu", "n1", 16),
        &["operator `n1` of type `Relu`: ", "no implementation of it"],
    );
    let mut new_opset = unary("Relu", "n1", FLOAT);
    new_opset.opset_import[0].version = Some(9999);
    check(
        &new_opset,
        &[
            "it uses version 9999 of the operator set `ai.onnx`",
            &format!("ONNX Runtime {version} has it up to version "),
        ],
    );
    let mut new_format = unary("Relu", "n1", FLOAT);
    new_format.ir_version = Some(9999);
    check(
        &new_format,
        &["its format is IR version 9999", "reads up to "],
    );
    let mut foreign = unary("Foo", "n1", FLOAT);
    foreign.graph.as_mut().unwrap().node[0].domain = "my.domain".into();
    foreign.opset_import.push(OperatorSetIdProto {
        domain: Some("my.domain".into()),
        version: Some(1),
    });
    check(
        &foreign,
        &["operator `n1` of type `Foo`", "`my.domain`", &version],
    );
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let Some(engine) = engine() else { return };
    let graph = graph(
        vec![node("Relu", "", &["x"], &["y"])],
        vec![value("x", FLOAT, &[2])],
        vec![value("y", FLOAT, &[2])],
    );
    let mut model = load(&engine, &model(graph)).unwrap();
    let mut refusal = |inputs: &[Tensor]| model.run(inputs, None).unwrap_err();
    assert!(matches!(
        refusal(&[ints(&[1, 2])]),
        EngineError::Input(InputError::Dtype { .. })
    ));
    assert!(matches!(
        refusal(&[floats(&[1.0, 2.0, 3.0])]),
        EngineError::Input(InputError::Shape { .. })
    ));
    assert_eq!(
        refusal(&[]).to_string(),
        "ONNX Runtime failed: 0 inputs were given of 1"
    );
    let forgotten = floats(&[1.0, 2.0]).without_elements();
    assert!(matches!(refusal(&[forgotten]), EngineError::Engine { .. }));
}
