//! Ranks, models and steps.

use opscope_analysis::compare::matching::MatchingOptions;
use opscope_analysis::compare::result::SkipReason;
use opscope_analysis::compare::side::{OperatorExecution, RunPlace};

use crate::matching::{at, lines, matched_by, same, side};

fn place(rank: Option<u32>, model: Option<(&str, u32)>, step: Option<u64>) -> RunPlace {
    RunPlace {
        rank,
        model: model.map(|(name, _)| name.into()),
        model_id: model.map(|(_, id)| id),
        step,
    }
}

fn relu(place: &RunPlace, name: &str) -> Vec<OperatorExecution> {
    at(place, vec![same("Relu", name, &[4])])
}

#[track_caller]
fn check(
    target: &[Vec<OperatorExecution>],
    golden: &[Vec<OperatorExecution>],
    options: &MatchingOptions,
    expected: &[&str],
) {
    let (target, golden) = (side(target.concat()), side(golden.concat()));
    assert_eq!(
        lines(&matched_by(&target, &golden, options), &target, &golden),
        expected
    );
}

#[test]
fn the_only_place_of_each_side_is_the_same() {
    // MindSpore's iteration, AscendCL's data index, PyTorch's graph, arrays without any place.
    let places = [
        place(Some(3), Some(("Net", 0)), Some(7)),
        place(Some(0), Some(("resnet50", 1)), Some(0)),
        place(Some(0), Some(("graph_1", 1)), Some(0)),
        place(None, None, None),
    ];
    for a in &places {
        for b in &places {
            let (target, golden) = (relu(a, "a"), relu(b, "a"));
            check(
                &[target],
                &[golden],
                &MatchingOptions::default(),
                &["a = a, name"],
            );
        }
    }
}

#[test]
fn steps_and_ranks_go_by_number() {
    let runs = |rank, step| {
        relu(
            &place(Some(rank), None, Some(step)),
            &format!("r{rank}s{step}"),
        )
    };
    let expected = [
        "r0s1 = r0s1, name",
        "r1s1 = r1s1, name",
        "target: r1s2, missing_place",
        "golden: r0s0, missing_place",
        "golden: r2s0, missing_place",
    ];
    let golden = [runs(0, 0), runs(0, 1), runs(1, 1), runs(2, 0)];
    check(
        &[runs(0, 1), runs(1, 1), runs(1, 2)],
        &golden,
        &MatchingOptions::default(),
        &expected,
    );
}

#[test]
fn chosen_steps_and_ranks_are_compared_alone() {
    let runs = |rank, step| relu(&place(Some(rank), None, Some(step)), "a");
    let all = [runs(0, 0), runs(0, 1), runs(0, 2)];
    let steps = MatchingOptions {
        steps: vec![(1, 2), (0, 5)],
        ..MatchingOptions::default()
    };
    let expected = [
        "a = a, name",
        "target: a, missing_place",
        "target: a, left_out",
        "golden: a, left_out",
        "golden: a, left_out",
    ];
    check(&all, &all, &steps, &expected);
    let ranks = MatchingOptions {
        ranks: vec![(0, 1)],
        ..MatchingOptions::default()
    };
    check(
        &[runs(0, 0)],
        &[runs(0, 0), runs(1, 0)],
        &ranks,
        &["a = a, name", "golden: a, left_out"],
    );
    // A side without numbers has one step, which any number means.
    let plain = relu(&place(None, None, None), "a");
    let steps = MatchingOptions {
        steps: vec![(1, 0)],
        ..MatchingOptions::default()
    };
    let expected = ["a = a, name", "target: a, left_out", "target: a, left_out"];
    check(&all, &[plain], &steps, &expected);
}

#[test]
fn graphs_with_the_same_operators_go_by_name() {
    let graph = |n: u32, name: &str| {
        let place = place(Some(0), Some((name, n)), Some(0));
        at(
            &place,
            vec![same("Add", "add", &[4]), same("Mul", "mul", &[4])],
        )
    };
    let expected = [
        "add = add, name",
        "mul = mul, name",
        "add = add, name",
        "mul = mul, name",
    ];
    let (target, golden) = (
        side([graph(1, "graph_1"), graph(2, "graph_2")].concat()),
        side([graph(2, "graph_2"), graph(1, "graph_1")].concat()),
    );
    let matching = matched_by(&target, &golden, &MatchingOptions::default());
    assert_eq!(lines(&matching, &target, &golden), expected);
    assert_eq!(matching.pairs[0].golden[..], [2]);
}

#[test]
fn models_of_other_names_go_by_what_they_have_in_common() {
    let model = |name: &str, id, ops: &[&str]| {
        let ops = ops.iter().map(|op| same("Relu", op, &[4])).collect();
        at(&place(None, Some((name, id)), None), ops)
    };
    let target = [
        model("a", 1, &["x", "y"]),
        model("b", 2, &["u", "v"]),
        model("c", 3, &["q"]),
    ];
    let golden = [
        model("k", 1, &["v", "u"]),
        model("l", 2, &["p"]),
        model("m", 3, &["y", "x"]),
    ];
    let expected = [
        "x = x, name",
        "y = y, name",
        "u = u, name",
        "v = v, name",
        "q = p, order",
    ];
    check(&target, &golden, &MatchingOptions::default(), &expected);
    let chosen = MatchingOptions {
        models: vec![("a".to_owned(), "k".to_owned())],
        ..MatchingOptions::default()
    };
    let target = side(target.concat());
    let golden = side(golden.concat());
    let matching = matched_by(&target, &golden, &chosen);
    assert_eq!(matching.pairs.len(), 2);
    assert!(
        matching
            .unmatched
            .iter()
            .all(|one| one.reason.kind() == SkipReason::LeftOut)
    );
}

#[test]
fn loads_of_a_model_keep_their_order() {
    let load = |id, shape: u64| {
        at(
            &place(None, Some(("net", id)), Some(0)),
            vec![same("Relu", "a", &[shape])],
        )
    };
    let (target, golden) = (
        side([load(4, 1), load(9, 2)].concat()),
        side([load(1, 1), load(2, 2), load(3, 3)].concat()),
    );
    let matching = matched_by(&target, &golden, &MatchingOptions::default());
    let expected = ["a = a, name", "a = a, name", "golden: a, missing_place"];
    assert_eq!(lines(&matching, &target, &golden), expected);
    assert_eq!(
        [&matching.pairs[0].golden[..], &matching.pairs[1].golden[..]],
        [[0], [1]]
    );
}

#[test]
fn what_has_no_step_stays_beside_the_steps() {
    // Constants of a graph belong to no step.
    let constant = || relu(&place(None, None, None), "constant");
    let run = |step| relu(&place(None, None, step), "a");
    let expected = ["constant = constant, name", "a = a, name"];
    let options = MatchingOptions::default();
    check(
        &[constant(), run(Some(4))],
        &[constant(), run(Some(0))],
        &options,
        &expected,
    );
    let expected = ["a = a, name", "target: constant, missing_place"];
    check(
        &[constant(), run(Some(4))],
        &[run(None)],
        &options,
        &expected,
    );
    check(
        &[constant(), run(Some(4))],
        &[run(Some(2))],
        &options,
        &expected,
    );
}
