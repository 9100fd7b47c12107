//! Large dumps of operators that are all alike, or made of each other.

use std::sync::Arc;

use opscope_analysis::compare::matching::{Matching, MatchingOptions};
use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, RunPlace};
use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use crate::hostile::is_child;

/// Operators of each side. Work that grew with their square would take hours.
const N: u32 = 20_000;

fn run(task: Option<u32>, op_type: &str, op_name: String) -> OperatorExecution {
    let slot = |side| ExecutionSlot::described(side, 0, DType::F32, &[2, 3]);
    OperatorExecution {
        op_type: op_type.into(),
        op_name: op_name.into(),
        task_id: task,
        slots: vec![slot(SlotSide::Input), slot(SlotSide::Output)],
        ..OperatorExecution::default()
    }
}

fn side(n: u32, run: impl Fn(u32) -> OperatorExecution) -> ComparedDump {
    ComparedDump {
        runs: (0..n).map(run).collect(),
        ..ComparedDump::default()
    }
}

/// Everything is in the matching once.
fn check(what: &str, target: &ComparedDump, golden: &ComparedDump) {
    let matching = Matching::align(target, golden, &MatchingOptions::default()).unwrap();
    for (i, side) in [target, golden].into_iter().enumerate() {
        let in_pairs = matching.pairs.iter();
        let n_paired: usize = in_pairs
            .map(|pair| [&pair.target, &pair.golden][i].len())
            .sum();
        let left = matching.unmatched.iter();
        let n_left = left.filter(|one| one.party.index() == i).count();
        assert_eq!(n_paired + n_left, side.runs.len(), "{what}, side {i}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of dumps")]
fn large_dumps_are_matched() {
    if !is_child("large::large_dumps_are_matched") {
        return;
    }
    let same = |n: u32, op_type: &'static str, name: &'static str| {
        side(n, move |i| run(Some(i), op_type, name.to_owned()))
    };
    let numbered = |op_type: &'static str, name: &'static str| {
        side(N, move |i| run(Some(i), op_type, format!("{name}_{i}")))
    };
    let unordered = |name: &'static str| side(N, move |i| run(None, "", format!("{name}_{i}")));
    for (what, target, golden) in [
        (
            "equal names",
            same(N, "Relu", "a"),
            same(N / 2, "Relu", "a"),
        ),
        (
            "equal names, other types",
            same(N, "Relu", "a"),
            same(N, "Conv", "a"),
        ),
        ("no names", same(N, "Relu", ""), same(N / 2, "Relu", "")),
        (
            "no names on one side",
            same(N, "Relu", ""),
            numbered("Conv", "b"),
        ),
        (
            "neither names nor types",
            same(N, "", ""),
            numbered("", "b"),
        ),
        ("other names, no order", unordered("a_b"), unordered("c_d")),
        (
            "names made of one another",
            numbered("Relu", "a"),
            side(N, |i| {
                run(Some(i), "Conv", format!("a_{i}_a_{}", N - 1 - i))
            }),
        ),
        (
            "names made of one name",
            same(N, "Relu", "a"),
            same(N, "Conv", "a_a"),
        ),
        (
            "names that begin with one another",
            side(2000, |i| run(Some(i), "Relu", "a".repeat(1 + i as usize))),
            side(2000, |i| {
                run(
                    Some(i),
                    "Conv",
                    format!("1_{}", "a".repeat(2000 - i as usize)),
                )
            }),
        ),
        (
            "one operator made of all",
            numbered("Relu", "a"),
            side(1, |_| OperatorExecution {
                original_names: (0..N).map(|i| format!("a_{i}")).collect(),
                ..run(Some(0), "Fused", "f".to_owned())
            }),
        ),
        (
            "operators made of the same ones",
            numbered("Relu", "a"),
            side(N, |i| OperatorExecution {
                original_names: ["a_1".to_owned(), "a_2".to_owned()].into(),
                ..run(Some(i), "Fused", format!("f_{i}"))
            }),
        ),
        (
            "operators made of the next one",
            numbered("Relu", "a"),
            side(N, |i| OperatorExecution {
                original_names: [format!("a_{}", (i + 1) % N), format!("a_{i}")].into(),
                ..run(Some(i), "Fused", format!("a_{i}"))
            }),
        ),
        ("one operator with many slots", many_slots(1), many_slots(2)),
        ("as many models as operators", models("net"), models("net")),
        ("models with other names", models("net"), models("other")),
    ] {
        check(what, &target, &golden);
    }
}

fn many_slots(n_runs: u32) -> ComparedDump {
    side(n_runs, |i| {
        let slots = [SlotSide::Input, SlotSide::Output].into_iter();
        let slots = slots.flat_map(|side| {
            (0..N).map(move |index| ExecutionSlot::described(side, index, DType::F32, &[2, 3]))
        });
        OperatorExecution {
            slots: slots.collect(),
            original_names: ["f".to_owned(), "f_1".to_owned()].into(),
            ..run(Some(i), "Split", format!("f_{i}"))
        }
    })
}

fn models(name: &str) -> ComparedDump {
    side(N / 4, |i| OperatorExecution {
        place: Arc::new(RunPlace {
            model: Some(name.into()),
            model_id: Some(i),
            ..RunPlace::default()
        }),
        ..run(Some(i), "Relu", "a".to_owned())
    })
}
