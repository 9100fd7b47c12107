mod edges;
mod executions;
mod rounded;

use opscope_tensor::{DType, Shape, Tensor};
use prost::Message;
use prost::bytes::Bytes;

use super::{Tract, VERSION};
use crate::onnx::schema::*;
use crate::{Engine, EngineError, LoadOptions, ModelSource};

#[test]
fn the_version_is_the_pinned_one() {
    let workspace = include_str!("../../../../../Cargo.toml");
    let pinned = format!("tract-onnx = {{ version = \"={VERSION}\"");
    assert!(workspace.contains(&pinned));
}

/// A node of the standard domain that reads `x0`, `x1`, … and gives `y0`, `y1`, …
fn node(op_type: &str, attribute: Vec<AttributeProto>, n_outputs: usize) -> NodeProto {
    NodeProto {
        op_type: op_type.to_owned(),
        name: "n".into(),
        output: (0..n_outputs).map(|i| format!("y{i}")).collect(),
        attribute,
        ..NodeProto::default()
    }
}

fn attribute(name: &str, kind: OnnxAttributeType) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: Some(kind as i32),
        ..AttributeProto::default()
    }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        i: Some(i),
        ..attribute(name, OnnxAttributeType::Int)
    }
}

fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto {
        f: Some(f),
        ..attribute(name, OnnxAttributeType::Float)
    }
}

fn word(name: &str, s: &'static str) -> AttributeProto {
    AttributeProto {
        s: Some(Bytes::from_static(s.as_bytes())),
        ..attribute(name, OnnxAttributeType::String)
    }
}

fn words(name: &str, strings: &[&'static str]) -> AttributeProto {
    AttributeProto {
        strings: strings
            .iter()
            .map(|s| Bytes::from_static(s.as_bytes()))
            .collect(),
        ..attribute(name, OnnxAttributeType::Strings)
    }
}

/// The model of one node; an input without a type is absent.
fn model(mut node: NodeProto, inputs: &[Option<i32>]) -> Vec<u8> {
    let name = |(i, code): (usize, &Option<i32>)| code.map(|_| format!("x{i}")).unwrap_or_default();
    node.input = inputs.iter().enumerate().map(name).collect();
    let value = |name: &str, code: i32| ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(TensorTypeProto {
                elem_type: Some(code),
                shape: None,
            })),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    };
    let present = node.input.iter().zip(inputs);
    let graph = GraphProto {
        name: "g".into(),
        input: present
            .filter_map(|(name, code)| Some(value(name, (*code)?)))
            .collect(),
        output: node.output.iter().map(|name| value(name, 0)).collect(),
        node: vec![node],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto {
        version: Some(23),
        ..OperatorSetIdProto::default()
    };
    let model = ModelProto {
        ir_version: Some(10),
        graph: Some(graph),
        opset_import: vec![opset],
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

fn code(dtype: DType) -> i32 {
    let data_type = match dtype {
        DType::F32 => OnnxDataType::Float,
        DType::I8 => OnnxDataType::Int8,
        DType::U8 => OnnxDataType::Uint8,
        DType::I64 => OnnxDataType::Int64,
        DType::Bool => OnnxDataType::Bool,
        other => panic!("no test has {other}"),
    };
    data_type as i32
}

fn run(node: NodeProto, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>, EngineError> {
    let codes: Vec<_> = inputs
        .iter()
        .map(|t| t.as_ref().map(|t| code(t.dtype())))
        .collect();
    let bytes = model(node, &codes);
    let mut model = Tract.load(ModelSource::Memory(&bytes), &LoadOptions::with_threads(1))?;
    let inputs: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
    model.run(&inputs, None)
}

fn floats(dims: &[usize], values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new(dims).unwrap(), bytes).unwrap()
}

fn bytes(dtype: DType, dims: &[usize], values: &[u8]) -> Tensor {
    Tensor::from_vec(dtype, Shape::new(dims).unwrap(), values.to_vec()).unwrap()
}

fn integers(values: &[i64]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::I64, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    let elements = tensor.host_bytes().unwrap().as_chunks().0;
    elements
        .iter()
        .map(|&element| f32::from_le_bytes(element))
        .collect()
}

/// The largest difference; infinite where one side alone is NaN.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let one = |(a, b): (&f32, &f32)| match (a.is_nan(), b.is_nan()) {
        (true, true) => 0.0,
        (false, false) => (a - b).abs(),
        _ => f32::INFINITY,
    };
    found.iter().zip(expected).map(one).fold(0.0, f32::max)
}

#[test]
fn activations_take_their_factor() {
    let x = [-3.0_f32, -0.5, 0.0, 2.0, f32::NAN];
    let celu = x.map(|x| {
        if x > 0.0 {
            x
        } else {
            2.0 * ((x / 2.0).exp() - 1.0)
        }
    });
    let swish = x.map(|x| x / (1.0 + (-0.5 * x).exp()));
    for (op_type, alpha, expected) in [("Celu", 2.0, celu), ("Swish", 0.5, swish)] {
        let node = node(op_type, vec![float("alpha", alpha)], 1);
        let outputs = run(node, &[Some(floats(&[5], &x))]).unwrap();
        let found = values(&outputs[0]);
        assert!(distance(&found, &expected) < 1e-5, "{op_type}: {found:?}");
    }
}

#[test]
fn logarithms_of_large_numbers_are_finite() {
    let x = [100.0_f32, -100.0, 0.0, -3.0, 5.0];
    let softplus = x.map(|x| x.max(0.0) + (-x.abs()).exp().ln_1p());
    let sum: f32 = x.iter().map(|x| (x - 100.0).exp()).sum();
    let log_softmax = x.map(|x| x - 100.0 - sum.ln());
    for (op_type, expected) in [("Softplus", softplus), ("LogSoftmax", log_softmax)] {
        let outputs = run(node(op_type, Vec::new(), 1), &[Some(floats(&[5], &x))]).unwrap();
        let found = values(&outputs[0]);
        assert!(distance(&found, &expected) < 1e-5, "{op_type}: {found:?}");
        let outputs = run(
            node(op_type, Vec::new(), 1),
            &[Some(floats(&[1], &[f32::NAN]))],
        );
        assert!(values(&outputs.unwrap()[0])[0].is_nan(), "{op_type}");
    }
}

#[test]
fn bits_are_shifted_out() {
    let x = [0b1100_0101_u8, 7, 0x80, 1];
    let n_bits = [1_u8, 8, 9, 0xff];
    let cases = [
        (DType::U8, "LEFT", [0b1000_1010, 0, 0, 0]),
        (DType::U8, "RIGHT", [0b0110_0010, 0, 0, 0]),
        (DType::I8, "LEFT", [0b1000_1010, 0, 0, 0]),
        // Copies of the sign remain, and 0xff shifts by -1.
        (DType::I8, "RIGHT", [0b1110_0010, 0, 0xff, 0]),
    ];
    for (dtype, direction, expected) in cases {
        let node = node("BitShift", vec![word("direction", direction)], 1);
        let inputs = [&x, &n_bits].map(|values| Some(bytes(dtype, &[4], values)));
        let outputs = run(node, &inputs).unwrap();
        assert_eq!(
            outputs[0].host_bytes().unwrap(),
            expected,
            "{dtype} {direction}"
        );
    }
}

/// Shares of 1/4 and 3/4, so that every result is known.
fn attention(attributes: Vec<AttributeProto>, more: &[Option<Tensor>]) -> Vec<f32> {
    let ln3 = 3.0_f32.ln();
    let query = floats(&[1, 1, 2, 1], &[1.0, 1.0]);
    let key = floats(&[1, 1, 2, 1], &[0.0, ln3]);
    let value = floats(&[1, 1, 2, 1], &[0.0, 4.0]);
    let inputs: Vec<_> = [query, key, value]
        .into_iter()
        .map(Some)
        .chain(more.iter().cloned())
        .collect();
    let outputs = run(node("Attention", attributes, 1), &inputs).unwrap();
    values(&outputs[0])
}

fn check_attention(attributes: Vec<AttributeProto>, more: &[Option<Tensor>], expected: &[f32]) {
    let found = attention(attributes, more);
    assert!(
        distance(&found, expected) < 1e-5,
        "{found:?}, expected {expected:?}"
    );
}

#[test]
fn attention_sees_what_it_may() {
    let mask = |values: &[u8]| Some(bytes(DType::Bool, &[2, 2], values));
    let causal = || vec![int("is_causal", 1)];
    check_attention(vec![], &[], &[3.0, 3.0]);
    check_attention(causal(), &[], &[0.0, 3.0]);
    check_attention(vec![], &[mask(&[0, 1, 1, 0])], &[4.0, 0.0]);
    // A query that sees nothing gives zeros.
    check_attention(vec![], &[mask(&[0, 0, 1, 1])], &[0.0, 3.0]);
    check_attention(causal(), &[mask(&[0, 1, 0, 1])], &[0.0, 4.0]);
    let lowest = f32::NEG_INFINITY;
    let bias = floats(&[2, 2], &[lowest, lowest, 3.0_f32.ln(), 0.0]);
    check_attention(vec![], &[Some(bias)], &[0.0, 2.0]);
    check_attention(vec![int("left_window_size", 0)], &[], &[3.0, 4.0]);
    check_attention(vec![int("right_window_size", 0)], &[], &[0.0, 3.0]);
    let lengths = |n| [None, None, None, Some(integers(&[n]))];
    check_attention(vec![], &lengths(1), &[0.0, 0.0]);
    check_attention(causal(), &lengths(2), &[0.0, 3.0]);
    check_attention(causal(), &lengths(1), &[0.0, 0.0]);
}

#[test]
fn attention_counts_from_its_past() {
    let past = |x: f32| Some(floats(&[1, 1, 1, 1], &[x]));
    // Keys 0, 0 and ln 3; the first query is at position 1.
    let more = [None, past(0.0), past(8.0)];
    check_attention(vec![int("is_causal", 1)], &more, &[4.0, 4.0]);
}

#[test]
fn attention_shows_its_scores() {
    let ln3 = 3.0_f32.ln();
    let lowest = f32::NEG_INFINITY;
    let capped = (ln3 / 0.5).tanh() * 0.5;
    let share = 1.0 / (1.0 + capped.exp());
    let expected = [
        [0.0, ln3, 0.0, ln3],
        [0.0, capped, 0.0, capped],
        [0.0, lowest, 0.0, capped],
        [1.0, 0.0, share, 1.0 - share],
    ];
    for (mode, expected) in (0..).zip(expected) {
        let attributes = vec![
            int("qk_matmul_output_mode", mode),
            float("softcap", 0.5),
            int("is_causal", 1),
        ];
        let node = node("Attention", attributes, 4);
        let row = |values: &[f32]| Some(floats(&[1, 1, 2, 1], values));
        let inputs = [row(&[1.0, 1.0]), row(&[0.0, ln3]), row(&[0.0, 4.0])];
        let outputs = run(node, &inputs).unwrap();
        let found = values(outputs.last().unwrap());
        let same = found
            .iter()
            .zip(&expected)
            .all(|(a, b)| a == b || (a - b).abs() < 1e-5);
        assert!(same, "mode {mode}: {found:?}, expected {expected:?}");
    }
}

#[test]
fn heads_of_the_query_share_those_of_the_key() {
    let ln3 = 3.0_f32.ln();
    let inputs = [
        floats(&[1, 1, 4], &[1.0, 0.0, 1.0, -1.0]),
        floats(&[1, 2, 2], &[0.0, 0.0, ln3, ln3]),
        floats(&[1, 2, 2], &[0.0, 0.0, 4.0, 8.0]),
    ];
    let attributes = vec![int("q_num_heads", 4), int("kv_num_heads", 2)];
    let outputs = run(node("Attention", attributes, 1), &inputs.map(Some)).unwrap();
    assert_eq!(outputs[0].shape().dims(), [1, 1, 4]);
    assert!(distance(&values(&outputs[0]), &[3.0, 2.0, 6.0, 2.0]) < 1e-5);
}

fn refusal(node: NodeProto, inputs: &[Option<i32>]) -> Option<String> {
    let bytes = model(node, inputs);
    let loaded = Tract.load(ModelSource::Memory(&bytes), &LoadOptions::with_threads(1));
    loaded.err().map(|error| error.to_string())
}

#[test]
fn attributes_that_are_passed_over_are_refused_where_they_matter() {
    let float32 = Some(OnnxDataType::Float as i32);
    let cases: [(&str, usize, AttributeProto, bool); 15] = [
        ("Add", 2, int("axis", 1), true),
        ("BatchNormalization", 5, int("training_mode", 1), true),
        ("BatchNormalization", 5, int("training_mode", 0), false),
        ("DequantizeLinear", 2, int("output_dtype", 10), true),
        ("GRU", 3, float("clip", 1.0), true),
        ("GRU", 3, words("activations", &["Sigmoid", "Tanh"]), false),
        ("LSTM", 3, int("input_forget", 1), true),
        (
            "LSTM",
            3,
            words("activations", &["Sigmoid", "Tanh", "Relu"]),
            true,
        ),
        ("QuantizeLinear", 2, int("output_dtype", 3), true),
        ("QuantizeLinear", 2, int("output_dtype", 2), false),
        ("QuantizeLinear", 3, int("output_dtype", 3), false),
        ("RNN", 3, words("activations", &["Relu"]), true),
        ("RNN", 3, words("activations", &["Tanh", "tanh"]), false),
        ("SpaceToDepth", 1, word("mode", "CRD"), true),
        ("SpaceToDepth", 1, word("mode", "DCR"), false),
    ];
    for (op_type, n_inputs, attribute, is_refused) in cases {
        let expected = is_refused.then(|| {
            let name = &attribute.name;
            format!("tract cannot run operator `n` of type `{op_type}`: it passes over the attribute `{name}`")
        });
        let told = format!("{attribute:?}");
        let found = refusal(node(op_type, vec![attribute], 1), &vec![float32; n_inputs]);
        match (&found, &expected) {
            (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
            _ => assert_eq!(found, expected, "{told}"),
        }
    }
}

#[test]
fn types_and_operators_that_only_look_known_are_refused() {
    let half = Some(OnnxDataType::Bfloat16 as i32);
    let found = refusal(node("Abs", vec![], 1), &[half]).unwrap();
    let expected = "tract cannot run operator `n` of type `Abs`: it has no type for bfloat16";
    assert!(found.starts_with(expected), "{found}");
    let mut other = node("Attention", vec![], 1);
    other.domain = "com.microsoft".into();
    let found = refusal(other, &[Some(OnnxDataType::Float as i32); 3]).unwrap();
    let expected = "tract cannot run operator `n` of type `Attention`: it has no such operator";
    assert!(found.starts_with(expected), "{found}");
}

/// A long chain gives what the same operators give one by one, and its nodes share a handful of
/// plans.
#[test]
fn nodes_of_a_large_graph_share_plans() {
    let n = super::graph::N_NODES_LARGE + 100;
    let alpha = |i: usize| vec![float("alpha", if i.is_multiple_of(2) { 0.5 } else { 2.0 })];
    let mut nodes = Vec::new();
    for i in 0..n {
        let mut node = node("LeakyRelu", alpha(i), 0);
        node.name = format!("n{i}");
        node.input = vec![format!("v{i}")];
        node.output = vec![format!("v{}", i + 1)];
        nodes.push(node);
    }
    let value = |name: String| ValueInfoProto {
        name,
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(TensorTypeProto {
                elem_type: Some(OnnxDataType::Float as i32),
                shape: None,
            })),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(16),
        }],
        graph: Some(GraphProto {
            name: "g".into(),
            node: nodes,
            input: vec![value("v0".into())],
            output: vec![value(format!("v{n}"))],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    let bytes = model.encode_to_vec();
    let options = LoadOptions::with_threads(1);
    let source = ModelSource::Memory(&bytes);
    let mut loaded = Tract.load(source, &options).unwrap();
    let bytes = [-1.0_f32, 3.0].map(f32::to_le_bytes).concat();
    let input = Tensor::from_vec(DType::F32, Shape::new([2]).unwrap(), bytes.clone()).unwrap();
    for _ in 0..2 {
        // Halves and doubles in turn, as many of the one as of the other.
        let outputs = loaded.run(std::slice::from_ref(&input), None).unwrap();
        assert_eq!(outputs[0].host_bytes().unwrap(), bytes);
    }
}

#[test]
fn a_constant_of_a_shape_is_a_float32_zero_without_a_value() {
    for n in [3_i64, 0, 2] {
        let dims = n.to_le_bytes().to_vec();
        let dims = Tensor::from_vec(DType::I64, Shape::new([1]).unwrap(), dims).unwrap();
        let operator = node("ConstantOfShape", Vec::new(), 1);
        let outputs = run(operator, &[Some(dims)]).unwrap();
        assert_eq!(outputs[0].dtype(), DType::F32);
        assert_eq!(outputs[0].host_bytes().unwrap(), vec![0; 4 * n as usize]);
    }
}
