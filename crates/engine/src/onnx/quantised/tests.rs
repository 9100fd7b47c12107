use opscope_capture::{QuantisedKind, SlotPosition};
use opscope_store::record::SlotSide::{Input, Output};

use super::*;
use crate::onnx::schema::{AttributeProto, NodeProto, TensorProto, ValueInfoProto};

fn names(text: &str) -> Vec<String> {
    let names = text.split(' ').filter(|name| !name.is_empty());
    // A lone dot stands for an absent value.
    let name = |name: &str| if name == "." { "" } else { name }.to_owned();
    names.map(name).collect()
}

/// `domain::Type` with its inputs and outputs.
fn node(op_type: &str, input: &str, output: &str) -> NodeProto {
    let (domain, op_type) = op_type.split_once("::").unwrap_or(("", op_type));
    NodeProto {
        op_type: op_type.to_owned(),
        domain: domain.to_owned(),
        input: names(input),
        output: names(output),
        ..NodeProto::default()
    }
}

fn with_int(mut node: NodeProto, name: &str, i: i64) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        i: Some(i),
        ..AttributeProto::default()
    });
    node
}

fn with_body(mut node: NodeProto, name: &str, body: GraphProto) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_owned(),
        g: Some(body),
        ..AttributeProto::default()
    });
    node
}

fn graph(input: &str, node: Vec<NodeProto>) -> GraphProto {
    let value = |name: String| ValueInfoProto {
        name,
        ..ValueInfoProto::default()
    };
    GraphProto {
        input: names(input).into_iter().map(value).collect(),
        node,
        ..GraphProto::default()
    }
}

/// Place, places of the scale, place of the zero point, axis.
type Line = (SlotPosition, Vec<SlotPosition>, Option<SlotPosition>, i64);

fn check(node: NodeProto, kind: QuantisedKind, expected: &[Line]) {
    let what = format!("{} {:?}", node.op_type, node.input);
    let found = find(&graph("", vec![node]));
    assert!(found.iter().all(|slot| slot.kind == kind), "{what}");
    let found: Vec<Line> = found
        .into_iter()
        .map(|slot| (slot.place, slot.scale, slot.zero_point, slot.axis))
        .collect();
    assert_eq!(found, expected, "{what}");
}

fn read(at: usize, scale: usize, zero: usize, axis: i64) -> Line {
    ((Input, at), vec![(Input, scale)], Some((Input, zero)), axis)
}

fn given(scale: usize, zero: usize, axis: i64) -> Line {
    let zero = Some((Input, zero));
    ((Output, 0), vec![(Input, scale)], zero, axis)
}

fn integers(side: opscope_store::record::SlotSide, at: usize, zero: Option<usize>) -> Line {
    ((side, at), Vec::new(), zero.map(|at| (Input, at)), 1)
}

fn bias(at: usize, scales: (usize, usize)) -> Line {
    let scales = vec![(Input, scales.0), (Input, scales.1)];
    ((Input, at), scales, None, -1)
}

#[test]
fn what_quantises_and_dequantises() {
    use QuantisedKind::{Dequantises, Quantises};
    for domain in ["", "ai.onnx::", "com.microsoft::"] {
        let quantise = format!("{domain}QuantizeLinear");
        let dequantise = format!("{domain}DequantizeLinear");
        check(node(&quantise, "x s z", "q"), Quantises, &[given(1, 2, 1)]);
        check(
            node(&dequantise, "q s z", "y"),
            Dequantises,
            &[read(0, 1, 2, 1)],
        );
        let along = with_int(node(&dequantise, "q s z", "y"), "axis", -2);
        check(along, Dequantises, &[read(0, 1, 2, -2)]);
    }
    let no_zero = ((Output, 0), vec![(Input, 1)], None, 1);
    check(node("QuantizeLinear", "x s", "q"), Quantises, &[no_zero]);
    let no_zero = ((Input, 0), vec![(Input, 1)], None, 1);
    check(
        node("DequantizeLinear", "q s .", "y"),
        Dequantises,
        &[no_zero],
    );
    let dynamic = ((Output, 0), vec![(Output, 1)], Some((Output, 2)), 1);
    check(
        node("DynamicQuantizeLinear", "x", "q s z"),
        Quantises,
        &[dynamic],
    );
    check(node("other::QuantizeLinear", "x s z", "q"), Quantises, &[]);
    check(node("Conv", "x w b", "y"), Quantises, &[]);
    let blocks = with_int(node("DequantizeLinear", "q s", "y"), "block_size", 32);
    assert_eq!(find(&graph("", vec![blocks]))[0].block_size, 32);
    let wrong = with_int(node("DequantizeLinear", "q s", "y"), "block_size", -3);
    assert_eq!(find(&graph("", vec![wrong]))[0].block_size, 0);
}

#[test]
fn operators_of_onnx_that_compute_with_integers() {
    let check = |node, expected: &[Line]| check(node, QuantisedKind::Computes, expected);
    let conv = [read(0, 1, 2, 1), read(3, 4, 5, 0), given(6, 7, 1)];
    check(node("QLinearConv", "x xs xz w ws wz ys yz", "y"), &conv);
    let [x, w, y] = conv;
    let with_bias = [x, w, bias(8, (1, 4)), y];
    for domain in ["", "com.microsoft::", "com.ms.internal.nhwc::"] {
        let op_type = format!("{domain}QLinearConv");
        check(node(&op_type, "x xs xz w ws wz ys yz b", "y"), &with_bias);
    }
    check(
        node("QLinearMatMul", "a as az b bs bz ys yz", "y"),
        &[read(0, 1, 2, -2), read(3, 4, 5, -1), given(6, 7, -2)],
    );
    for op_type in ["ConvInteger", "MatMulInteger"] {
        let all = [
            integers(Input, 0, Some(2)),
            integers(Input, 1, Some(3)),
            integers(Output, 0, None),
        ];
        check(node(op_type, "a b az bz", "y"), &all);
        let none = [
            integers(Input, 0, None),
            integers(Input, 1, None),
            integers(Output, 0, None),
        ];
        check(node(op_type, "a b", "y"), &none);
    }
    check(node("QLinearAdd", "a as az b bs bz cs cz", "c"), &[]);
}

#[test]
fn operators_that_onnx_runtime_adds() {
    let check = |op_type: &str, inputs: &str, expected: &[Line]| {
        let node = node(&format!("com.microsoft::{op_type}"), inputs, "y");
        check(node, QuantisedKind::Computes, expected);
    };
    let (first, second) = (read(0, 1, 2, 1), read(3, 4, 5, 1));
    for op_type in ["QLinearAdd", "QLinearMul"] {
        let expected = [first.clone(), second.clone(), given(6, 7, 1)];
        check(op_type, "a as az b bs bz cs cz", &expected);
    }
    for op_type in [
        "QLinearAveragePool",
        "QLinearGlobalAveragePool",
        "QLinearLeakyRelu",
        "QLinearReduceMean",
        "QLinearSigmoid",
        "QLinearSoftmax",
    ] {
        check(op_type, "x xs xz ys yz", &[first.clone(), given(3, 4, 1)]);
    }
    let mut without_zeros = [first.clone(), given(3, 4, 1)];
    without_zeros[0].2 = None;
    without_zeros[1].2 = None;
    check("QLinearSigmoid", "x xs . ys .", &without_zeros);
    check(
        "QLinearConcat",
        "ys yz a as az b bs bz",
        &[read(2, 3, 4, 1), read(5, 6, 7, 1), given(0, 1, 1)],
    );
    check(
        "QLinearWhere",
        "c x xs xz y ys yz zs zz",
        &[read(1, 2, 3, 1), read(4, 5, 6, 1), given(7, 8, 1)],
    );
    check("QAttention", "x w b xs ws", &{
        let mut lines = [read(0, 3, 6, 1), read(1, 4, 7, -1)];
        lines[0].2 = None;
        lines[1].2 = None;
        lines
    });
    check(
        "QAttention",
        "x w b xs ws m xz wz",
        &[read(0, 3, 6, 1), read(1, 4, 7, -1)],
    );
    check("DynamicQuantizeMatMul", "a b bs bz", &[read(1, 2, 3, -1)]);
    check(
        "MatMulIntegerToFloat",
        "a b as bs az bz",
        &[read(0, 2, 4, -2), read(1, 3, 5, -1)],
    );
    check(
        "MulInteger",
        "a az b bz",
        &[
            integers(Input, 0, Some(1)),
            integers(Input, 2, Some(3)),
            integers(Output, 0, None),
        ],
    );
    let embed: Vec<Line> = [2, 3, 5, 6].map(|at| read(at, at + 6, at + 11, 1)).into();
    let inputs = "ids . w p . g b . ws ps . gs bs wz pz . gz bz";
    check("QEmbedLayerNormalization", inputs, &embed);
    check("QLinearUnheardOf", "x xs xz ys yz", &[]);
}

#[test]
fn a_gemm_turns_and_scales() {
    let gemm = |inputs| node("com.microsoft::QGemm", inputs, "y");
    let full = "a as az b bs bz c ys yz";
    let (a, y) = (read(0, 1, 2, 1), given(7, 8, 1));
    let check = |node, expected: &[Line]| check(node, QuantisedKind::Computes, expected);
    let straight = [a.clone(), read(3, 4, 5, -1), bias(6, (1, 4)), y.clone()];
    check(gemm(full), &straight);
    let turned = [a.clone(), read(3, 4, 5, 0), bias(6, (1, 4)), y.clone()];
    check(with_int(gemm(full), "transB", 1), &turned);
    let [a, b, ..] = straight;
    check(gemm("a as az b bs bz"), &[a.clone(), b.clone()]);
    let mut scaled = gemm(full);
    scaled.attribute.push(AttributeProto {
        name: "alpha".to_owned(),
        f: Some(0.5),
        ..AttributeProto::default()
    });
    check(scaled, &[a, b, y]);
}

#[test]
fn places_of_one_value_share_its_number() {
    let found = find(&graph(
        "x",
        vec![
            node("QuantizeLinear", "x s z", "q"),
            node("Identity", "q", "r"),
            node("MatMulInteger", "q r", "y"),
            node("DequantizeLinear", "q s z", "f"),
        ],
    ));
    let at = |task_id: u32, place: SlotPosition| {
        let mut places = found.iter();
        let slot = places.find(|slot| (slot.task_id, slot.place) == (task_id, place));
        slot.unwrap().value
    };
    let q = at(0, (Output, 0));
    assert_eq!(q, at(2, (Input, 0)));
    assert_eq!(q, at(3, (Input, 0)));
    assert_ne!(q, at(2, (Input, 1)));
    assert_ne!(q, at(2, (Output, 0)));
}

/// Tasks count through bodies; a body sees what is outside of it, and its own names are its own.
#[test]
fn bodies_are_looked_into() {
    let branch = |from: &str| {
        graph(
            "",
            vec![
                node("QuantizeLinear", &format!("{from} s z"), "q"),
                node("DequantizeLinear", "q s z", "f"),
                node("MatMulInteger", "q w", "y"),
            ],
        )
    };
    let both = node("If", "c", "r");
    let both = with_body(both, "then_branch", branch("x"));
    let both = with_body(both, "else_branch", branch("x"));
    let mut model = graph("x c", vec![both, node("DequantizeLinear", "w s", "v")]);
    model.initializer.push(TensorProto {
        name: "w".to_owned(),
        ..TensorProto::default()
    });
    let found = find(&model);
    let tasks: Vec<u32> = found.iter().map(|slot| slot.task_id).collect();
    assert_eq!(tasks, [1, 2, 3, 3, 3, 4, 5, 6, 6, 6, 7]);
    let value = |i: usize| found[i].value;
    assert_eq!(value(0), value(1));
    assert_eq!(value(5), value(6));
    assert_ne!(value(0), value(5));
    assert_eq!(value(3), value(8));
    assert_eq!(value(3), value(10));
}
