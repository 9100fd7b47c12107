//! Operators in the bodies of control flow.

use super::*;

/// A choice between two bodies, each of which picks an element of `x` and doubles it.
fn choice() -> ModelProto {
    let constant = NodeProto {
        attribute: vec![AttributeProto {
            name: "value_float".into(),
            r#type: Some(1),
            f: Some(2.0),
            ..AttributeProto::default()
        }],
        ..node("Constant", "", &[], &["two"])
    };
    let inner = |name: &str, z: &str| {
        let body = graph(
            vec![
                constant.clone(),
                node("Gather", name, &["x", "i"], &["picked"]),
                node("Mul", "", &["picked", "two"], &[z]),
            ],
            Vec::new(),
            vec![value(z, FLOAT, &[1])],
        );
        AttributeProto {
            name: if z == "z1" {
                "then_branch"
            } else {
                "else_branch"
            }
            .into(),
            r#type: Some(5),
            g: Some(body),
            ..AttributeProto::default()
        }
    };
    let choice = NodeProto {
        attribute: vec![inner("pick", "z1"), inner("", "z2")],
        ..node("If", "choice", &["c"], &["y"])
    };
    model(graph(
        vec![choice, node("Neg", "", &["y"], &["result"])],
        vec![
            value("c", BOOL, &[]),
            value("x", FLOAT, &[2]),
            value("i", INT64, &[1]),
        ],
        vec![value("result", FLOAT, &[1])],
    ))
}

#[test]
fn they_are_numbered_after_their_node() {
    let Some(engine) = engine() else { return };
    let model = load(&engine, &choice()).unwrap();
    let operators: Vec<(u32, &str)> = model
        .operators()
        .iter()
        .map(|operator| (operator.task_id, operator.op_name.as_str()))
        .collect();
    let expected = [
        (0, "choice"),
        (2, "pick"),
        (3, "z1"),
        (5, "picked"),
        (6, "z2"),
        (7, "result"),
    ];
    assert_eq!(operators, expected);
    assert_eq!(model.description().constants, ["two", "two"]);
}

#[test]
fn a_failing_one_is_named() {
    let Some(engine) = engine() else { return };
    let mut model = load(&engine, &choice()).unwrap();
    let mut run = |branch: u8, index: i64| {
        let inputs = [
            tensor(DType::Bool, &[], vec![branch]),
            floats(&[1.5, 2.5]),
            ints(&[index]),
        ];
        model.run(&inputs, None)
    };
    assert_eq!(
        run(1, 1).unwrap()[0].host_bytes().unwrap(),
        floats(&[-5.0]).host_bytes().unwrap()
    );
    for (branch, name) in [(1, "pick"), (0, "picked")] {
        let error = run(branch, 9).unwrap_err();
        let EngineError::Operator {
            op_type,
            op_name,
            reason,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((op_type.as_str(), op_name.as_str()), ("Gather", name));
        assert!(reason.contains("idx=9"), "{reason}");
    }
}
