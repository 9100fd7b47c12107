use std::sync::Arc;

use opscope_tensor::DType;

use super::*;

fn operator() -> Arc<Operator> {
    Arc::new(Operator {
        task_id: 3,
        op_type: "Conv".into(),
        op_name: "a/\"b\"".into(),
        inputs: vec!["x".into(), String::new(), "w".into()],
        outputs: vec!["y".into()],
        attributes: vec![("pads".into(), "[1, 1]".into())],
        attribute_types: vec![AttributeKind::Ints],
        domain: "com.example".into(),
        original_names: vec!["c".into()],
        original_outputs: vec![Some(("c".into(), 1)), None],
        ..Operator::default()
    })
}

fn text(operators: &[Arc<Operator>]) -> Vec<u8> {
    let weight = TensorType {
        dtype: DType::F32,
        shape: vec![2, -1],
    };
    let mut out = Vec::new();
    let graph = GraphText {
        name: "net",
        graph_name: "main",
        opsets: &[(String::new(), 17), ("com.example".into(), 1)],
        arguments: &["x".into()],
        results: &["y".into()],
        types: &[("x".into(), weight.clone()), ("w".into(), weight)],
        operators,
    };
    write(&mut out, &graph).unwrap();
    out
}

#[test]
fn what_is_written_is_read() {
    let read = parse(&text(&[operator(), operator()])).unwrap();
    let name = |text: &str| Some(text.to_owned());
    assert_eq!((read.version, read.name.as_str()), (1, "net"));
    assert_eq!(read.opsets["ai.onnx"], 17);
    assert_eq!(
        (read.arguments, read.results, read.constants),
        (vec!["x".into()], vec!["y".into()], vec!["w".into()])
    );
    assert_eq!(read.operators.len(), 2);
    let found = &read.operators[1];
    assert_eq!((found.task_id, found.op_name.as_str()), (3, "a/\"b\""));
    assert_eq!(found.inputs, [name("x"), None, name("w")]);
    assert_eq!(found.attributes["pads"], "[1, 1]");
    assert_eq!(found.attribute_types["pads"], AttributeKind::Ints);
    assert_eq!(found.original_names, ["c"]);
    assert_eq!(found.original_outputs, operator().original_outputs);
    assert_eq!(found.domain, "com.example");
    assert!(parse(&text(&[])).unwrap().operators.is_empty());
}

#[test]
fn unknown_keys_and_kinds_are_passed_over() {
    let text =
        br#"{"version": 1, "phase": "forward", "names": {"a": "b"}, "operators": [{"task_id": 1,
        "is_view": true, "inputs": [null, "a"], "attributes": {"x": 1, "y": "z"},
        "attribute_types": {"y": "sparse"}}]}"#;
    let read = parse(text).unwrap();
    assert_eq!(read.operators[0].inputs, [None, Some("a".to_owned())]);
    assert_eq!(read.operators[0].attributes.len(), 1);
    assert_eq!(read.operators[0].attribute_types["y"], AttributeKind::Other);
}

#[test]
fn anything_else_is_refused() {
    let whole = text(&[operator()]);
    let cases: [&[u8]; 5] = [
        b"",
        b"[1]",
        b"{}",
        b"{\"version\": 1, \"operators\": 3}",
        &whole[..90],
    ];
    for bytes in cases {
        assert!(parse(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
    }
}
