//! Limits are decided in the order of execution, whatever the writers do.

use std::sync::Arc;

use opscope_capture::{
    FailureDetail, ModelSelection, OperatorSelection, Plan, Purpose, SessionOptions, SlotSides,
};
use opscope_store::record::Operator;

use crate::double::{additions, bytes, float, one_writer, show, willing, with_session};

fn limited(
    n_bytes_max: Option<u64>,
    n_tensors_max: Option<u64>,
    n_writers: usize,
) -> SessionOptions {
    SessionOptions {
        n_bytes_max,
        n_tensors_max,
        n_writers,
        ..SessionOptions::default()
    }
}

#[test]
fn operators_are_taken_whole_up_to_the_first_that_does_not_fit() {
    // Bytes of all three tensors of each operator: 30, 60, 3, 30.
    let sizes = [10, 20, 1, 10];
    let operators = additions(4);
    for (n_bytes_max, n_tensors_max, n_expected) in [
        (None, None, 4),
        (Some(123), None, 4),
        (Some(122), None, 3),
        (Some(90), None, 2),
        // The third would fit, but comes after one that does not.
        (Some(89), None, 1),
        (Some(29), None, 0),
        (Some(0), None, 0),
        (None, Some(12), 4),
        (None, Some(8), 2),
        (None, Some(2), 0),
        (Some(90), Some(3), 1),
        (Some(30), Some(12), 1),
    ] {
        for n_writers in [1, 4] {
            let sink = willing();
            let summary = with_session(
                Plan::everything(),
                sink.clone(),
                limited(n_bytes_max, n_tensors_max, n_writers),
                &operators,
                |tap| {
                    for (operator, n) in operators.iter().zip(sizes) {
                        show(tap, operator, [bytes(n), bytes(n)], bytes(n));
                    }
                },
            );
            let mut kept = sink.kept();
            kept.sort();
            let expected: Vec<_> = (0..n_expected).map(|i| format!("op{i}")).collect();
            assert_eq!(kept, expected, "{n_bytes_max:?} {n_tensors_max:?}");
            let c = summary.counters;
            assert_eq!((c.n_offered, c.n_selected, c.n_operators_seen), (12, 12, 4));
            assert_eq!(c.dropped.n_limit, 12 - 3 * n_expected as u64);
            assert!(summary.first_error.is_none() && !summary.is_ended_by_failure);
            assert_eq!(c.n_bytes_selected, c.n_bytes_written);
        }
    }
}

#[test]
fn graph_inputs_belong_to_the_operator_that_reads_them() {
    let operators = additions(2);
    let plan = Plan {
        has_graph_inputs: true,
        sides: SlotSides::Outputs,
        ..Plan::everything()
    };
    for (n_max, n_written) in [(4, 4), (3, 2), (2, 2), (1, 0)] {
        let options = limited(None, Some(n_max), 2);
        let summary = with_session(plan.clone(), willing(), options, &operators, |tap| {
            for operator in &operators {
                show(tap, operator, [float(1.0), float(1.0)], float(2.0));
            }
        });
        let c = summary.counters;
        assert_eq!((c.n_selected, c.n_written), (4, n_written), "{n_max}");
        assert_eq!(c.dropped.n_limit, 4 - n_written);
    }
}

#[test]
fn parameters_count_at_the_end_of_the_step() {
    let operators = additions(1);
    let plan = Plan {
        has_parameters: true,
        ..Plan::everything()
    };
    // Three tensors of the operator, then `w` and `x`.
    for (n_max, n_written) in [(5, 5), (4, 4), (3, 3), (2, 0)] {
        let options = limited(None, Some(n_max), 2);
        let summary = with_session(plan.clone(), willing(), options, &operators, |tap| {
            tap.begin_step(0);
            show(tap, &operators[0], [float(1.0), float(1.0)], float(2.0));
            tap.end_step();
        });
        let c = summary.counters;
        assert_eq!((c.n_selected, c.n_written), (5, n_written), "{n_max}");
    }
}

#[test]
fn what_turns_out_to_be_selected_is_decided_then() {
    let operators = additions(9);
    for purpose in [
        Purpose::Overflow,
        Purpose::NonFinite,
        Purpose::Failures(FailureDetail::Brief),
    ] {
        let plan = Plan {
            purpose,
            ..Plan::everything()
        };
        for n_writers in [1, 4] {
            let sink = willing();
            let options = limited(None, Some(7), n_writers);
            let summary = with_session(plan.clone(), sink.clone(), options, &operators, |tap| {
                for operator in &operators {
                    let is_bad = operator.task_id % 3 == 2;
                    let large = if is_bad { f32::MAX } else { 1.0 };
                    let mut probe = tap.open(operator).unwrap();
                    probe.input(0, float(large));
                    probe.input(1, float(large));
                    probe.output(0, float(large + large));
                    match purpose {
                        Purpose::Failures(_) if is_bad => probe.fail("no"),
                        _ => probe.submit(),
                    }
                }
            });
            let mut kept = sink.kept();
            kept.sort();
            assert_eq!(kept, ["op2", "op5"], "{purpose:?}");
            let c = summary.counters;
            assert_eq!((c.n_selected, c.n_written, c.dropped.n_limit), (9, 6, 3));
            // A limit hides no finding.
            if !matches!(purpose, Purpose::Failures(_)) {
                assert_eq!(c.n_operators_overflowed, 3);
            }
        }
    }
}

#[test]
fn an_overflow_beyond_the_limit_is_found_all_the_same() {
    let operators = additions(1);
    let plan = Plan {
        purpose: Purpose::Overflow,
        ..Plan::everything()
    };
    let options = limited(Some(0), None, 1);
    let summary = with_session(plan, willing(), options, &operators, |tap| {
        let large = || float(f32::MAX);
        show(tap, &operators[0], [large(), large()], float(f32::INFINITY));
    });
    assert_eq!(summary.first_overflow.unwrap().op_name, "op0");
    assert_eq!(summary.counters.n_operators_written, 0);
}

#[test]
fn watched_values_and_looks_at_them_are_limited() {
    let operators: Vec<Arc<Operator>> = additions(4);
    let plan = Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(OperatorSelection {
            watched: vec!["op0".into()],
            ..OperatorSelection::every()
        }),
        ..Plan::everything()
    };
    let options = SessionOptions {
        n_tensors_max: Some(2),
        ..one_writer()
    };
    let sink = willing();
    let summary = with_session(plan, sink.clone(), options, &operators, |tap| {
        for operator in &operators {
            show(tap, operator, [float(1.0), float(1.0)], float(2.0));
        }
    });
    assert_eq!(sink.kept(), ["op0", "op1_To_op0"]);
    let c = summary.counters;
    assert_eq!((c.n_selected, c.dropped.n_limit), (4, 2));
}
