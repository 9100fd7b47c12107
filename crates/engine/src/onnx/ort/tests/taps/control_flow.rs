//! Operators in the bodies of others.

use opscope_store::record::SlotSide;

use super::build::*;
use super::*;
use crate::onnx::schema::{GraphProto, NodeProto};

/// A loop over `inner` that runs `n` times, and adds up what comes in.
fn sum_loop(name: &str, n: &str, carried: &str, result: &str, body: GraphProto) -> NodeProto {
    node("Loop", &[n, "", carried], &[result])
        .called(name)
        .body("body", body)
}

/// A body that adds the number of the iteration to what it carries, twice if `is_nested`.
fn adding(prefix: &str, more: Vec<NodeProto>, result: &str) -> GraphProto {
    let name = |name: &str| format!("{prefix}{name}");
    let mut nodes = vec![
        node("Identity", &[&name("on")], &[&name("still_on")]),
        node("Cast", &[&name("i")], &[&name("i_float")]).int("to", 1),
        node(
            "Add",
            &[&name("carried"), &name("i_float")],
            &[&name("sum")],
        ),
    ];
    nodes.extend(more);
    graph(
        &[
            value(&name("i"), INT64, 0),
            value(&name("on"), BOOL, 0),
            value(&name("carried"), FLOAT, 1),
        ],
        &[],
        &nodes,
        &[value(&name("still_on"), BOOL, 0), value(result, FLOAT, 1)],
    )
}

#[test]
fn each_iteration_has_its_record() {
    let Some(engine) = engine() else { return };
    let body = adding("", Vec::new(), "sum");
    let nodes = [
        node("Relu", &["x"], &["start"]),
        sum_loop("loop", "n", "start", "y", body),
        node("Neg", &["y"], &["z"]),
    ];
    let weights = [ints("n", &[], &[3])];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &weights,
        &nodes,
        &[value("z", FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    for _ in 0..2 {
        let captured = capture(&mut *loaded, &[tensor(&[1], &[1.0])]);
        assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-4.0]);
        let expected = [
            "Relu_start",
            "Identity_still_on.0",
            "Cast_i_float.0",
            "Add_sum.0",
            "Identity_still_on.1",
            "Cast_i_float.1",
            "Add_sum.1",
            "Identity_still_on.2",
            "Cast_i_float.2",
            "Add_sum.2",
            "loop",
            "Neg_z",
        ];
        assert_eq!(names(&captured.records), expected);
        for (i, expected) in [1.0, 2.0, 4.0].into_iter().enumerate() {
            let name = format!("Add_sum.{i}");
            assert_eq!(
                f32s(shown(&captured.records, &name, SlotSide::Output, 0)),
                [expected]
            );
            let carried = f32s(shown(&captured.records, &name, SlotSide::Input, 0));
            assert_eq!(carried, [expected - i as f32]);
            assert_eq!(
                f32s(shown(&captured.records, &name, SlotSide::Input, 1)),
                [i as f32]
            );
        }
        assert_eq!(captured.counters.n_dropped, 0);
        assert_eq!(captured.counters.n_operators_seen, 12);
    }
}

#[test]
fn loops_in_loops_and_branches() {
    let Some(engine) = engine() else { return };
    let then_branch = graph(
        &[],
        &[],
        &[node("Neg", &["inner_out"], &["negative"])],
        &[value("negative", FLOAT, 1)],
    );
    let else_branch = graph(
        &[],
        &[],
        &[node("Abs", &["inner_out"], &["positive"])],
        &[value("positive", FLOAT, 1)],
    );
    let inner = adding("inner_", Vec::new(), "inner_sum");
    let more = vec![
        sum_loop("inner", "two", "sum", "inner_out", inner),
        node("Cast", &["i"], &["is_later"]).int("to", 9),
        node("If", &["is_later"], &["chosen"])
            .body("then_branch", then_branch)
            .body("else_branch", else_branch),
    ];
    let outer = adding("", more, "chosen");
    let weights = [ints("two", &[], &[2])];
    let nodes = [sum_loop("outer", "two", "x", "y", outer)];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &weights,
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[1], &[5.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-8.0]);
    let records = &captured.records;
    let of = |op_type: &str| -> Vec<(&str, Vec<f32>)> {
        let of_type = records
            .iter()
            .filter(|record| record.operator.op_type == op_type);
        let result =
            of_type.map(|record| (record.operator.op_name.as_str(), f32s(&record.outputs[0].1)));
        result.collect()
    };
    let adds = [
        ("Add_sum.0", 5.0),
        ("Add_inner_sum.0.0", 5.0),
        ("Add_inner_sum.0.1", 6.0),
        ("Add_sum.1", 7.0),
        ("Add_inner_sum.1.0", 7.0),
        ("Add_inner_sum.1.1", 8.0),
    ];
    assert_eq!(of("Add"), adds.map(|(name, sum)| (name, vec![sum])));
    assert_eq!(of("Abs"), [("Abs_positive.0", vec![6.0])]);
    assert_eq!(of("Neg"), [("Neg_negative.1", vec![-8.0])]);
    assert_eq!(
        of("Loop"),
        [
            ("inner.0", vec![6.0]),
            ("inner.1", vec![8.0]),
            ("outer", vec![-8.0])
        ]
    );
    assert_eq!(captured.counters.n_dropped, 0);
}

/// A scan that adds up the rows of `rows`.
fn scan(name: &str, rows: &str, result: &str) -> NodeProto {
    let body = graph(
        &[value("state", FLOAT, 1), value("row", FLOAT, 1)],
        &[],
        &[
            node("Add", &["state", "row"], &["next"]),
            node("Identity", &["next"], &["partial"]),
        ],
        &[value("next", FLOAT, 1), value("partial", FLOAT, 1)],
    );
    node("Scan", &["zero", rows], &["last", result])
        .called(name)
        .int("num_scan_inputs", 1)
        .body("body", body)
}

#[test]
fn scans_count_their_own_iterations() {
    let Some(engine) = engine() else { return };
    let mut second = scan("second", "sums", "sums_of_sums");
    second.output[0] = "last_of_second".into();
    for body in crate::onnx::proto::bodies_mut(&mut second) {
        for node in &mut body.node {
            node.name = format!("{}_of_second", node.name);
        }
    }
    let nodes = [scan("first", "x", "sums"), second];
    let weights = [floats("zero", &[1], &[0.0])];
    let results = [value("sums_of_sums", FLOAT, 2)];
    let model = model(graph(&[value("x", FLOAT, 2)], &weights, &nodes, &results));
    let mut loaded = load(&engine, &model);
    for n in [3, 2] {
        let input: Vec<f32> = (1..=n).map(|i| i as f32).collect();
        let captured = capture(&mut *loaded, &[tensor(&[n, 1], &input)]);
        captured.outputs.unwrap();
        let mut expected = Vec::new();
        for (scan, ending) in [("first", ""), ("second", "_of_second")] {
            for i in 0..n {
                expected.push(format!("Add_next{ending}.{i}"));
                expected.push(format!("Identity_partial{ending}.{i}"));
            }
            expected.push(scan.to_owned());
        }
        assert_eq!(names(&captured.records), expected);
        let last = format!("Add_next.{}", n - 1);
        let sum = (n * (n + 1) / 2) as f32;
        assert_eq!(
            f32s(shown(&captured.records, &last, SlotSide::Output, 0)),
            [sum]
        );
        assert_eq!(captured.counters.n_dropped, 0);
    }
}

#[test]
fn scans_in_loops() {
    let Some(engine) = engine() else { return };
    let more = vec![
        scan("scan", "rows", "partials"),
        node("Add", &["sum", "last"], &["out"]),
    ];
    let body = adding("", more, "out");
    let weights = [
        ints("two", &[], &[2]),
        floats("zero", &[1], &[0.0]),
        floats("rows", &[2, 1], &[1.0, 10.0]),
    ];
    let nodes = [sum_loop("loop", "two", "x", "y", body)];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &weights,
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[1], &[0.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [23.0]);
    let adds: Vec<&str> = names(&captured.records)
        .into_iter()
        .filter(|name| name.starts_with("Add_next"))
        .collect();
    assert_eq!(
        adds,
        [
            "Add_next.0.0",
            "Add_next.0.1",
            "Add_next.1.0",
            "Add_next.1.1"
        ]
    );
    assert_eq!(captured.counters.n_dropped, 0);
}

#[test]
fn functions_are_one_operator_and_their_failing_parts_too() {
    let Some(engine) = engine() else { return };
    let mut model = model(graph(
        &[value("x", FLOAT, 1), value("i", INT64, 1)],
        &[],
        &[
            node("Twice", &["x", "i"], &["t"]).in_domain("local"),
            node("Neg", &["t"], &["y"]),
        ],
        &[value("y", FLOAT, 1)],
    ));
    model.functions.push(crate::onnx::schema::FunctionProto {
        name: Some("Twice".into()),
        domain: Some("local".into()),
        input: vec!["a".into(), "j".into()],
        output: vec!["c".into()],
        node: vec![
            node("Gather", &["a", "j"], &["b"]).called("inside"),
            node("Add", &["b", "b"], &["c"]),
        ],
        opset_import: model.opset_import.clone(),
        ..Default::default()
    });
    let mut loaded = load(&engine, &model);
    let captured = capture(
        &mut *loaded,
        &[tensor(&[2], &[1.0, 2.0]), numbers(&[1], &[1])],
    );
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-4.0]);
    assert_eq!(names(&captured.records), ["Twice_t", "Neg_y"]);
    assert_eq!(
        f32s(shown(&captured.records, "Twice_t", SlotSide::Output, 0)),
        [4.0]
    );
    let captured = capture(
        &mut *loaded,
        &[tensor(&[2], &[1.0, 2.0]), numbers(&[1], &[7])],
    );
    let error = captured.outputs.unwrap_err().to_string();
    assert!(
        error.starts_with("operator `Twice_t` of type `Twice` failed: "),
        "{error}"
    );
}

#[test]
fn an_empty_loop_has_no_records() {
    let Some(engine) = engine() else { return };
    let body = adding("", Vec::new(), "sum");
    let nodes = [sum_loop("loop", "n", "x", "y", body)];
    let model = model(graph(
        &[value("x", FLOAT, 1), value("n", INT64, 0)],
        &[],
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[1], &[1.0]), numbers(&[], &[0])]);
    captured.outputs.unwrap();
    assert_eq!(names(&captured.records), ["loop"]);
    let captured = capture(&mut *loaded, &[tensor(&[1], &[1.0]), numbers(&[], &[1000])]);
    captured.outputs.unwrap();
    assert_eq!(captured.records.len(), 3001);
    assert_eq!(captured.counters.n_dropped, 0);
}

#[test]
fn sequence_maps_count_their_elements() {
    let Some(engine) = engine() else { return };
    let body = graph(
        &[value("e", FLOAT, 1)],
        &[],
        &[node("Neg", &["e"], &["n"])],
        &[value("n", FLOAT, 1)],
    );
    let nodes = [
        node("SplitToSequence", &["x"], &["parts"]),
        node("SequenceMap", &["parts"], &["mapped"])
            .called("map")
            .body("body", body),
        node("ConcatFromSequence", &["mapped"], &["y"]).int("axis", 0),
    ];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[],
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let captured = capture(&mut *load(&engine, &model), &[tensor(&[2], &[1.0, 2.0])]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-1.0, -2.0]);
    // The operator itself has no tensors.
    let expected = [
        "SplitToSequence_parts",
        "Neg_n.0",
        "Neg_n.1",
        "ConcatFromSequence_y",
    ];
    assert_eq!(names(&captured.records), expected);
}

/// The library refuses a body in which a node reads the output of a later one, however many
/// operators there are.
#[test]
fn bodies_of_many_operators_run() {
    const N_OPERATORS: usize = 100;
    let Some(engine) = engine() else { return };
    let chain = |prefix: &str, first: &str, last: &str| -> Vec<NodeProto> {
        let name = |i: usize| match i {
            0 => first.to_owned(),
            N_OPERATORS => last.to_owned(),
            _ => format!("{prefix}{i}"),
        };
        (0..N_OPERATORS)
            .map(|i| node("Relu", &[&name(i)], &[&name(i + 1)]))
            .collect()
    };
    let branch = |prefix: &str| {
        let last = format!("{prefix}_last");
        let nodes = chain(prefix, "y", &last);
        graph(&[], &[], &nodes, &[value(&last, FLOAT, 1)])
    };
    let body = adding("", chain("r", "sum", "cut"), "cut");
    let nodes = [
        node("Relu", &["x"], &["start"]),
        sum_loop("loop", "n", "start", "y", body),
        node("If", &["is_first"], &["z"])
            .called("if")
            .body("then_branch", branch("then"))
            .body("else_branch", branch("else")),
    ];
    let model = model(graph(
        &[value("x", FLOAT, 1), value("is_first", BOOL, 0)],
        &[ints("n", &[], &[2])],
        &nodes,
        &[value("z", FLOAT, 1)],
    ));
    let is_first = Tensor::from_vec(DType::Bool, Shape::new([]).unwrap(), vec![1]).unwrap();
    let mut loaded = load(&engine, &model);
    let captured = capture(&mut *loaded, &[tensor(&[1], &[1.5]), is_first]);
    assert_eq!(f32s(&captured.outputs.unwrap()[0]), [2.5]);
    // One before, three more in each iteration, the loop and the choice.
    let n_expected = 1 + 2 * (N_OPERATORS + 3) + 1 + N_OPERATORS + 1;
    assert_eq!(captured.records.len(), n_expected);
}
