//! Every value is shown as it is.

use std::collections::HashMap;

use opscope_store::record::SlotSide;
use prost::Message;

use super::build::*;
use super::*;
use crate::input::{RandomNumbers, resolve_shape};
use crate::onnx::proto;
use crate::onnx::schema::ModelProto;

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

/// Runs a model with taps and without, and compares each value that operators of the main graph
/// produce with the engine's result for it as a graph output.
fn check(model: &ModelProto, inputs: &[Tensor]) -> TapCapture {
    let engine = engine().unwrap();
    let mut loaded = load(&engine, model);
    let plain = loaded.run(inputs, None).unwrap();
    let captured = capture(&mut *loaded, inputs);
    let tapped = captured.outputs.as_ref().unwrap();
    for (plain, tapped) in plain.iter().zip(tapped) {
        assert_eq!(plain.host_bytes().unwrap(), tapped.host_bytes().unwrap());
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
    assert_eq!(
        captured.counters.n_selected,
        captured.counters.n_written + captured.counters.n_dropped
    );
    captured
}

fn compare(tensor: &Tensor, values: &HashMap<String, Tensor>, name: &str) {
    let Some(expected) = values.get(name) else {
        return;
    };
    let found = (tensor.dtype(), tensor.shape(), tensor.host_bytes().unwrap());
    assert!(
        found
            == (
                expected.dtype(),
                expected.shape(),
                expected.host_bytes().unwrap()
            ),
        "{name}"
    );
}

/// Returns the engine's values of the main graph.
fn all_values(
    engine: &OnnxRuntime,
    model: &ModelProto,
    inputs: &[Tensor],
) -> HashMap<String, Tensor> {
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
    let names = loaded
        .signature()
        .outputs
        .iter()
        .map(|value| value.name.clone());
    let mut values: HashMap<String, Tensor> = names.zip(outputs).collect();
    let given = loaded
        .signature()
        .inputs
        .iter()
        .map(|value| value.name.clone());
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
        let mut loaded = load(&engine().unwrap(), &model);
        let mut random = RandomNumbers::new(1);
        let inputs = loaded.signature().inputs.iter().map(|value| {
            let shape = Shape::new([2, 5]).unwrap();
            let image = Shape::new([1, 1, 32, 32]).unwrap();
            let shape = [None, Some(&shape), Some(&image)]
                .into_iter()
                .find_map(|shape| resolve_shape(value, shape).ok());
            random.tensor(value, shape.unwrap()).unwrap()
        });
        let inputs: Vec<Tensor> = inputs.collect();
        let captured = check(&model, &inputs);
        let counters = captured.counters;
        assert_eq!(counters.n_dropped, 0, "{name}");
        capture(&mut *loaded, &inputs);
        assert_eq!(loaded.take_warnings(), Vec::<String>::new(), "{name}");
        let two = LoadOptions::with_threads(2);
        let by_two = engine().unwrap().load(ModelSource::File(&path(name)), &two);
        let mut by_two = by_two.unwrap();
        let plain = by_two.run(&inputs, None).unwrap();
        let shown = capture(&mut *by_two, &inputs);
        assert_eq!(names(&shown.records), names(&captured.records));
        assert_eq!(
            shown.outputs.unwrap()[0].host_bytes().unwrap(),
            plain[0].host_bytes().unwrap()
        );
        let mut by_file = engine()
            .unwrap()
            .load(
                ModelSource::File(&path(name)),
                &LoadOptions::with_threads(1),
            )
            .unwrap();
        let again = capture(&mut *by_file, &inputs);
        assert_eq!(again.records.len(), captured.records.len());
        for (one, other) in captured.records.iter().zip(&again.records) {
            assert_eq!(one.operator.op_name, other.operator.op_name);
            for (one, other) in one.slots().zip(other.slots()) {
                assert_eq!((one.0, one.1), (other.0, other.1));
                assert!(one.2.host_bytes().unwrap() == other.2.host_bytes().unwrap());
            }
        }
    }
}

/// A model with absent inputs and outputs, a value read twice, a shared name, no name, no elements.
fn places() -> ModelProto {
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
        node("MaxPool", &["h"], &["i", ""]).with(crate::onnx::schema::AttributeProto {
            name: "kernel_shape".into(),
            r#type: Some(7),
            ints: vec![1],
            ..Default::default()
        }),
        node("Relu", &["g"], &["y"]),
    ];
    let inputs = [
        value("x", FLOAT, 2),
        value("h", FLOAT, 3),
        value("w", FLOAT, 2),
    ];
    model(graph(
        &inputs,
        &weights,
        &nodes,
        &[value("y", FLOAT, 2), value("e", FLOAT, 1)],
    ))
}

#[test]
fn in_every_place_that_an_operator_has() {
    if engine().is_none() {
        return;
    }
    let model = places();
    let inputs = [
        tensor(&[2, 2], &[1.0, -1.0, 0.5, 2.0]),
        tensor(&[1, 1, 2], &[5.0, 6.0]),
    ];
    let captured = check(&model, &inputs);
    assert_eq!(captured.counters.n_dropped, 0);
    let records = &captured.records;
    let expected = [
        "same",
        "same",
        "c",
        "Add_d",
        "Concat_e",
        "Reshape_f",
        "Dropout_g",
        "MaxPool_i",
        "Relu_y",
    ];
    assert_eq!(names(records), expected);
    let mul = &records[1];
    assert_eq!(mul.inputs.len(), 2);
    assert_eq!(f32s(&records[0].inputs[1].1), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(f32s(shown(records, "c", SlotSide::Input, 2)), [0.0]);
    assert_eq!(
        f32s(shown(records, "Add_d", SlotSide::Input, 1)),
        [0.5, -0.5]
    );
    assert_eq!(
        shown(records, "Concat_e", SlotSide::Output, 0)
            .shape()
            .dims(),
        [0]
    );
    assert_eq!(
        i64s(shown(records, "Reshape_f", SlotSide::Input, 1)),
        [-1, 2]
    );
    // A value that two operators have is taken once.
    let produced = shown(records, "c", SlotSide::Output, 0);
    assert!(std::ptr::eq(
        produced.host_bytes().unwrap(),
        shown(records, "Add_d", SlotSide::Input, 0)
            .host_bytes()
            .unwrap()
    ));
}

#[test]
fn of_text() {
    let Some(engine) = engine() else { return };
    let texts = crate::onnx::schema::TensorProto {
        name: "t".into(),
        dims: vec![2],
        data_type: Some(TEXT),
        string_data: vec!["-ä".into(), "".into()],
        ..Default::default()
    };
    let nodes = [
        node("Cast", &["x"], &["s"]).int("to", TEXT.into()),
        node("StringConcat", &["s", "t"], &["y"]),
        node("Identity", &["y"], &["z"]),
        node("Cast", &["s"], &["back"]).int("to", FLOAT.into()),
    ];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[texts],
        &nodes,
        &[value("back", FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[2], &[1.5, -2.0])]);
    captured.outputs.unwrap();
    let output = shown(&captured.records, "StringConcat_y", SlotSide::Output, 0);
    let found: Vec<&[u8]> = opscope_tensor::text::iter(output.host_view().unwrap())
        .unwrap()
        .collect();
    assert_eq!(found, ["1.5-ä".as_bytes(), b"-2"]);
    let weight = shown(&captured.records, "StringConcat_y", SlotSide::Input, 1);
    let found: Vec<&[u8]> = opscope_tensor::text::iter(weight.host_view().unwrap())
        .unwrap()
        .collect();
    assert_eq!(found, ["-ä".as_bytes(), b""]);
    assert_eq!(captured.counters.n_dropped, 0);
}

/// Branches that begin with one value and are joined in another order than they begin.
#[test]
fn in_the_order_of_the_file() {
    let Some(engine) = engine() else { return };
    let mut nodes = Vec::new();
    let mut joined = "x".to_owned();
    for i in 0..20 {
        let names = ["a", "b", "c", "d"].map(|name| format!("{name}{i}"));
        let [a, b, c, d] = names.each_ref().map(String::as_str);
        nodes.push(node("Relu", &["x"], &[a]));
        nodes.push(node("Neg", &[&joined], &[b]));
        nodes.push(node("Abs", &["x"], &[c]));
        let read = [[a, b], [b, c], [c, a]][i % 3];
        nodes.push(node("Add", &read, &[d]));
        joined = d.to_owned();
    }
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[],
        &nodes,
        &[value(&joined, FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[2], &[1.0, -1.0])]);
    captured.outputs.unwrap();
    let expected: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names(&captured.records), expected);
    assert_eq!(loaded.take_warnings(), Vec::<String>::new());
}

/// Damaged models are refused, or are models all the same.
#[test]
fn of_any_bytes() {
    let mut n_models = 0;
    for (name, n_times) in [("loop.onnx", 1000), ("char_lm.onnx", 10)] {
        let file = std::fs::read(path(name)).unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..n_times {
            let mut damaged = file.clone();
            for _ in 0..3 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = state as usize % damaged.len();
                damaged[at] = (state >> 32) as u8;
            }
            if let Ok(tapped) = crate::onnx::ort::with_taps(&damaged) {
                n_models += 1;
                // The library sorts nodes itself, so taps may come before the nodes that they wait
                // for.
                let decoded = ModelProto::decode(tapped.as_slice());
                assert!(decoded.is_ok_and(|model| model.graph.is_some()), "{name}");
            }
        }
    }
    assert!(n_models > 0);
}
