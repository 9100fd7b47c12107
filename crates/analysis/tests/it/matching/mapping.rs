//! Matching by the mapping of the user.

use opscope_analysis::compare::matching::{
    Mapping, MappingError, MappingForm, Matching, MatchingOptions,
};
use opscope_analysis::compare::side::ComparedDump;

use crate::matching::{lines, matched, matched_by, op, same, side, slot_lines};

const SHAPE: &[u64] = &[2, 4];

fn sides() -> [ComparedDump; 2] {
    let target = vec![
        same("Relu", "a/x", SHAPE),
        op("Split", "b", &[SHAPE], &[SHAPE, SHAPE]),
        same("Tanh", "debug_print", SHAPE),
        same("Fused", "f", SHAPE),
    ];
    let golden = vec![
        op("Split", "q", &[SHAPE], &[SHAPE, SHAPE]),
        same("Relu", "p", SHAPE),
        same("Mul", "u", SHAPE),
        same("Add", "v", SHAPE),
    ];
    [side(target), side(golden)]
}

fn with(text: &str) -> MatchingOptions {
    MatchingOptions {
        mapping: Some(Mapping::parse(text, MappingForm::detect("mapping", text)).unwrap()),
        no_guesses: true,
        ..MatchingOptions::default()
    }
}

const YAML: &str = "
# Comments are welcome.
operators:
  - target: a_x
    golden: p
  - {target: b, golden: q, slots: {output.0: output.1, output.1: output.0}}
  - target: [f]
    golden:
      - u
      - v
ignore: ['debug_*']
";

const JSON: &str = r#"{
	"operators": [
		{"target": "a_x", "golden": "p"},
		{"target": "b", "golden": "q", "slots": {"output.0": "output.1", "output.1": "output.0"}},
		{"target": ["f"], "golden": ["u", "v"]}
	],
	"ignore": ["debug_*"]
}"#;

#[test]
fn both_forms_say_the_same() {
    let [target, golden] = sides();
    for text in [YAML, JSON] {
        let matching = matched_by(&target, &golden, &with(text));
        let expected = [
            "a/x = p, mapping",
            "b = q, mapping",
            "f = u+v, mapping",
            "target: debug_print, left_out",
        ];
        assert_eq!(lines(&matching, &target, &golden), expected);
        let expected = [
            "a/x:input.0 = p:input.0",
            "a/x:output.0 = p:output.0",
            "b:input.0 = q:input.0",
            "b:output.0 = q:output.1",
            "b:output.1 = q:output.0",
            "f:input.0 = u:input.0",
            "f:output.0 = v:output.0",
        ];
        assert_eq!(slot_lines(&matching, &target, &golden), expected);
    }
}

#[test]
fn slots_of_groups_can_be_named() {
    let [target, golden] = sides();
    let text = "operators: [{target: f, golden: [u, v], slots: {output.0: 'u:output.0'}}]";
    let matching = matched_by(&target, &golden, &with(text));
    let expected = ["f:input.0 = u:input.0", "f:output.0 = u:output.0"];
    assert_eq!(slot_lines(&matching, &target, &golden), expected);
}

#[test]
fn a_mapping_beats_equal_names() {
    let target = side(vec![same("Relu", "a", SHAPE), same("Relu", "b", SHAPE)]);
    let golden = side(vec![same("Relu", "a", SHAPE), same("Relu", "b", SHAPE)]);
    let text = "operators: [{target: a, golden: b}, {target: b, golden: a}]";
    let found = lines(&matched_by(&target, &golden, &with(text)), &target, &golden);
    assert_eq!(found, ["a = b, mapping", "b = a, mapping"]);
    let found = lines(
        &matched_by(
            &target,
            &golden,
            &with("operators: [{target: a, golden: []}]"),
        ),
        &target,
        &golden,
    );
    assert_eq!(
        found,
        ["b = b, name", "target: a, left_out", "golden: a, missing"]
    );
}

#[test]
fn executions_can_be_chosen() {
    let target = side(vec![same("Add", "add", SHAPE), same("Add", "add", SHAPE)]);
    let golden = side(vec![same("Add", "add_1", SHAPE), same("Add", "add", SHAPE)]);
    let text = "operators:
  - {target: add, golden: add_1, target_run: 0}
  - {target: add, golden: add, target_run: 1, golden_run: 0}";
    let found = lines(&matched_by(&target, &golden, &with(text)), &target, &golden);
    assert_eq!(found, ["add = add_1, mapping", "add = add, mapping"]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let [target, golden] = sides();
    for (text, expected) in [
        (
            "operators: [{target: a_x, golden: p}, {target: nope, golden: q}]",
            "`operators[1].target`: the target side has no operator `nope`",
        ),
        (
            "operators: [{target: b, golden: [u, w]}]",
            "`operators[0].golden`: the golden side has no operator `w`",
        ),
        (
            "operators: [{target: b, golden: q}, {target: a_x, golden: q}]",
            "`operators[1].golden`: `q` stands in `operators[0].golden` already",
        ),
        (
            "operators: [{target: [], golden: []}]",
            "`operators[0]`: no operator is named",
        ),
        (
            "operators: [{target: b, golden: q, slots: {outputs.0: output.1}}]",
            "`operators[0].slots`: `outputs.0` is no slot",
        ),
        (
            "operators: [{target: b, golden: q, slots: {output.0: 'x:output.1'}}]",
            "`operators[0].slots`: `x:output.1` is no slot",
        ),
        (
            "operators: [{target: b, golden: q, slots: {output.0: output.1, output.1: output.1}}]",
            "`output.1` stands in `operators[0].slots` already",
        ),
    ] {
        let error = Matching::align(&target, &golden, &with(text))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn wrong_forms_are_refused_with_their_line() {
    for (text, at) in [
        ("operators:\n  - target: a\n    goldn: b\n", 3),
        ("operators:\n  - {target: a\n", 2),
        (
            "{\n\"operators\": [\n{\"target\": 1, \"golden\": \"a\"}]}",
            3,
        ),
        ("{\"operators\": {}}", 1),
    ] {
        let error = Mapping::parse(text, MappingForm::detect("m", text)).unwrap_err();
        let MappingError::Syntax {
            line, ref message, ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(line, at, "{text}: {message}");
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    }
}

#[test]
fn a_proposal_can_be_edited_and_used_again() {
    let [mut target, golden] = sides();
    target.runs[3] = same("Gemm", "alone", &[9]);
    target.runs.push(same("", "very_long_name_of_it", &[7]));
    let mut golden = golden;
    golden.runs.push(same("", "long_name_of_it", &[7]));
    let first = matched(&target, &golden);
    let proposal = first.to_mapping(&target, &golden);
    let names: Vec<_> = proposal
        .operators
        .iter()
        .map(|entry| &entry.target.as_slice()[0][..])
        .collect();
    assert_eq!(names, ["b", "very_long_name_of_it"]);
    assert!(
        proposal.operators[1]
            .likeness
            .is_some_and(|likeness| likeness > 0.6)
    );
    assert_eq!(proposal.unmatched.target, ["a/x", "debug_print", "alone"]);
    for form in [MappingForm::Json, MappingForm::Yaml] {
        let text = proposal.to_text(form).unwrap();
        let read = Mapping::parse(&text, form).unwrap();
        assert_eq!(read, proposal, "{text}");
        let options = MatchingOptions {
            mapping: Some(read),
            ..MatchingOptions::default()
        };
        let again = matched_by(&target, &golden, &options);
        let pairs = |matching: &Matching| -> Vec<_> {
            let pairs = matching.pairs.iter();
            pairs
                .map(|pair| (pair.target.clone(), pair.golden.clone()))
                .collect()
        };
        assert_eq!(pairs(&again), pairs(&first));
    }
}

#[test]
fn what_vanished_in_a_fusion_is_in_the_proposal() {
    let target = side(vec![op("F", "f", &[&[3]], &[&[5]])]);
    let golden = side(vec![
        op("Conv", "a", &[&[3]], &[&[4]]),
        same("Relu", "b", &[4]),
        op("Conv", "c", &[&[4]], &[&[5]]),
    ]);
    let text = "operators: [{target: f, golden: [a, b, c]}]";
    let first = matched_by(&target, &golden, &with(text));
    assert_eq!(
        lines(&first, &target, &golden),
        ["f = a+c, mapping", "golden: b, inside_fusion"]
    );
    let again = first.to_mapping(&target, &golden);
    assert_eq!(again.operators[0].golden.as_slice(), ["a", "b", "c"]);
    let options = MatchingOptions {
        mapping: Some(again),
        ..MatchingOptions::default()
    };
    assert_eq!(matched_by(&target, &golden, &options), first);
}
