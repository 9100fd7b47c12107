//! Every value is shown as it is.

use std::collections::HashMap;

use opscope_store::record::Side;

use super::super::super::proto;
use super::super::super::schema::ModelProto;
use super::build::*;
use super::*;
use crate::input::{Random, resolve_shape};

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(name)
}

/// Runs a model with taps and without, and compares each value that operators of the main graph produce with the
/// one that the engine gives as a result if asked for it.
fn check(model: &ModelProto, inputs: &[Tensor]) -> Captured {
    let engine = engine().unwrap();
    let mut loaded = load(&engine, model);
    let plain = loaded.run(inputs, None).unwrap();
    let captured = capture(&mut *loaded, inputs);
    let tapped = captured.outputs.as_ref().unwrap();
    for (plain, tapped) in plain.iter().zip(tapped) {
        assert_eq!(plain.bytes(), tapped.bytes());
    }
    let values = all_values(&engine, model, inputs);
    for record in &captured.records {
        for (i, tensor) in &record.outputs {
            let name = &record.operator.outputs[*i];
            compare(tensor, &values, name);
        }
        for (i, tensor) in &record.inputs {
            compare(tensor, &values, &record.operator.inputs[*i]);
        }
    }
    assert_eq!(captured.counters.n_selected, captured.counters.n_written + captured.counters.n_dropped);
    captured
}

fn compare(tensor: &Tensor, values: &HashMap<String, Tensor>, name: &str) {
    let Some(expected) = values.get(name) else {
        return;
    };
    let found = (tensor.dtype(), tensor.shape(), tensor.bytes());
    assert!(found == (expected.dtype(), expected.shape(), expected.bytes()), "{name}");
}

/// What the engine says that the values of the main graph are.
fn all_values(engine: &OnnxRuntime, model: &ModelProto, inputs: &[Tensor]) -> HashMap<String, Tensor> {
    let mut model = model.clone();
    let graph = model.graph.as_mut().unwrap();
    let names = graph.node.iter().filter(|node| !proto::is_constant(node));
    let names: Vec<String> = names.flat_map(|node| node.output.clone()).collect();
    for name in names {
        let is_known = graph.output.iter().any(|output| output.name == name);
        if !is_known && !name.is_empty() {
            graph.output.push(named(&name));
        }
    }
    let mut loaded = load(engine, &model);
    let outputs = loaded.run(inputs, None).unwrap();
    let names = loaded.signature().outputs.iter().map(|value| value.name.clone());
    let mut values: HashMap<String, Tensor> = names.zip(outputs).collect();
    let given = loaded.signature().inputs.iter().map(|value| value.name.clone());
    values.extend(given.zip(inputs.iter().cloned()));
    values
}

#[test]
fn of_the_test_models() {
    if engine().is_none() {
        return;
    }
    let models = [
        "char_lm.onnx",
        "light_squeezenet.onnx",
        "overflow_six.onnx",
        "shapes_cnn_f16.onnx",
        "shapes_cnn_f32.onnx",
        "shapes_cnn_qdq_int8.onnx",
        "loop.onnx",
    ];
    for name in models {
        let file = std::fs::read(path(name)).unwrap();
        let model = proto::decode(&file).unwrap().proto;
        let loaded = load(&engine().unwrap(), &model);
        let mut random = Random::new(1);
        let inputs = loaded.signature().inputs.iter().map(|value| {
            let shape = Shape::new([2, 5]).unwrap();
            let shape = resolve_shape(value, None).or_else(|_| resolve_shape(value, Some(&shape)));
            random.tensor(value, shape.unwrap()).unwrap()
        });
        let inputs: Vec<Tensor> = inputs.collect();
        let captured = check(&model, &inputs);
        let counters = captured.counters;
        assert_eq!(counters.n_dropped, 0, "{name}");
        println!("{name}: {} records", captured.records.len());
        let mut by_file = engine().unwrap().load(ModelSource::File(&path(name)), &LoadOptions::with_threads(1)).unwrap();
        let again = capture(&mut *by_file, &inputs);
        assert_eq!(again.records.len(), captured.records.len());
        for (one, other) in captured.records.iter().zip(&again.records) {
            assert_eq!(one.operator.op_name, other.operator.op_name);
            for (one, other) in one.slots().zip(other.slots()) {
                assert_eq!((one.0, one.1), (other.0, other.1));
                assert!(one.2.bytes() == other.2.bytes());
            }
        }
    }
}

#[test]
fn in_every_place_that_an_operator_has() {
    if engine().is_none() {
        return;
    }
    let weights = [
        floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        ints("rows", &[2], &[-1, 2]),
        floats("none", &[0], &[]),
        floats("low", &[], &[0.0]),
    ];
    let nodes = [
        node("MatMul", &["x", "w"], &["a"]).called("same"),
        node("Mul", &["a", "a"], &["b"]).called("same"),
        node("Clip", &["b", "", "low"], &["c"]).called(""),
        node("Constant", &[], &["k"]).tensor("value", floats("", &[2], &[0.5, -0.5])),
        node("Add", &["c", "k"], &["d"]),
        node("Concat", &["none", "none"], &["e"]).int("axis", 0),
        node("Reshape", &["d", "rows"], &["f"]),
        node("Dropout", &["f"], &["g", "mask"]),
        node("MaxPool", &["h"], &["i", ""]).with(super::super::super::schema::AttributeProto {
            name: "kernel_shape".into(),
            r#type: Some(7),
            ints: vec![1],
            ..Default::default()
        }),
        node("Relu", &["g"], &["y"]),
    ];
    let inputs = [value("x", FLOAT, 2), value("h", FLOAT, 3), value("w", FLOAT, 2)];
    let model = model(graph(&inputs, &weights, &nodes, &[value("y", FLOAT, 2), value("e", FLOAT, 1)]));
    let inputs = [tensor(&[2, 2], &[1.0, -1.0, 0.5, 2.0]), tensor(&[1, 1, 2], &[5.0, 6.0])];
    let captured = check(&model, &inputs);
    assert_eq!(captured.counters.n_dropped, 0);
    let records = &captured.records;
    let expected = ["same", "same", "c", "Add_d", "Concat_e", "Reshape_f", "Dropout_g", "MaxPool_i", "Relu_y"];
    assert_eq!(names(records), expected);
    let mul = &records[1];
    assert_eq!(mul.inputs.len(), 2);
    assert_eq!(f32s(&records[0].inputs[1].1), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(f32s(shown(records, "c", Side::Input, 2)), [0.0]);
    assert_eq!(f32s(shown(records, "Add_d", Side::Input, 1)), [0.5, -0.5]);
    assert_eq!(shown(records, "Concat_e", Side::Output, 0).shape().dims(), [0]);
    assert_eq!(i64s(shown(records, "Reshape_f", Side::Input, 1)), [-1, 2]);
    // A value that two operators have is taken once.
    let produced = shown(records, "c", Side::Output, 0);
    assert!(std::ptr::eq(produced.bytes(), shown(records, "Add_d", Side::Input, 0).bytes()));
}

#[test]
fn of_text() {
    let Some(engine) = engine() else { return };
    let texts = super::super::super::schema::TensorProto {
        name: "t".into(),
        dims: vec![2],
        data_type: Some(TEXT),
        string_data: vec!["-x".into(), "".into()],
        ..Default::default()
    };
    let nodes = [node("StringConcat", &["x", "t"], &["y"])];
    let model = model(graph(&[value("x", TEXT, 1)], &[texts], &nodes, &[value("y", TEXT, 1)]));
    let input = opscope_tensor::text::encode(&["ä", "b"]);
    let input = Tensor::from_vec(DType::String, Shape::new([2]).unwrap(), input).unwrap();
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[input]);
    captured.outputs.unwrap();
    let output = shown(&captured.records, "StringConcat_y", Side::Output, 0);
    let found: Vec<&[u8]> = opscope_tensor::text::iter(output.view()).unwrap().collect();
    assert_eq!(found, ["ä-x".as_bytes(), b"b"]);
    let weight = shown(&captured.records, "StringConcat_y", Side::Input, 1);
    let found: Vec<&[u8]> = opscope_tensor::text::iter(weight.view()).unwrap().collect();
    assert_eq!(found, [&b"-x"[..], b""]);
    assert_eq!(captured.counters.n_dropped, 0);
}
