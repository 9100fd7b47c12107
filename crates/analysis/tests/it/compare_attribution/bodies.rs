//! Inputs that no list of an operator has, or whose order statistics do not show.

use opscope_analysis::compare::attribution::attribute;
use opscope_analysis::compare::result::{
    Cause, Comparison, Evidence, MetricId, OperatorName, OperatorResult, PairingEvidence,
    SlotAgreement, SlotKey, SlotResult, VerdictLevel,
};

/// An operator of a type whose slots have these levels.
fn operator(
    index: usize,
    op_type: &str,
    slots: &[(&str, Evidence, VerdictLevel)],
) -> OperatorResult {
    let name = OperatorName {
        op_type: op_type.into(),
        op_name: format!("op_{index}").into(),
        ..OperatorName::default()
    };
    let slot = |(key, evidence, level): &(&str, Evidence, VerdictLevel)| {
        let distance = if *level == VerdictLevel::Fail {
            1.0
        } else {
            0.0
        };
        let metric = match evidence {
            Evidence::Statistics => MetricId::StatisticRel,
            _ => MetricId::RelL2,
        };
        SlotResult {
            slot: SlotKey::parse(key).unwrap(),
            evidence: evidence.clone(),
            level: *level,
            metrics: vec![(metric, distance)].into(),
            ..SlotResult::default()
        }
    };
    let slots: Vec<SlotResult> = slots.iter().map(slot).collect();
    OperatorResult {
        index,
        target: [name.clone()].into(),
        golden: [name].into(),
        level: slots.iter().map(|slot| slot.level).max().unwrap(),
        slots,
        ..OperatorResult::default()
    }
}

fn attributed(operators: Vec<OperatorResult>) -> Comparison {
    let mut comparison = Comparison {
        operators,
        ..Comparison::default()
    };
    attribute(&mut comparison, 10);
    comparison
}

#[test]
fn a_body_may_read_what_differs() {
    use VerdictLevel::{Fail, Pass};
    let slots = [
        ("input.0", Evidence::Tensor, Pass),
        ("output.0", Evidence::Tensor, Fail),
    ];
    for (op_type, expected) in [
        ("Loop", Cause::Unknown),
        ("Scan", Cause::Unknown),
        ("If", Cause::Unknown),
        ("Relu", Cause::Own),
    ] {
        let comparison = attributed(vec![operator(0, op_type, &slots)]);
        assert_eq!(comparison.operators[0].cause, Some(expected), "{op_type}");
    }
}

#[test]
fn exchanged_parts_have_the_statistics_of_the_right_order() {
    use Evidence::{Statistics, Tensor};
    use VerdictLevel::{Fail, Pass};
    for (evidence, expected) in [(Statistics, Cause::Unknown), (Tensor, Cause::Own)] {
        let mut joined = operator(
            0,
            "Concat",
            &[
                ("input.0", evidence.clone(), Fail),
                ("input.1", evidence.clone(), Fail),
                ("output.0", evidence.clone(), Pass),
            ],
        );
        joined.readers = [[2, 1]].into();
        let slots = [
            ("input.0", evidence.clone(), Pass),
            ("output.0", evidence.clone(), Fail),
        ];
        let comparison = attributed(vec![joined, operator(1, "MatMul", &slots)]);
        assert_eq!(
            comparison.operators[1].cause,
            Some(expected),
            "{evidence:?}"
        );
        let first = comparison.summary.first_failure.unwrap();
        assert_eq!(first.operator, 0, "{evidence:?}");
    }
}

#[test]
fn a_weight_that_comes_to_nothing_is_no_cause() {
    use Evidence::Tensor;
    use VerdictLevel::{Fail, Pass, Skip};
    let masked = [
        ("input.0", Tensor, Fail),
        ("input.1", Tensor, Pass),
        ("output.0", Tensor, Skip),
    ];
    let mut masked = operator(0, "Where", &masked);
    masked.slots[0].is_outside = true;
    masked.slots[2].change_rare(|rare| rare.agreement = Some(SlotAgreement::Downstream));
    masked.readers = [[2, 1]].into();
    let agreed = [("input.0", Tensor, Skip), ("output.0", Tensor, Pass)];
    let mut agreed = operator(1, "Softmax", &agreed);
    agreed.slots[0].change_rare(|rare| rare.agreement = Some(SlotAgreement::Downstream));
    let unseen = [("input.0", Tensor, Pass), ("output.0", Tensor, Fail)];
    let comparison = attributed(vec![masked, agreed, operator(2, "Loop", &unseen)]);
    let first = comparison.summary.first_failure.unwrap();
    assert_eq!((first.operator, first.cause), (2, Cause::Unknown));
}

#[test]
fn a_reader_that_values_chose_shows_nothing_of_what_it_should_read() {
    use Evidence::Tensor;
    use VerdictLevel::{Fail, Pass};
    let one = |level| [("input.0", Tensor, Pass), ("output.0", Tensor, level)];
    for (how, expected) in [(PairingEvidence::Value, 0), (PairingEvidence::Name, 2)] {
        let mut chosen = operator(0, "Gather", &one(Fail));
        (chosen.is_certain, chosen.readers) = (true, [[1, 1]].into());
        let mut reader = operator(1, "Gather", &one(Pass));
        reader.how = how;
        let comparison = attributed(vec![chosen, reader, operator(2, "Concat", &one(Fail))]);
        let first = comparison.summary.first_failure.unwrap();
        assert_eq!(first.operator, expected, "{how:?}");
    }
}
