//! Comparisons of several steps, made by hand.

use super::*;
use crate::compare::attribution::attribute;
use crate::compare::report::steps::lines;
use crate::compare::result::{OperatorName, SlotKey, SlotResult};
use opscope_store::record::SlotSide;

/// An operator of a step with an input and an output at these levels.
fn operator(step: Option<u64>, levels: [VerdictLevel; 2], evidence: &Evidence) -> OperatorResult {
    let slot = |(side, level)| SlotResult {
        slot: SlotKey { side, index: 0 },
        evidence: evidence.clone(),
        level,
        ..SlotResult::default()
    };
    OperatorResult {
        target: [OperatorName {
            op_type: "Add".into(),
            op_name: "add".into(),
            step,
            ..OperatorName::default()
        }]
        .into(),
        slots: [SlotSide::Input, SlotSide::Output]
            .into_iter()
            .zip(levels)
            .map(slot)
            .collect(),
        level: levels[1],
        ..OperatorResult::default()
    }
}

fn comparison(mut operators: Vec<OperatorResult>, origins: [Option<RunOrigin>; 2]) -> Comparison {
    for (index, operator) in operators.iter_mut().enumerate() {
        operator.index = index;
    }
    let mut comparison = Comparison {
        operators,
        ..Comparison::default()
    };
    [comparison.config.target_run, comparison.config.golden_run] = origins;
    attribute(&mut comparison, 0);
    comparison
}

fn origin(command: &str, dialect: &str, configuration: Option<&str>) -> Option<RunOrigin> {
    Some(RunOrigin {
        command: command.to_owned(),
        dialect: dialect.to_owned(),
        configuration: configuration.map(ToOwned::to_owned),
        model: Some("net.onnx".to_owned()),
    })
}

const AGREE: [VerdictLevel; 2] = [VerdictLevel::Pass; 2];
const OWN: [VerdictLevel; 2] = [VerdictLevel::Pass, VerdictLevel::Fail];
const OUTSIDE: [VerdictLevel; 2] = [VerdictLevel::Fail; 2];
const WARN: [VerdictLevel; 2] = [VerdictLevel::Warn; 2];

fn check(steps: &[(u64, [VerdictLevel; 2])], evidence: &Evidence, expected: &[&str]) {
    let operators = steps
        .iter()
        .map(|&(step, levels)| operator(Some(step), levels, evidence));
    let found = comparison(operators.collect(), [None, None]);
    assert_eq!(lines(&found), expected);
}

#[test]
fn one_step_is_not_told_about() {
    check(&[(3, OWN)], &Evidence::Tensor, &[]);
    let without = comparison(vec![operator(None, OWN, &Evidence::Tensor)], [None, None]);
    assert_eq!(without.summary.steps, None);
    // Uncompared steps neither agree nor differ.
    let skipped = [VerdictLevel::Skip; 2];
    check(&[(0, AGREE), (1, skipped)], &Evidence::Tensor, &[]);
}

#[test]
fn elements_of_neighbouring_steps_tell_all() {
    let agree = [(0, AGREE), (1, AGREE), (2, AGREE)];
    check(&agree, &Evidence::Tensor, &["all 3 steps agree: 0-2"]);
    let own = [(0, AGREE), (1, AGREE), (2, OWN), (3, OUTSIDE)];
    check(
        &own,
        &Evidence::Tensor,
        &["first step that fails: 2 of 0-3 (0-1 agree)"],
    );
    let outside = [(0, AGREE), (1, OUTSIDE)];
    check(
        &outside,
        &Evidence::Tensor,
        &[
            "first step that fails: 1 of 0-1 (0 agrees)",
            "  step 1 differs in what comes into it: look at its data and random numbers, and at \
             what updated the weights before it, not at its operators",
        ],
    );
    let warned = [(0, AGREE), (1, WARN), (2, AGREE), (3, OUTSIDE)];
    let found = "first step that fails: 3 of 0-3 (0 agrees, first warning at 1)";
    check_first_line(&warned, found);
    check_first_line(
        &[(0, WARN), (1, AGREE)],
        "first step with a warning: 0 of 0-1",
    );
}

#[test]
fn a_parameter_was_updated_before() {
    let check = |steps: [u64; 2], expected: &str| {
        let mut operators = steps.map(|step| operator(Some(step), AGREE, &Evidence::Tensor));
        operators[1] = operator(Some(steps[1]), OUTSIDE, &Evidence::Tensor);
        let slot = &mut operators[1].slots[0];
        slot.change_rare(|rare| rare.parameter = Some("fc.weight".into()));
        let found = comparison(operators.to_vec(), [None, None]);
        assert_eq!(lines(&found)[1], expected);
    };
    check(
        [4, 5],
        "  step 5 begins with another parameter `fc.weight`: look at what updated it after step \
         4, not at the operators of the step",
    );
    check(
        [0, 5],
        "  step 5 begins with another parameter `fc.weight`: look at what updated it before, not \
         at the operators of the step",
    );
}

fn check_first_line(steps: &[(u64, [VerdictLevel; 2])], expected: &str) {
    let operators = steps
        .iter()
        .map(|&(step, levels)| operator(Some(step), levels, &Evidence::Tensor));
    let found = comparison(operators.collect(), [None, None]);
    assert_eq!(lines(&found)[0], expected);
}

#[test]
fn gaps_are_to_be_filled() {
    let steps = [(0, AGREE), (10, AGREE), (20, OUTSIDE), (30, OUTSIDE)];
    check(
        &steps,
        &Evidence::Statistics,
        &[
            "first step that fails: 20 of 0, 10, …, 30 (0, 10 agree)",
            "  step 20 differs in what comes into it: look at its data and random numbers, and at \
             what updated the weights before it, not at its operators",
            "dump next, on both sides: steps 11-19, which were not compared; statistics will do",
        ],
    );
    // An operator that is at fault itself reads what it should, and nothing before went wrong.
    check(
        &[(0, AGREE), (10, OWN)],
        &Evidence::Tensor,
        &["first step that fails: 10 of 0, 10 (0 agrees)"],
    );
    let far = [(0, AGREE), (1000, OUTSIDE)];
    let operators = far.map(|(step, levels)| operator(Some(step), levels, &Evidence::Digest));
    let found = comparison(operators.to_vec(), [None, None]);
    assert_eq!(
        lines(&found)[2],
        "dump next, on both sides: steps 90, 181, 272, 363, 454, 545, 636, 727, 818, 909, which \
         were not compared; statistics will do; at most 2 more dumps after it find the first"
    );
    // There may have been steps before the first that was dumped.
    let late = [(5, OUTSIDE), (6, OUTSIDE)];
    let operators = late.map(|(step, levels)| operator(Some(step), levels, &Evidence::Tensor));
    let found = comparison(operators.to_vec(), [None, None]);
    let next = found.summary.steps.unwrap().first.unwrap().next.unwrap();
    assert_eq!(next.steps, [0, 1, 2, 3, 4]);
}

#[test]
fn statistics_ask_for_elements() {
    let steps = [(36, AGREE), (37, OUTSIDE)];
    let operators = steps.map(|(step, levels)| operator(Some(step), levels, &Evidence::Statistics));
    let found = |origins| {
        let found = comparison(operators.to_vec(), origins);
        lines(&found)[2..].to_vec()
    };
    let dump = "dump next, on both sides: steps 36-37 with all elements, as these are statistics";
    let check = |origins, expected: &[&str]| {
        let expected: Vec<&str> = [dump].iter().chain(expected).copied().collect();
        assert_eq!(found(origins), expected);
    };
    check([None, None], &[]);
    let acl = || origin("dump", "acl", Some("acl.json"));
    let text = r#"`"dump_step": "36-37", "dump_data": "tensor"` in `acl.json`"#;
    check([acl(), acl()], &[&format!("  {text}")]);
    let eager = r#"`opscope.torch.eager(steps="36-37", data="tensor")`"#;
    check(
        [acl(), origin("torch eager", "native", None)],
        &[&format!("  target: {text}"), &format!("  golden: {eager}")],
    );
    let backend = r#"`opscope.torch.backend(steps="36-37", data="tensor")`"#;
    let compiled = origin("torch.compile", "acl", None);
    check([None, compiled], &[&format!("  golden: {backend}")]);
    let mindspore = r#"`"iteration": "36-37", "saved_data": "tensor"` in `dump.json`"#;
    let configured = origin("dump", "mindspore", Some("dump.json"));
    check([configured, None], &[&format!("  target: {mindspore}")]);
    let line = "`opscope dump net.onnx --iterations 36-37`";
    let plain = || origin("dump", "native", None);
    check([plain(), plain()], &[&format!("  {line}")]);
    check([origin("convert", "", None), None], &[]);
    // Without inputs that differ there is nothing to look for in the step before.
    let own = [
        operator(Some(36), AGREE, &Evidence::Statistics),
        operator(Some(37), OWN, &Evidence::Statistics),
    ];
    let found = comparison(own.to_vec(), [None, None]);
    let next = found.summary.steps.unwrap().first.unwrap().next.unwrap();
    assert_eq!((next.steps, next.needs_elements), (vec![37], true));
}
