//! Which operator of one side is which of the other.

mod dumps;
mod fusion;
mod layouts;
mod mapping;
mod origin;
mod places;
mod planted;
mod properties;

use std::sync::Arc;

use opscope_analysis::compare::matching::{MatchEvidence, Matching, MatchingOptions, RunPair};
use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, RunPlace};
use opscope_store::record::SlotSide;
use opscope_tensor::DType;

/// An operator with its inputs and outputs.
fn op(op_type: &str, op_name: &str, inputs: &[&[u64]], outputs: &[&[u64]]) -> OperatorExecution {
    let slots = |side: SlotSide, all: &[&[u64]]| {
        let all = all.iter().enumerate();
        all.map(|(i, shape)| ExecutionSlot::described(side, i as u32, DType::F32, shape))
            .collect::<Vec<_>>()
    };
    OperatorExecution {
        op_type: op_type.into(),
        op_name: op_name.into(),
        slots: [
            slots(SlotSide::Input, inputs),
            slots(SlotSide::Output, outputs),
        ]
        .concat(),
        ..OperatorExecution::default()
    }
}

/// An operator with one input and one output of the same shape.
fn same(op_type: &str, op_name: &str, shape: &[u64]) -> OperatorExecution {
    op(op_type, op_name, &[shape], &[shape])
}

/// Executions in order.
fn side(mut runs: Vec<OperatorExecution>) -> ComparedDump {
    for (task_id, run) in (0..).zip(&mut runs) {
        run.task_id = Some(task_id);
    }
    ComparedDump {
        runs,
        ..ComparedDump::default()
    }
}

fn at(place: &RunPlace, runs: Vec<OperatorExecution>) -> Vec<OperatorExecution> {
    let place = |run: OperatorExecution| OperatorExecution {
        place: Arc::new(place.clone()),
        ..run
    };
    runs.into_iter().map(place).collect()
}

/// Pairs as `target = golden, how`, what is left as `target: name, reason`.
fn lines(matching: &Matching, target: &ComparedDump, golden: &ComparedDump) -> Vec<String> {
    let names = |side: &ComparedDump, runs: &[usize]| {
        let names: Vec<&str> = runs
            .iter()
            .map(|&run| side.runs[run].op_name.as_str())
            .collect();
        names.join("+")
    };
    let pair = |pair: &RunPair| {
        let how = match pair.how {
            MatchEvidence::Fuzzy(likeness) => {
                assert!((0.6..=1.0).contains(&likeness));
                "fuzzy"
            }
            how => how.evidence().name(),
        };
        let (t, g) = (names(target, &pair.target), names(golden, &pair.golden));
        format!("{t} = {g}, {how}")
    };
    let pairs = matching.pairs.iter().map(pair);
    let left = matching.unmatched.iter().map(|one| {
        let (name, side) = if one.party.index() == 0 {
            ("target", target)
        } else {
            ("golden", golden)
        };
        let run = &side.runs[one.run].op_name;
        format!("{name}: {run}, {}", one.reason.kind())
    });
    pairs.chain(left).collect()
}

/// Slots that are compared, as `name:output.0 = name:output.0`.
fn slot_lines(matching: &Matching, target: &ComparedDump, golden: &ComparedDump) -> Vec<String> {
    let name = |side: &ComparedDump, place: opscope_analysis::compare::matching::SlotRef| {
        let run = &side.runs[place.run];
        format!("{}:{}", run.op_name, run.slots[place.slot].key())
    };
    let all = matching.pairs.iter().flat_map(|pair| &pair.slots);
    all.map(|pair| {
        format!(
            "{} = {}",
            name(target, pair.target),
            name(golden, pair.golden)
        )
    })
    .collect()
}

fn matched(target: &ComparedDump, golden: &ComparedDump) -> Matching {
    matched_by(target, golden, &MatchingOptions::default())
}

fn matched_by(target: &ComparedDump, golden: &ComparedDump, options: &MatchingOptions) -> Matching {
    let matching = Matching::align(target, golden, options).unwrap();
    check(&matching, target, golden);
    matching
}

/// Checks what holds of every matching: everything is in it once.
fn check(matching: &Matching, target: &ComparedDump, golden: &ComparedDump) {
    for (i, side) in [target, golden].into_iter().enumerate() {
        let mut n_of = vec![0; side.runs.len()];
        for pair in &matching.pairs {
            for &run in [&pair.target, &pair.golden][i] {
                n_of[run] += 1;
            }
        }
        let left = matching.unmatched.iter();
        for one in left.filter(|one| one.party.index() == i) {
            n_of[one.run] += 1;
        }
        assert!(n_of.iter().all(|&n| n == 1), "side {i}: {n_of:?}");
        let slots = matching.pairs.iter().flat_map(|pair| &pair.slots);
        let mut slots: Vec<_> = slots.map(|pair| [pair.target, pair.golden][i]).collect();
        let n_compared = slots.len();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), n_compared, "a slot is in two pairs");
        let n_missing = matching.pairs.iter().flat_map(|pair| &pair.missing);
        let n_missing = n_missing.filter(|slot| slot.party.index() == i).count();
        let in_pairs = matching
            .pairs
            .iter()
            .flat_map(|pair| [&pair.target, &pair.golden][i]);
        let n_slots: usize = in_pairs.map(|&run| side.runs[run].slots.len()).sum();
        assert_eq!(n_compared + n_missing, n_slots, "side {i}");
    }
}
