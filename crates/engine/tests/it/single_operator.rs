//! One-node models, run by the engine.

#![cfg(feature = "tract")]

use opscope_engine::onnx::Tract;
use opscope_engine::single_operator::read_json;
use opscope_engine::{Engine, LoadOptions, LoadedModel, ModelSource};
use opscope_tensor::{DType, Shape, Tensor};

fn f32s(dims: &[usize], values: &[f32]) -> Tensor {
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    Tensor::from_vec(DType::F32, Shape::new(dims).unwrap(), bytes).unwrap()
}

/// Runs the operator that `text` describes and compares its first output.
fn check(text: &str, inputs: &[Tensor], expected: &Tensor) {
    let operator = read_json(text).unwrap().remove(0);
    let prepared = operator.for_engine().unwrap();
    let options = LoadOptions::with_threads(1);
    let model = Tract.load(ModelSource::Memory(prepared.bytes()), &options);
    let mut model = prepared.around(model.unwrap());
    assert_eq!(model.operators()[0].op_name, operator.op_name);
    let outputs = model.run(inputs, None).unwrap();
    assert_eq!(outputs[0].dtype(), expected.dtype(), "{text}");
    assert_eq!(outputs[0].shape(), expected.shape(), "{text}");
    assert_eq!(
        outputs[0].host_bytes().unwrap(),
        expected.host_bytes().unwrap(),
        "{text}"
    );
}

#[test]
fn operators_of_both_vocabularies() {
    let two = f32s(&[2], &[1.0, 6.0]);
    check(
        r#"{"op": "RealDiv", "input_desc": [
            {"format": "ND", "shape": [2], "type": "float"},
            {"format": "ND", "shape": [2], "type": "float", "const_value": [2, 3]}],
            "output_desc": [{"format": "ND", "shape": [2], "type": "float"}]}"#,
        std::slice::from_ref(&two),
        &f32s(&[2], &[0.5, 2.0]),
    );
    let matrix = f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    check(
        r#"{"op": "MatMulV2", "input_desc": [
            {"shape": [2, 2], "type": "float"}, {"shape": [2, 2], "type": "float"}],
            "attr": [{"name": "transpose_x1", "type": "bool", "value": true}]}"#,
        &[matrix.clone(), matrix.clone()],
        &f32s(&[2, 2], &[10.0, 14.0, 14.0, 20.0]),
    );
    check(
        r#"{"op": "TransposeD", "input_desc": [{"shape": [2, 2], "type": "float"}],
            "attr": [{"name": "perm", "type": "list_int", "value": [1, 0]}]}"#,
        &[matrix],
        &f32s(&[2, 2], &[1.0, 3.0, 2.0, 4.0]),
    );
    let bytes = vec![1, 6];
    check(
        r#"{"op": "Cast", "input_desc": [{"shape": [2], "type": "float32"}],
            "output_desc": [{"type": "int8"}], "attr": [{"name": "dst_type", "type": "int", "value": 2}]}"#,
        &[two],
        &Tensor::from_vec(DType::I8, Shape::new([2]).unwrap(), bytes).unwrap(),
    );
}

#[test]
fn parameters_that_onnx_reads_as_values() {
    let matrix = f32s(&[2, 3], &[1.0, 5.0, 3.0, 4.0, 2.0, 4.0]);
    let row = f32s(&[1, 3], &[1.0, 5.0, 3.0]);
    let described = |op: &str, dims: &str, attribute: &str| {
        format!(
            r#"{{"op": "{op}", "inputs": [{{"shape": {dims}, "type": "float"}}],
                "attributes": {{{attribute}}}}}"#
        )
    };
    check(
        &described("BroadcastToD", "[1, 3]", r#""shape": [2, 3]"#),
        std::slice::from_ref(&row),
        &f32s(&[2, 3], &[1.0, 5.0, 3.0, 1.0, 5.0, 3.0]),
    );
    check(
        &described("TileD", "[1, 3]", r#""multiples": [1, 2]"#),
        &[row],
        &f32s(&[1, 6], &[1.0, 5.0, 3.0, 1.0, 5.0, 3.0]),
    );
    check(
        &described("ReduceSumD", "[2, 3]", r#""axes": [1], "keep_dims": false"#),
        std::slice::from_ref(&matrix),
        &f32s(&[2], &[9.0, 10.0]),
    );
    let positions: Vec<u8> = [1_i64, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let positions = Tensor::from_vec(DType::I64, Shape::new([2]).unwrap(), positions).unwrap();
    let by_input = r#"{"op": "ArgMaxV2", "inputs": [{"shape": [2, 3], "type": "float"},
        {"shape": [], "type": "int32", "const_value": 1}], "outputs": [{"type": "int64"}]}"#;
    for text in [
        by_input,
        &described("ArgMaxD", "[2, 3]", r#""dimension": 1"#),
    ] {
        check(text, std::slice::from_ref(&matrix), &positions);
    }
}

#[test]
fn extents_in_int32() {
    let row = f32s(&[1, 3], &[1.0, 5.0, 3.0]);
    let twice = f32s(&[2, 3], &[1.0, 5.0, 3.0, 1.0, 5.0, 3.0]);
    let described = |op: &str, value: &str| {
        format!(
            r#"{{"op": "{op}", "inputs": [{{"shape": [1, 3], "type": "float"}},
                {{"shape": [2], "type": "int32"{value}}}]}}"#
        )
    };
    for (op, numbers) in [("BroadcastTo", [2, 3]), ("Tile", [2, 1])] {
        let value = format!(r#", "const_value": {numbers:?}"#);
        check(&described(op, &value), std::slice::from_ref(&row), &twice);
        let numbers = numbers.iter().flat_map(|n: &i32| n.to_le_bytes());
        let shape = Shape::new([2]).unwrap();
        let given = Tensor::from_vec(DType::I32, shape, numbers.collect()).unwrap();
        check(&described(op, ""), &[row.clone(), given], &twice);
    }
}

#[test]
fn what_onnx_cannot_say() {
    let texts = [
        r#"{"op": "BroadcastToD", "inputs": [{"shape": [3], "type": "float"}],
            "attributes": {"shape": [1]}}"#,
        r#"{"op": "ArgMaxV2", "inputs": [{"shape": [3], "type": "float"},
            {"shape": [], "type": "int32"}]}"#,
        r#"{"op": "Add", "input_desc": [{"shape": [2], "type": "hifloat8"}]}"#,
        r#"{"op": "Cast", "input_desc": [{"shape": [2], "type": "float"}],
            "attr": [{"name": "dst_type", "type": "int", "value": 99}]}"#,
        r#"{"op": "Conv2D", "input_desc": [{"shape": [1, 2, 2, 1], "type": "float"}],
            "attr": [{"name": "data_format", "type": "string", "value": "NHWC"}]}"#,
    ];
    for text in texts {
        let operator = read_json(text).unwrap().remove(0);
        assert!(operator.to_onnx().is_err(), "{text}");
    }
}
