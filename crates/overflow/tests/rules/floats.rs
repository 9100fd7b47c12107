//! Floating-point arithmetic.

use opscope_tensor::{DType, Tensor};

use super::{floats, ints, place, record, record_with_gaps, status, tensor};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn f32s(values: &[f64]) -> Tensor {
    floats(DType::F32, &[values.len()], values)
}

/// The status of an operator with one finite input of two elements and this output.
fn after(op_type: &str, output: &[f64]) -> u64 {
    status(&record(
        op_type,
        &[],
        vec![f32s(&[1.0, 2.0])],
        vec![f32s(output)],
    ))
}

#[test]
fn finite_in_and_not_out() {
    for (op_type, bit) in [
        ("Add", 0x20),
        ("Exp", 0x20),
        ("Log", 0x20),
        ("Sqrt", 0x20),
        ("Div", 0x20),
        ("Softmax", 0x20),
        ("ReduceSum", 0x20),
        ("SomethingNew", 0x20),
        ("MatMul", 0x400),
        ("Gemm", 0x400),
        ("Conv", 0x400),
        ("ConvTranspose", 0x400),
        ("Einsum", 0x400),
        ("Attention", 0x400),
        ("GroupQueryAttention", 0x400),
        ("FusedMatMul", 0x400),
        ("LSTM", 0x400),
        ("GRU", 0x400),
        ("Cast", 0x100),
        ("Identity", 0),
        ("Constant", 0),
        ("Where", 0),
        ("Pad", 0),
        ("Max", 0),
        ("ReduceMax", 0),
        ("MaxPool", 0),
        ("TopK", 0),
        ("ScatterND", 0),
        ("If", 0),
    ] {
        for output in [[1.0, INF], [NAN, 1.0], [-INF, -INF]] {
            assert_eq!(after(op_type, &output), bit, "{op_type} {output:?}");
        }
        assert_eq!(after(op_type, &[f64::from(f32::MAX), -0.0]), 0, "{op_type}");
    }
}

#[test]
fn every_width_and_where_it_happened() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let output = floats(dtype, &[2, 2], &[0.0, NAN, 1.0, -INF]);
        let input = floats(dtype, &[2, 2], &[1.0; 4]);
        let found = place(&record(
            "Mul",
            &[],
            vec![input.clone(), input],
            vec![output],
        ));
        assert_eq!(found, Some((0x20, 2, 1)), "{dtype}");
    }
    // The real and imaginary part of the second number are one element.
    let parts: Vec<u8> = [1.0, 1.0, f32::NAN, f32::INFINITY]
        .iter()
        .flat_map(|part| part.to_le_bytes())
        .collect();
    let output = tensor(DType::C64, &[2], parts);
    let found = place(&record("DFT", &[], vec![f32s(&[1.0])], vec![output]));
    assert_eq!(found, Some((0x20, 1, 1)));
}

#[test]
fn what_was_there_before_is_handed_on() {
    let cases = [vec![1.0, INF], vec![NAN], vec![-INF, -INF]];
    for input in &cases {
        for op_type in ["Add", "MatMul", "Exp"] {
            let record = record(
                op_type,
                &[],
                vec![f32s(&[1.0]), f32s(input)],
                vec![f32s(&[NAN])],
            );
            assert_eq!(status(&record), 0, "{op_type} {input:?}");
        }
    }
}

#[test]
fn what_is_unknown_explains_anything() {
    let mut incomplete = record(
        "Add",
        &[],
        vec![f32s(&[1.0]), f32s(&[2.0])],
        vec![f32s(&[INF])],
    );
    assert_eq!(status(&incomplete), 0x20);
    incomplete.inputs.pop();
    assert_eq!(status(&incomplete), 0);
    let gaps = record_with_gaps(
        "Conv",
        &[],
        vec![Some(f32s(&[1.0])), Some(f32s(&[2.0])), None],
        vec![f32s(&[INF])],
    );
    assert_eq!(status(&gaps), 0x400);
    for (value, bit) in [
        ("-inf", 0),
        ("NaN", 0),
        ("[0.5, inf]", 0),
        ("[0, 0, … 100 in all]", 0),
        ("tensor[3]", 0),
        ("1", 0x20),
        ("[1, 2]", 0x20),
        ("\"inf\"", 0x20),
        ("[\"inf\"]", 0x20),
        ("graph `inf` of 3 nodes", 0x20),
    ] {
        let record = record(
            "Odd",
            &[("a", value)],
            vec![f32s(&[1.0])],
            vec![f32s(&[INF])],
        );
        assert_eq!(status(&record), bit, "{value}");
    }
}

#[test]
fn nothing_to_compute_from() {
    let empty = || floats(DType::F32, &[0], &[]);
    let axes = ints(DType::I64, &[1], &[0]);
    let cases = [
        record(
            "ReduceLogSum",
            &[],
            vec![empty(), axes],
            vec![f32s(&[-INF])],
        ),
        record("ReduceMean", &[], vec![empty()], vec![f32s(&[NAN])]),
        record(
            "RandomNormal",
            &[("scale", "1e39")],
            vec![],
            vec![f32s(&[INF])],
        ),
        record("Range", &[], vec![], vec![f32s(&[INF])]),
    ];
    for record in cases {
        assert_eq!(status(&record), 0, "{}", record.operator.op_type);
    }
}

#[test]
fn scatter_with_and_without_arithmetic() {
    for (reduction, bit) in [
        ("\"none\"", 0),
        ("\"add\"", 0x20),
        ("\"mul\"", 0x20),
        ("\"max\"", 0),
    ] {
        let inputs = vec![f32s(&[3e38]), ints(DType::I64, &[1], &[0]), f32s(&[3e38])];
        let record = record(
            "ScatterElements",
            &[("reduction", reduction)],
            inputs,
            vec![f32s(&[INF])],
        );
        assert_eq!(status(&record), bit, "{reduction}");
    }
}

#[test]
fn masked_attention() {
    let attention = |mask: &[u8], outputs| {
        let mut inputs = vec![f32s(&[1.0]); 3];
        inputs.push(tensor(DType::Bool, &[2, 2], mask.to_vec()));
        status(&record("Attention", &[], inputs, outputs))
    };
    let scores = || vec![f32s(&[1.0]), f32s(&[1.0]), f32s(&[1.0]), f32s(&[-INF])];
    assert_eq!(attention(&[1, 0, 1, 1], vec![f32s(&[NAN])]), 0x400);
    assert_eq!(attention(&[1, 0, 0, 0], vec![f32s(&[NAN])]), 0);
    assert_eq!(attention(&[1, 0, 1, 1], scores()), 0);
}
