//! Operators at the edges of their types, where tract's own forms of them give other values.

use super::*;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// An operator with its attributes, what it reads and what it gives.
type ThreeValues = (&'static str, Vec<AttributeProto>, [f32; 3], [f32; 3]);

#[test]
fn values_at_the_edges_are_those_of_the_formulas() {
    let infinity = f32::INFINITY;
    let tanh = || vec![word("approximate", "tanh")];
    let cases: [ThreeValues; 10] = [
        (
            "Acosh",
            vec![],
            [2e38, 1.0, infinity],
            [88.884_53, 0.0, infinity],
        ),
        (
            "Asinh",
            vec![],
            [-2e38, 2e38, 0.0],
            [-88.884_53, 88.884_53, 0.0],
        ),
        ("Gelu", tanh(), [-9e37, -20.0, 9e37], [0.0, 0.0, 9e37]),
        ("HardSwish", vec![], [3e38, -3e38, 4.0], [3e38, 0.0, 4.0]),
        (
            "ReduceLogSumExp",
            vec![],
            [104.0, -3e38, 104.0],
            [104.693_15; 3],
        ),
        ("ReduceLogSumExp", vec![], [-infinity; 3], [-infinity; 3]),
        (
            "ReduceLogSumExp",
            vec![],
            [-104.0, -104.0, -infinity],
            [-103.306_854; 3],
        ),
        (
            "Selu",
            vec![],
            [1.0, -30.0, 0.0],
            [1.050_701, -1.758_099_3, 0.0],
        ),
        (
            "Shrink",
            vec![float("bias", 1.5)],
            [3.0, -3.0, 0.5],
            [1.5, -1.5, 0.0],
        ),
        (
            "Swish",
            vec![],
            [-1e38, -20.0, 20.0],
            [0.0, -4.122_307e-8, 20.0],
        ),
    ];
    for (op_type, attributes, x, expected) in cases {
        let outputs = run(node(op_type, attributes, 1), &[Some(floats(&[3], &x))]).unwrap();
        let found = values(&outputs[0]);
        for (found, expected) in found.iter().zip(expected) {
            let is_close = *found == expected || (found - expected).abs() <= 2e-6 * expected.abs();
            assert!(is_close, "{op_type} of {x:?}: {found}, expected {expected}");
        }
    }
}

#[test]
fn an_infinity_beside_nan_is_not_lost() {
    let x = floats(&[1, 1, 4], &[f32::INFINITY, f32::NAN, 1.0, 2.0]);
    let outputs = run(node("GlobalMaxPool", vec![], 1), &[Some(x)]).unwrap();
    assert!(values(&outputs[0])[0].is_nan());
}

#[test]
fn a_global_pool_sums_sizes() {
    for (p, expected) in [(1, 7.0), (2, 5.0), (3, 4.497_941_5)] {
        let x = floats(&[1, 1, 2], &[-3.0, 4.0]);
        let outputs = run(node("GlobalLpPool", vec![int("p", p)], 1), &[Some(x)]).unwrap();
        let distance = distance(&values(&outputs[0]), &[expected]);
        assert!(distance < 1e-5, "p = {p}: {:?}", values(&outputs[0]));
    }
}

#[test]
fn integers_have_negative_powers() {
    let inputs = [integers(&[2, -1, 1, -1, 3]), integers(&[-1, -3, -2, -2, 4])].map(Some);
    let outputs = run(node("Pow", vec![], 1), &inputs).unwrap();
    assert_eq!(
        outputs[0].host_bytes().unwrap(),
        integers(&[0, -1, 1, 1, 81]).host_bytes().unwrap()
    );
}

#[test]
fn a_power_has_the_type_of_its_base() {
    let exponent = Tensor::from_vec(
        DType::F16,
        Shape::new([1]).unwrap(),
        half::f16::from_f32(2.0).to_le_bytes().to_vec(),
    );
    let types = [Some(code(DType::F32)), Some(OnnxDataType::Float16 as i32)];
    let bytes = model(node("Pow", vec![], 1), &types);
    let options = LoadOptions::with_threads(1);
    let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
    let inputs = [floats(&[2], &[3.0, 1.1]), exponent.unwrap()];
    let outputs = model.run(&inputs, None).unwrap();
    assert_eq!(outputs[0].dtype(), DType::F32);
    assert!(distance(&values(&outputs[0]), &[9.0, 1.21]) < 1e-6);
}

/// Initializers of `[0]` and `[-0]`, each through another operator.
#[test]
fn constants_keep_the_sign_of_zero() {
    for (op_type, expected) in [
        ("Identity", [0.0, -0.0]),
        ("Neg", [-0.0, 0.0]),
        ("Abs", [0.0, 0.0]),
    ] {
        let constant = |name: &str, value: f32| TensorProto {
            name: name.into(),
            dims: vec![1],
            data_type: Some(code(DType::F32)),
            float_data: vec![value],
            ..TensorProto::default()
        };
        let mut proto = ModelProto::decode(&*model(node(op_type, vec![], 1), &[])).unwrap();
        let graph = proto.graph.as_mut().unwrap();
        graph.initializer = vec![constant("positive", 0.0), constant("negative", -0.0)];
        let mut other = graph.node[0].clone();
        graph.node[0].input = vec!["positive".into()];
        other.name = "m".into();
        other.input = vec!["negative".into()];
        other.output = vec!["z".into()];
        graph.node.push(other);
        let mut output = graph.output[0].clone();
        output.name = "z".into();
        graph.output.push(output);
        let bytes = proto.encode_to_vec();
        let options = LoadOptions::with_threads(1);
        let mut model = Tract.load(ModelSource::Memory(&bytes), &options).unwrap();
        let outputs = model.run(&[], None).unwrap();
        let found = outputs.iter().flat_map(values).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&expected), "{op_type}: {found:?}");
    }
}

#[test]
fn extents_of_more_than_32_bits_are_refused() {
    let (large, one) = (integers(&[(1 << 32) + 3]), floats(&[1], &[1.0]));
    let cases: [(&str, Vec<Tensor>); 4] = [
        ("ConstantOfShape", vec![large.clone()]),
        ("Expand", vec![one.clone(), large.clone()]),
        ("Tile", vec![one.clone(), large.clone()]),
        ("Reshape", vec![one, large]),
    ];
    for (op_type, inputs) in cases {
        let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
        let error = run(node(op_type, vec![], 1), &inputs)
            .unwrap_err()
            .to_string();
        let expected = format!("operator `n` of type `{op_type}` failed: dimension 4294967299");
        assert!(error.contains(&expected), "{error}");
    }
    let dims = integers(&[1 << 30, 1 << 30, 1 << 30]);
    let error = run(node("ConstantOfShape", vec![], 1), &[Some(dims)]).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}

#[test]
fn bounds_that_do_not_meet_leave_nothing() {
    let x = floats(&[3], &[1.0, 2.0, 3.0]);
    let far = i64::MAX;
    let cases: [([i64; 4], &[f32]); 6] = [
        ([2, 1, 0, 1], &[]),
        ([-9, -8, 0, 1], &[]),
        ([1 << 40, far, 0, 1], &[]),
        ([-1, -9, 0, -2], &[3.0, 1.0]),
        ([-7, -9, 0, -1], &[1.0]),
        ([1 << 40, i64::MIN, -1, -1], &[3.0, 2.0, 1.0]),
    ];
    for (bounds, expected) in cases {
        let [start, end, axis, step] = bounds.map(|bound| integers(&[bound]));
        let inputs = [x.clone(), start, end, axis, step].map(Some);
        let outputs = run(node("Slice", vec![], 1), &inputs).unwrap();
        assert_eq!(values(&outputs[0]), expected, "{bounds:?}");
    }
}

fn wave(dims: &[usize]) -> Tensor {
    let n: usize = dims.iter().product();
    let elements: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
    floats(dims, &elements)
}

/// The operator with two directions, three steps, a batch of two, two hidden values and an input of
/// `width`.
fn recurrent(
    op_type: &str,
    n_gates: usize,
    width: usize,
    states: usize,
) -> Result<Vec<Tensor>, EngineError> {
    let attributes = vec![int("hidden_size", 2), word("direction", "bidirectional")];
    let mut inputs = vec![
        Some(wave(&[3, 2, width])),
        Some(wave(&[2, 2 * n_gates, 3])),
        Some(wave(&[2, 2 * n_gates, 2])),
        None,
        None,
    ];
    inputs.extend((0..states).map(|_| Some(floats(&[2, 2, 2], &[0.0; 8]))));
    run(node(op_type, attributes, 2), &inputs)
}

#[test]
fn recurrent_operators_take_a_batch_without_states() {
    for (op_type, n_gates, n_states) in [("GRU", 3, 1), ("LSTM", 4, 2), ("RNN", 1, 1)] {
        let found = recurrent(op_type, n_gates, 3, 0).unwrap();
        let expected = recurrent(op_type, n_gates, 3, n_states).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.shape(), expected.shape(), "{op_type}");
            assert_eq!(
                found.host_bytes().unwrap(),
                expected.host_bytes().unwrap(),
                "{op_type}"
            );
        }
    }
}

/// Both states of an `LSTM` as outputs, of a batch, and none of them given.
#[test]
fn an_lstm_gives_both_states() {
    let weights = [wave(&[1, 16, 3]), wave(&[1, 16, 4]), wave(&[1, 32])];
    let given = |states: [Option<Tensor>; 2]| {
        let mut inputs = vec![Some(wave(&[5, 2, 3]))];
        inputs.extend(weights.iter().cloned().map(Some));
        inputs.push(None);
        inputs.extend(states);
        run(node("LSTM", vec![int("hidden_size", 4)], 3), &inputs).unwrap()
    };
    let zeros = || Some(floats(&[1, 2, 4], &[0.0; 8]));
    let expected = given([zeros(), zeros()]);
    assert_eq!(expected.len(), 3);
    for states in [[None, None], [zeros(), None], [None, zeros()]] {
        for (found, expected) in given(states).iter().zip(&expected) {
            assert_eq!(found.host_bytes().unwrap(), expected.host_bytes().unwrap());
        }
    }
}

#[test]
fn recurrent_operators_refuse_an_input_that_their_weights_are_not_for() {
    for (op_type, n_gates) in [("GRU", 3), ("LSTM", 4), ("RNN", 1)] {
        for width in [2, 4] {
            let error = recurrent(op_type, n_gates, width, 0)
                .unwrap_err()
                .to_string();
            let n_rows = 2 * n_gates;
            let expected = format!(
                "`W` is [2, {n_rows}, 3], expected [2, {n_rows}, {width}] for `X` of [3, 2, {width}]"
            );
            let place = format!("operator `n` of type `{op_type}` failed");
            assert!(error.contains(&place), "{error}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

/// The batch in front: the same values in another order.
#[test]
fn recurrent_operators_know_both_layouts() {
    let attributes = |layout| {
        let direction = word("direction", "bidirectional");
        vec![int("hidden_size", 2), direction, int("layout", layout)]
    };
    let weights = [wave(&[2, 6, 3]), wave(&[2, 6, 2])];
    let inputs = |x: Tensor| [x, weights[0].clone(), weights[1].clone()].map(Some);
    // One step, so that a batch of two is the same bytes in either layout.
    let usual = run(node("GRU", attributes(0), 2), &inputs(wave(&[1, 2, 3]))).unwrap();
    let batched = run(node("GRU", attributes(1), 2), &inputs(wave(&[2, 1, 3]))).unwrap();
    assert_eq!(usual[0].shape().dims(), [1, 2, 2, 2]);
    assert_eq!(batched[0].shape().dims(), [2, 1, 2, 2]);
    assert_eq!(batched[1].shape().dims(), [2, 2, 2]);
    let (usual, batched) = (values(&usual[0]), values(&batched[0]));
    for direction in 0..2 {
        for row in 0..2 {
            let (a, b) = (4 * direction + 2 * row, 4 * row + 2 * direction);
            assert_eq!(usual[a..a + 2], batched[b..b + 2]);
        }
    }
}

#[test]
fn positions_of_the_lowest_number_are_right() {
    let attributes = vec![
        AttributeProto {
            ints: vec![2],
            ..attribute("kernel_shape", OnnxAttributeType::Ints)
        },
        word("auto_pad", "SAME_UPPER"),
    ];
    let x = bytes(DType::U8, &[1, 1, 4], &[5, 6, 3, 0]);
    let outputs = run(node("MaxPool", attributes, 2), &[Some(x)]).unwrap();
    assert_eq!(outputs[0].host_bytes().unwrap(), [6, 6, 3, 0]);
    let expected = [1_i64, 1, 2, 3].map(i64::to_le_bytes).concat();
    assert_eq!(outputs[1].host_bytes().unwrap(), expected);
}

#[test]
fn zeros_are_quantised_with_a_scale_of_one() {
    let x = floats(&[2], &[0.0, -0.0]);
    let outputs = run(node("DynamicQuantizeLinear", vec![], 3), &[Some(x)]).unwrap();
    assert_eq!(outputs[0].host_bytes().unwrap(), [0, 0]);
    assert_eq!(values(&outputs[1]), [1.0]);
}

#[test]
fn what_is_computed_otherwise_is_refused() {
    let float32 = Some(OnnxDataType::Float as i32);
    let int64 = Some(OnnxDataType::Int64 as i32);
    let double = int("output_datatype", OnnxDataType::Double as i64);
    let cases = [
        (
            node("DFT", vec![], 1),
            vec![float32, int64],
            "it passes over the length",
        ),
        (
            node("HannWindow", vec![double], 1),
            vec![int64],
            "it computes the window in float32",
        ),
    ];
    for (node, inputs, expected) in cases {
        let found = refusal(node, &inputs).unwrap();
        assert!(found.contains(expected), "{found}");
    }
}
