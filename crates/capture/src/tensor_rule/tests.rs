use opscope_store::record::ModelId;
use opscope_tensor::{DType, Shape};

use super::*;
use crate::{Plan, select};

fn floats(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

fn operator(task_id: u32, op_type: &str, op_name: &str) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: op_type.into(),
        op_name: op_name.into(),
        inputs: vec!["x".into()],
        outputs: vec!["y".into()],
        ..Operator::default()
    })
}

fn rules(texts: &[&str]) -> TensorRules {
    TensorRules::new(texts.iter().map(|text| text.parse().unwrap()).collect())
}

/// Whether the rules choose input 0, which is 1 and 2, and output 1 of `/block/conv.1`, a `Conv`.
fn check(texts: &[&str], output: &[f32], expected: (bool, bool)) {
    let rules = rules(texts);
    let record = Record {
        model: Arc::new(ModelId::default()),
        operator: operator(0, "Conv", "/block/conv.1"),
        step: 0,
        timestamp_us: 0,
        inputs: vec![(0, floats(&[1.0, 2.0]))],
        outputs: vec![(1, floats(output))],
    };
    let chosen: Vec<bool> = record
        .slots()
        .map(|(side, index, tensor)| {
            let is_chosen = rules.choose_tensor(&record.operator, side, index, tensor);
            assert!(
                !(is_chosen && rules.rule_out(tensor.observed())),
                "{texts:?}"
            );
            is_chosen
        })
        .collect();
    assert_eq!((chosen[0], chosen[1]), expected, "{texts:?}");
    let any = expected.0 || expected.1;
    assert_eq!(rules.choose_any(&record), any, "{texts:?}");
}

#[test]
fn what_rules_choose() {
    let (both, none) = ((true, true), (false, false));
    let (input, output) = ((true, false), (false, true));
    let finite: &[f32] = &[-5.0, 0.0];
    check(&[], finite, both);
    check(&["name:/block/conv.1"], finite, both);
    check(&["name:/block/conv"], finite, none);
    check(&["name:/BLOCK/conv.1"], finite, none);
    check(&["type:conv"], finite, both);
    check(&["type:Con"], finite, none);
    check(&["regex:/block/.*"], finite, both);
    check(&["regex:block"], finite, none);
    check(&["slot:/block/conv.1/output.1"], finite, output);
    check(&["slot:/block/conv.1/output.0"], finite, none);
    check(&["slot:/block/conv.1/input.0"], finite, input);
    check(&["slot:conv.1/input.0"], finite, none);
    check(&["non-finite"], finite, none);
    check(&["non-finite"], &[f32::NEG_INFINITY, 0.0], output);
    check(&["non-finite"], &[1.0, f32::NAN], output);
    check(&["above:5"], finite, none);
    check(&["above:4.999"], finite, output);
    check(&["above:1"], finite, both);
    check(&["above:1e4"], &[f32::NAN], output);
    check(&["above:1e4"], &[f32::NEG_INFINITY], output);
    check(&["above:0"], &[-0.0], input);
    check(&["above:0"], &[], input);
    check(
        &["above:1e9", "slot:/block/conv.1/input.0", "name:x"],
        finite,
        input,
    );
    check(&["non-finite", "type:Relu"], &[f32::NAN], output);
}

#[test]
fn tensors_without_order_are_never_above() {
    let tensor = Tensor::from_vec(DType::C64, Shape::new([1]).unwrap(), vec![0xff; 8]).unwrap();
    let operator = operator(0, "Add", "a");
    let choose = |text| rules(&[text]).choose_tensor(&operator, SlotSide::Output, 0, &tensor);
    assert!(!choose("above:0"));
    assert!(choose("non-finite"), "both parts are NaN");
}

/// A tensor that no rule can choose is let go of; the verdict stays.
#[test]
fn verdicts_outlive_elements() {
    for (values, expected) in [([1.0, 2.0], false), ([1.0, f32::NAN], true)] {
        let rules = rules(&["non-finite", "above:100"]);
        let tensor = floats(&values);
        assert_eq!(rules.rule_out(tensor.observed()), !expected);
        let tensor = tensor.without_elements();
        let operator = operator(0, "Add", "a");
        let is_chosen = rules.choose_tensor(&operator, SlotSide::Output, 0, &tensor);
        assert_eq!(is_chosen, expected);
    }
    assert!(!rules(&["name:x"]).rule_out(floats(&[1.0]).observed()));
    assert!(!rules(&[]).rule_out(floats(&[1.0]).observed()));
}

#[test]
fn mistakes_are_explained() {
    let check = |text: &str, expected: &str| {
        let error = text.parse::<TensorRule>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    for text in [
        "",
        "conv1",
        "name:",
        "layer:x",
        "nonfinite",
        "Name:x",
        "above:",
    ] {
        check(text, "is no rule: expected `name:NAME`");
    }
    for text in [
        "above:-1",
        "above:nan",
        "above:inf",
        "above:x",
        "above:1e999",
    ] {
        check(text, "a finite number of 0 or more");
    }
    for slot in [
        "a",
        "a/out.0",
        "a/output",
        "a/output.x",
        "/output.0",
        "a/output.+1",
        "a/input.",
    ] {
        check(&format!("slot:{slot}"), "is no slot");
    }
    check("regex:(", "is no regular expression");
}

#[test]
fn texts_come_back() {
    for text in [
        "name:a:b",
        "type:Conv",
        "regex:a|b",
        "slot:a/b/input.10",
        "non-finite",
        "above:1e4",
    ] {
        assert_eq!(text.parse::<TensorRule>().unwrap().to_string(), text);
    }
    assert_eq!(TensorRule::above(0.5).to_string(), "above:0.5");
    assert_eq!(
        TensorRule::slot("a", SlotSide::Output, 2).to_string(),
        "slot:a/output.2"
    );
}

#[test]
fn rules_without_an_operator_are_told() {
    let operators = [operator(0, "Conv", "conv"), operator(1, "Relu", "relu")];
    let plan = Plan {
        has_graph_inputs: true,
        ..Plan::everything()
    };
    let model = ModelId::default();
    let selected = select(&plan, &model, &operators, &["x".to_owned()]);
    let rules = rules(&[
        "name:conv",
        "name:Conv",
        "type:relu",
        "type:Data",
        "regex:r.*",
        "regex:q.*",
        "slot:gone/output.0",
        "non-finite",
        "above:1",
    ]);
    let unused = rules.unused(&selected, &operators);
    let unused: Vec<String> = unused.iter().map(ToString::to_string).collect();
    assert_eq!(unused, ["name:Conv", "slot:gone/output.0", "regex:q.*"]);
}
