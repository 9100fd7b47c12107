use super::*;

/// An operator with originals and one output.
fn op(name: &str, op_type: &str, inputs: &[&str], originals: &[&str], origin: &str) -> String {
    let list = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        names.join(",")
    };
    format!(
        r#"{{"name":"{name}","type":"{op_type}","input":[{}],
            "attr":[{{"key":"_datadump_original_op_names","value":{{"list":{{"s":[{}]}}}}}}],
            "output_desc":[{{"dtype":"DT_FLOAT","attr":[
                {{"key":"_datadump_origin_name","value":{{"s":"{origin}"}}}}]}}]}}"#,
        list(inputs),
        list(originals)
    )
}

fn rule(ops: &[String]) -> ModelRules {
    let text = format!(r#"{{"graph":[{{"name":"g","op":[{}]}}]}}"#, ops.join(","));
    ModelRules::parse(&text).unwrap()
}

fn status(text: &str) -> Option<ErrorCode> {
    match ModelRules::parse(text) {
        Err(CompareStop::Coded(code, _)) => Some(code),
        _ => None,
    }
}

#[test]
fn originals_make_groups() {
    let rule = rule(&[
        op("a", "Conv", &[], &["x", "y"], "y"),
        op("b", "Conv", &["a:0"], &["x", "y"], "y"),
        op("c", "Relu", &["b:0"], &["z"], ""),
        op("d", "Relu", &["c:0"], &[""], ""),
        op("z", "Relu", &["d:-1", ""], &[], ""),
    ]);
    let groups: Vec<&[usize]> = rule.groups.iter().map(|(_, ops)| ops.as_slice()).collect();
    // `z` has no originals and uses its name, which equals that of `c`'s original.
    assert_eq!(groups, [&[0, 1][..], &[2, 4], &[3]]);
    assert_eq!(rule.relation(groups[0]), OriginRelation::ToMany);
    assert_eq!(rule.joined_names(groups[0]), ("a,b".into(), "x,y".into()));
    assert_eq!(rule.relation(groups[2]), OriginRelation::ToOne);
    assert!(rule.ops[4].inputs.is_empty());
    assert_eq!(
        rule.ops.iter().map(|op| op.index).collect::<Vec<_>>(),
        [0, 0, 1, 2, 1]
    );
    assert!(rule.origin(3, 0).is_err());
    assert_eq!(rule.origin(1, 7).unwrap().name, "y");
}

#[test]
fn what_only_changes_form_is_passed_over() {
    let rule = rule(&[
        op("a", "Conv", &[], &["a"], "a"),
        op("t", "TransData", &["a:3"], &[""], ""),
        op("c", "Cast", &["t:0"], &[""], ""),
        op("b", "Relu", &["c:0", "a", "a:x", ":0", "no:0"], &["b"], "b"),
        op("loop", "Cast", &["loop:0"], &["loop"], "loop"),
    ]);
    assert_eq!(rule.compared(3, 0, true), Ok((0, 3)));
    assert_eq!(rule.compared(3, 0, false), Ok((3, 0)));
    let code = |index| match rule.compared(3, index, true) {
        Err(CompareStop::Coded(code, _)) => Some(code),
        _ => None,
    };
    assert_eq!(code(1), Some(ErrorCode::JsonFile));
    assert_eq!(code(2), Some(ErrorCode::JsonFile));
    assert_eq!(code(3), Some(ErrorCode::JsonFile));
    assert_eq!(code(4), Some(ErrorCode::InvalidParameter));
    assert_eq!(code(5), Some(ErrorCode::IndexOutOfBounds));
    assert!(matches!(
        rule.compared(4, 0, false),
        Err(CompareStop::Fatal(_))
    ));
}

#[test]
fn wrong_json_is_refused() {
    let deep = "[".repeat(1000);
    for text in [
        "",
        "[]",
        "{}",
        r#"{"graph":{}}"#,
        r#"{"graph":[{"op":[{"name":1,"type":"x"}]}]}"#,
        r#"{"graph":[{"op":[{"name":"a"}]}]}"#,
        r#"{"graph":[{"op":[{"name":"a","type":"x","input":"b"}]}]}"#,
        r#"{"graph":[{"op":[{"name":"a","type":"x","id":1.5}]}]}"#,
        r#"{"graph":[{"op":[{"name":"a","type":"x","attr":[{"key":"_datadump_is_multiop","value":{"b":1}}]}]}]}"#,
        r#"{"graph":[{"op":[{"name":"a","type":"x","attr":[{}]}]}]}"#,
        &deep,
    ] {
        assert_eq!(status(text), Some(ErrorCode::Json), "{text}");
    }
    // Python fails on these.
    for text in [
        "3",
        "null",
        r#"{"graph":[1]}"#,
        r#"{"graph":[{"op":[null]}]}"#,
    ] {
        assert!(
            matches!(ModelRules::parse(text), Err(CompareStop::Fatal(_))),
            "{text}"
        );
    }
    assert!(ModelRules::parse(r#"{"graph":[]}"#).unwrap().ops.is_empty());
}

#[test]
fn rules_without_fusion_take_the_place_of_originals() {
    let open = rule(&[
        op("f", "Conv", &[], &["x", "y"], "y"),
        op("g", "Relu", &["f:0"], &["z"], "z"),
    ]);
    let close = rule(&[
        op("cx", "Conv", &[], &["x"], "x"),
        op("cy", "Relu", &["cx:0"], &["y"], "y"),
    ]);
    let merged = merge_close(open, &close).unwrap();
    let names: Vec<&[String]> = merged
        .ops
        .iter()
        .map(|op| op.originals.as_slice())
        .collect();
    assert_eq!(names, [&["cx".to_owned(), "cy".to_owned()][..], &[]]);
    assert_eq!(merged.origin(0, 0).unwrap().name, "cy");
    // The last group comes first.
    assert_eq!(
        merged
            .groups
            .iter()
            .map(|(_, ops)| ops[0])
            .collect::<Vec<_>>(),
        [1, 0]
    );
}

#[test]
fn operators_between_quantising_and_its_undoing_are_marked() {
    let text = r#"{"graph":[{"name":"g","op":[
        {"name":"q.quant","type":"AscendQuant","id":1,"output_desc":[{"dtype":"DT_INT8","attr":[]}]},
        {"name":"conv","type":"Conv","id":2,"input":["q.quant:0"],"output_desc":[{"dtype":"DT_INT32","attr":[]}]},
        {"name":"d.dequant","type":"AscendDequant","id":3,"input":["conv:0"],"output_desc":[{"dtype":"DT_FLOAT16","attr":[]}]},
        {"name":"after","type":"Relu","id":4,"input":["d.dequant:0"],"output_desc":[{"dtype":"DT_FLOAT16","attr":[]}]}
    ]}]}"#;
    let rule = ModelRules::parse(text).unwrap();
    let marked: Vec<bool> = rule.ops.iter().map(|op| op.is_filtered).collect();
    assert_eq!(marked, [false, true, false, false]);
}
