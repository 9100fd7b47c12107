use super::*;

/// The pointer and the reason of the error for `text`.
fn refused(text: &str) -> (String, String) {
    match read_json(text).unwrap_err() {
        OperatorError::Value { pointer, reason } => (pointer, reason),
        other => panic!("{other}"),
    }
}

#[test]
fn the_vendors_form() {
    let text = r#"[{"op": "Add", "input_desc": [
        {"format": "ND", "shape": [8, -1], "type": "int32"},
        {"format": "RESERVED", "shape": [], "type": "UNDEFINED"},
        {"format": "ND", "shape": [2], "type": "float16", "is_const": true, "const_value": [1, 2.5]}],
        "output_desc": [{"format": "ND", "shape": [8, 16], "type": "DT_BF16"}],
        "attr": [{"name": "a", "type": "list_int", "value": [1, 2]},
                 {"name": "b", "type": "bool", "value": true}]}]"#;
    let operators = read_json(text).unwrap();
    let add = &operators[0];
    assert_eq!((add.op_type.as_str(), add.opset), ("Add", OPSET_DEFAULT));
    let x0 = add.inputs[0].as_ref().unwrap();
    assert_eq!((x0.name.as_str(), x0.dtype), ("x0", DType::I32));
    assert_eq!(
        x0.dims,
        Some(vec![DeclaredDim::Fixed(8), DeclaredDim::Unknown])
    );
    assert!(add.inputs[1].is_none());
    let constant = add.inputs[2].as_ref().unwrap().constant.as_ref().unwrap();
    assert_eq!(constant.host_bytes().unwrap(), [0x00, 0x3c, 0x00, 0x41]);
    assert_eq!(add.outputs[0].as_ref().unwrap().dtype, DType::BF16);
    let expected = [
        ("a", OperatorAttribute::Ints(vec![1, 2])),
        ("b", OperatorAttribute::Int(1)),
    ];
    assert_eq!(
        add.attributes,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
}

#[test]
fn the_short_form() {
    let text = r#"{"type": "Softmax", "name": "s", "inputs": [{"dtype": "float32", "name": "scores"}],
        "attributes": {"axis": -1, "alpha": 0.5, "mode": "x", "list": [1.5]}}"#;
    let softmax = read_json(text).unwrap().remove(0);
    assert_eq!(softmax.op_name, "s");
    assert_eq!(softmax.inputs[0].as_ref().unwrap().name, "scores");
    assert_eq!(softmax.outputs[0].as_ref().unwrap().name, "y0");
    let values: Vec<&OperatorAttribute> =
        softmax.attributes.iter().map(|(_, value)| value).collect();
    let expected = [
        OperatorAttribute::Int(-1),
        OperatorAttribute::Float(0.5),
        OperatorAttribute::Text("x".into()),
        OperatorAttribute::Floats(vec![1.5]),
    ];
    assert_eq!(values, expected.iter().collect::<Vec<_>>());
}

#[test]
fn errors_name_their_place() {
    let cases = [
        ("[]", "/"),
        ("3", "/"),
        ("[{}]", "/0"),
        (r#"{"op": 3}"#, "/op"),
        (r#"{"op": "Add", "input_desc": 1}"#, "/input_desc"),
        (
            r#"{"op": "Add", "input_desc": [{"shape": [1]}]}"#,
            "/input_desc/0",
        ),
        (
            r#"{"op": "Add", "input_desc": [{"type": "int33"}]}"#,
            "/input_desc/0/type",
        ),
        (
            r#"{"op": "Add", "input_desc": [{"type": "int8", "shape": [1, -2]}]}"#,
            "/input_desc/0/shape/1",
        ),
        (
            r#"{"op": "Add", "input_desc": [{"type": "int8", "const_value": 300}]}"#,
            "/input_desc/0/const_value",
        ),
        (
            r#"{"op": "Add", "input_desc": [{"type": "int8", "shape": [3], "const_value": [1]}]}"#,
            "/input_desc/0/const_value",
        ),
        (
            r#"{"op": "Add", "attr": [{"name": "a", "type": "int", "value": "x"}]}"#,
            "/attr/0/value",
        ),
        (
            r#"{"op": "Add", "attr": [{"name": "a", "type": "list_list_int", "value": [[1]]}]}"#,
            "/attr/0/value",
        ),
        (
            r#"{"op": "A", "inputs": [{"type": "int8", "name": "a"}, {"type": "int8", "name": "a"}]}"#,
            "/inputs/1/name",
        ),
    ];
    for (text, pointer) in cases {
        assert_eq!(refused(text).0, pointer, "{text}");
    }
    assert!(matches!(
        read_json("{"),
        Err(OperatorError::Syntax { line: 1, .. })
    ));
}

#[test]
fn operators_without_a_name_are_numbered() {
    let text = r#"[{"op": "Add"}, {"op": "Relu"}, {"op": "Add", "name": "Add_1"}, {"op": "Add"},
        {"op": "Add", "name": ""}, {"op": "Relu", "name": "mine"}]"#;
    let operators = read_json(text).unwrap();
    let names: Vec<&str> = operators.iter().map(|one| one.op_name.as_str()).collect();
    assert_eq!(
        names,
        ["Add_0", "Relu_0", "Add_1", "Add_2", "Add_3", "mine"]
    );
    assert_eq!(read_json(r#"{"op": "Add"}"#).unwrap()[0].op_name, "Add_0");
}

#[test]
fn formats_are_read_in_either_spelling() {
    let cases = [
        ("NHWC", Layout::Nhwc),
        ("nhwc", Layout::Nhwc),
        ("ACL_FORMAT_HWCN", Layout::Hwcn),
        ("FORMAT_ND", Layout::Nd),
        ("C1HWNCoC0", Layout::C1hwncoc0),
        ("UNDEFINED", Layout::Nd),
    ];
    for (text, layout) in cases {
        let text = format!(r#"{{"op": "A", "inputs": [{{"type": "float", "format": "{text}"}}]}}"#);
        let operator = read_json(&text).unwrap().remove(0);
        assert_eq!(
            operator.inputs[0].as_ref().unwrap().layout,
            layout,
            "{text}"
        );
    }
}
