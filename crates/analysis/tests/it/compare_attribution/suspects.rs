//! Who is suspected where no operator can be accused.

use opscope_analysis::compare::attribution::attribute;
use opscope_analysis::compare::result::{
    Cause, Comparison, Evidence, MetricId, OperatorName, OperatorResult, Skip, SkipReason,
    SkipSide, SlotKey, SlotResult, Suspect, VerdictLevel,
};

fn name(op_name: String) -> OperatorName {
    OperatorName {
        op_type: "Mul".into(),
        op_name: op_name.into(),
        ..OperatorName::default()
    }
}

/// A comparison of operators without inputs, all of which fail.
fn failing(n: usize) -> Comparison {
    let output = SlotResult {
        evidence: Evidence::Tensor,
        metrics: vec![(MetricId::RelL2, 1.0)].into(),
        level: VerdictLevel::Fail,
        ..SlotResult::default()
    };
    let operator = |index: usize| OperatorResult {
        index,
        target: [name(format!("op_{index}"))].into(),
        golden: [name(format!("op_{index}"))].into(),
        slots: vec![output.clone()],
        level: VerdictLevel::Fail,
        ..OperatorResult::default()
    };
    Comparison {
        operators: (0..n).map(operator).collect(),
        ..Comparison::default()
    }
}

/// An operator without a partner.
fn unmatched(op_name: String, before: usize) -> Skip {
    Skip {
        side: SkipSide::Golden,
        operator: Some(name(op_name)),
        reason: SkipReason::Missing,
        before: Some(before),
        ..Skip::default()
    }
}

/// A slot of an operator that could not be compared.
fn skipped_slot(index: usize, slot: &str, reason: SkipReason) -> Skip {
    Skip {
        side: SkipSide::Target,
        operator: Some(name(format!("op_{index}"))),
        slot: SlotKey::parse(slot),
        reason,
        ..Skip::default()
    }
}

/// Names and reasons of an operator's suspects.
fn suspects(comparison: &Comparison, index: usize) -> Vec<(&str, SkipReason)> {
    let operator = &comparison.operators[index];
    let suspects = operator.suspects.iter();
    suspects
        .map(|suspect: &Suspect| (suspect.operator.op_name.as_str(), suspect.reason))
        .collect()
}

#[test]
fn the_nearest_come_first_and_are_five_at_most() {
    use SkipReason::{Damaged, Missing, MissingSlot, NoEvidence};
    let mut comparison = failing(6);
    comparison.skips = (0..7).map(|i| unmatched(format!("lone_{i}"), 2)).collect();
    // The output of the third operator has nothing to compare, and an input of the fifth is
    // missing.
    let hidden = &mut comparison.operators[3].slots[0];
    (hidden.evidence, hidden.level) = (Evidence::None, VerdictLevel::Skip);
    comparison
        .skips
        .push(skipped_slot(3, "output.0", NoEvidence));
    comparison
        .skips
        .push(skipped_slot(5, "input.1", MissingSlot));
    comparison.skips.push(unmatched("late".to_owned(), 5));
    attribute(&mut comparison, 1);
    let lone = ["lone_6", "lone_5", "lone_4", "lone_3", "lone_2"];
    assert_eq!(suspects(&comparison, 2), lone.map(|name| (name, Missing)));
    assert_eq!(suspects(&comparison, 3), []);
    assert_eq!(suspects(&comparison, 4), [("op_3", NoEvidence)]);
    let expected = [("late", Missing), ("op_5", MissingSlot)];
    assert_eq!(suspects(&comparison, 5), expected);
    // Whatever skips there are, none says of this one what hides it.
    comparison.skips.retain(|skip| skip.reason != NoEvidence);
    attribute(&mut comparison, 1);
    assert_eq!(suspects(&comparison, 4), [("op_3", Damaged)]);
}

#[test]
fn other_causes_have_no_suspects() {
    let mut comparison = failing(2);
    comparison.operators[1].target[0].op_type = "Const".into();
    comparison.skips = vec![unmatched("lone".to_owned(), 1)];
    attribute(&mut comparison, 1);
    assert_eq!(comparison.operators[1].cause, Some(Cause::Outside));
    assert_eq!(suspects(&comparison, 1), []);
    // Suspects that were saved with another verdict do not stay.
    comparison.operators[0].suspects = [Suspect {
        side: SkipSide::Both,
        operator: OperatorName::default(),
        reason: SkipReason::Missing,
    }]
    .into();
    attribute(&mut comparison, 1);
    assert_eq!(suspects(&comparison, 0), []);
}

/// Each search goes back from its own operator; one that inspected all others would do so 400
/// million times.
#[test]
fn searches_of_large_dumps_end() {
    const N: usize = 20_000;
    let mut comparison = failing(N);
    let skips = (0..N).rev();
    comparison.skips = skips.map(|i| unmatched(format!("lone_{i}"), i)).collect();
    attribute(&mut comparison, 1);
    let last = N - 1;
    let expected = format!("lone_{last}");
    assert_eq!(
        suspects(&comparison, last),
        [(expected.as_str(), SkipReason::Missing)]
    );
}
