//! That an execution does not depend on those before it, whatever became of them.

use super::*;

/// Numbers between -1 and 1 that do not repeat soon.
fn wave(dims: &[usize], phase: f32) -> Tensor {
    let n_elements = dims.iter().product::<usize>();
    let values: Vec<f32> = (0..n_elements)
        .map(|i| (phase + i as f32 * 0.7).sin())
        .collect();
    floats(dims, &values)
}

/// A recurrent operator with its weights and states as inputs: 5 steps, a batch of 2, 3 values in
/// and 4 hidden.
fn recurrent(op_type: &str, attributes: Vec<AttributeProto>, x: Tensor) -> (Vec<u8>, Vec<Tensor>) {
    let n_gates = match op_type {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let mut given = vec![
        Some(x),
        Some(wave(&[1, n_gates * 4, 3], 1.0)),
        Some(wave(&[1, n_gates * 4, 4], 2.0)),
        Some(wave(&[1, n_gates * 8], 3.0)),
        None,
        Some(wave(&[1, 2, 4], 4.0)),
    ];
    if op_type == "LSTM" {
        given.push(Some(wave(&[1, 2, 4], 5.0)));
    }
    let codes: Vec<_> = given
        .iter()
        .map(|tensor| tensor.as_ref().map(|tensor| code(tensor.dtype())))
        .collect();
    let attributes = [attributes, vec![int("hidden_size", 4)]].concat();
    let n_outputs = if op_type == "LSTM" { 3 } else { 2 };
    let bytes = model(node(op_type, attributes, n_outputs), &codes);
    (bytes, given.into_iter().flatten().collect())
}

fn all_bytes(outputs: &[Tensor]) -> Vec<Vec<u8>> {
    outputs
        .iter()
        .map(|tensor| tensor.host_bytes().unwrap().to_vec())
        .collect()
}

#[test]
fn recurrent_operators_begin_anew() {
    let before_reset = || vec![int("linear_before_reset", 1)];
    for (op_type, attributes) in [
        ("GRU", Vec::new()),
        ("GRU", before_reset()),
        ("LSTM", Vec::new()),
        ("RNN", Vec::new()),
    ] {
        let (bytes, inputs) = recurrent(op_type, attributes, wave(&[5, 2, 3], 0.0));
        let mut others = inputs.clone();
        others[0] = wave(&[5, 2, 3], 9.0);
        let mut too_many = inputs.clone();
        too_many[0] = wave(&[5, 3, 3], 0.0);
        let options = LoadOptions::with_threads(1);
        let load = || Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
        let (mut model, mut second) = (load(), load());
        let first = all_bytes(&model.run(&inputs, None).unwrap());
        let other = all_bytes(&second.run(&others, None).unwrap());
        assert_ne!(first, other);
        assert_eq!(
            all_bytes(&model.run(&others, None).unwrap()),
            other,
            "{op_type}"
        );
        assert!(model.run(&too_many, None).is_err(), "{op_type}");
        assert_eq!(
            all_bytes(&model.run(&inputs, None).unwrap()),
            first,
            "{op_type}"
        );
        assert_eq!(
            all_bytes(&second.run(&inputs, None).unwrap()),
            first,
            "{op_type}"
        );
    }
}

#[test]
fn random_operators_draw_the_same_numbers() {
    let shape = AttributeProto {
        ints: vec![64],
        ..attribute("shape", OnnxAttributeType::Ints)
    };
    let half = int("dtype", OnnxDataType::Float16 as i64);
    for (op_type, attributes, x) in [
        ("RandomNormal", vec![shape.clone()], None),
        ("RandomNormal", vec![shape.clone(), half], None),
        ("RandomUniform", vec![shape, float("seed", 3.0)], None),
        ("RandomNormalLike", Vec::new(), Some(wave(&[64], 0.0))),
        (
            "Multinomial",
            vec![int("sample_size", 64)],
            Some(wave(&[1, 5], 0.0)),
        ),
    ] {
        let codes: Vec<_> = x.iter().map(|x| Some(code(x.dtype()))).collect();
        let bytes = model(node(op_type, attributes, 1), &codes);
        let inputs: Vec<Tensor> = x.into_iter().collect();
        let options = LoadOptions::with_threads(1);
        let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
        let drawn = all_bytes(&model.run(&inputs, None).unwrap());
        // They are no constant.
        let is_varied = drawn[0].iter().any(|byte| *byte != drawn[0][0]);
        assert!(is_varied, "{op_type}");
        assert_eq!(
            all_bytes(&model.run(&inputs, None).unwrap()),
            drawn,
            "{op_type}"
        );
    }
}

/// Half of normal numbers are below zero; even ones between 0 and 1 never are.
#[test]
fn normal_numbers_of_float16_are_normal() {
    let shape = AttributeProto {
        ints: vec![1000],
        ..attribute("shape", OnnxAttributeType::Ints)
    };
    let attributes = vec![shape, int("dtype", OnnxDataType::Float16 as i64)];
    let outputs = run(node("RandomNormal", attributes, 1), &[]).unwrap();
    assert_eq!(outputs[0].dtype(), DType::F16);
    let n_below = outputs[0].host_bytes().unwrap().as_chunks::<2>().0.iter();
    let n_below = n_below.filter(|bytes| bytes[1] & 0x80 != 0).count();
    assert!((400..600).contains(&n_below), "{n_below}");
}

#[test]
fn integers_that_are_computed_calculate_like_those_that_are_given() {
    let given = |op_type: &str| {
        let inputs = [integers(&[-6, 7, -8, 9]), integers(&[7, -3, 3, 4])].map(Some);
        run(node(op_type, Vec::new(), 1), &inputs).unwrap()
    };
    for op_type in ["Add", "Div", "Max", "Min", "Mod", "Mul", "Sub"] {
        let computed = run_computed(op_type, &[-6.0, 7.0, -8.0, 9.0], &[7.0, -3.0, 3.0, 4.0]);
        assert_eq!(
            all_bytes(&computed),
            all_bytes(&given(op_type)),
            "{op_type}"
        );
    }
}

/// An operator on integers that `Cast` makes of floats.
fn run_computed(op_type: &str, a: &[f32], b: &[f32]) -> Vec<Tensor> {
    let f32 = Some(code(DType::F32));
    let mut proto = ModelProto::decode(&*model(node(op_type, Vec::new(), 1), &[f32, f32])).unwrap();
    let graph = proto.graph.as_mut().unwrap();
    let mut casts = Vec::new();
    for name in &mut graph.node[0].input {
        let to = vec![int("to", OnnxDataType::Int64 as i64)];
        let mut cast = node("Cast", to, 1);
        cast.input = vec![name.clone()];
        name.push_str("_integer");
        cast.name.clone_from(name);
        cast.output = vec![name.clone()];
        casts.push(cast);
    }
    graph.node.splice(0..0, casts);
    let bytes = proto.encode_to_vec();
    let options = LoadOptions::with_threads(1);
    let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
    let inputs = [a, b].map(|values| floats(&[values.len()], values));
    model.run(&inputs, None).unwrap()
}

#[test]
fn constants_calculate_like_values_that_are_given() {
    let hard = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-39,
        3e38,
        -7.0,
    ];
    for op_type in ["Add", "Div", "Mul", "Pow", "Sub"] {
        for constant in [0.0, 1.0, 2.0, 0.5, 1e-39, f32::INFINITY] {
            let inputs = [floats(&[6], &hard), floats(&[1], &[constant])];
            let given = run(node(op_type, Vec::new(), 1), &inputs.clone().map(Some)).unwrap();
            let f32 = Some(code(DType::F32));
            let bytes = model(node(op_type, Vec::new(), 1), &[f32, f32]);
            let mut proto = ModelProto::decode(&*bytes).unwrap();
            let graph = proto.graph.as_mut().unwrap();
            graph.input.pop();
            graph.initializer.push(TensorProto {
                name: "x1".into(),
                dims: vec![1],
                data_type: f32,
                float_data: vec![constant],
                ..TensorProto::default()
            });
            let bytes = proto.encode_to_vec();
            let options = LoadOptions::with_threads(1);
            let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
            let found = model.run(&inputs[..1], None).unwrap();
            assert_eq!(all_bytes(&found), all_bytes(&given), "{op_type} {constant}");
        }
    }
}

#[test]
fn many_shapes_change_no_bit() {
    let bytes = {
        let half = Some(OnnxDataType::Float16 as i32);
        model(node("MatMul", Vec::new(), 1), &[half, half])
    };
    let half = |n_rows: usize| {
        let values = (0..n_rows * 64).map(|i| half::f16::from_f32((i as f32 * 0.7).sin()));
        let bytes = values.flat_map(half::f16::to_le_bytes).collect();
        Tensor::from_vec(DType::F16, Shape::new([n_rows, 64]).unwrap(), bytes).unwrap()
    };
    let weights = half(64);
    let options = LoadOptions::with_threads(1);
    let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
    let mut run = |n_rows| all_bytes(&model.run(&[half(n_rows), weights.clone()], None).unwrap());
    let first = run(3);
    for n_rows in 4..20 {
        run(n_rows);
    }
    assert_eq!(run(3), first);
}
