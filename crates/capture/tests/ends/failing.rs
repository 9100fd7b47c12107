//! Sinks that fail and panic.

use std::sync::Arc;

use opscope_capture::{FailureDetail, FailurePolicy, Plan, Purpose, SessionOptions, SinkError};

use crate::double::{
    Broken, Scripted, additions, bytes, float, full, one_writer, run_step, show, willing,
    with_session,
};

fn policy(on_failure: FailurePolicy) -> SessionOptions {
    SessionOptions {
        on_failure,
        ..one_writer()
    }
}

/// A disk with room for 30 records.
fn nearly_full(n: u64) -> Result<(), SinkError> {
    if n < 30 { Ok(()) } else { Err(full()) }
}

#[test]
fn the_policy_decides_what_a_full_disk_ends() {
    let operators = additions(50);
    let run = |on_failure| {
        let sink = Scripted::new(nearly_full);
        // A queue for one record at a time: the model cannot run far ahead of the failure.
        let options = SessionOptions {
            queue_bytes_max: 1,
            ..policy(on_failure)
        };
        let summary = with_session(Plan::everything(), sink, options, &operators, |tap| {
            run_step(tap, 0, &operators);
            run_step(tap, 1, &operators);
        });
        assert_eq!(summary.counters.n_written, 30 * 3);
        assert!(summary.first_error.is_some());
        summary
    };
    let summary = run(FailurePolicy::Drop);
    let c = summary.counters;
    assert_eq!((c.n_operators_seen, c.n_failed, c.n_dropped), (100, 210, 0));
    assert!(!summary.is_ended_by_failure);

    let summary = run(FailurePolicy::StopCapture);
    let c = summary.counters;
    assert_eq!((c.n_operators_seen, c.n_failed), (100, 3));
    assert_eq!((c.n_dropped, c.dropped.n_stopped), (69 * 3, 69 * 3));
    assert!(summary.is_ended_by_failure);

    let summary = run(FailurePolicy::StopRun);
    let c = summary.counters;
    assert!((31..=32).contains(&c.n_operators_seen), "{c:?}");
    assert_eq!(c.n_failed, 3);
    assert_eq!(c.dropped.n_stopped, (c.n_operators_seen - 31) * 3);
    assert!(summary.is_ended_by_failure);
}

#[test]
fn a_failure_drops_what_waits_in_the_queue() {
    let operators = additions(200);
    for n_writers in 1..=4 {
        let options = SessionOptions {
            n_writers,
            ..SessionOptions::default()
        };
        let sink = Scripted::new(|_| Err(full()));
        let summary = with_session(Plan::everything(), sink, options, &operators, |tap| {
            run_step(tap, 0, &operators);
        });
        let c = summary.counters;
        assert_eq!(
            (c.n_operators_seen, c.n_selected, c.n_written),
            (200, 600, 0)
        );
        assert!((1..=n_writers as u64 * 3).contains(&c.n_failed), "{c:?}");
        assert_eq!(c.n_failed + c.dropped.n_stopped, 600);
    }
}

#[test]
fn each_kth_record_may_fail() {
    let operators = additions(90);
    for k in [1, 2, 7, 90, 91] {
        let options = SessionOptions {
            n_writers: 3,
            ..policy(FailurePolicy::Drop)
        };
        let sink = Scripted::new(move |n| {
            if (n + 1) % k == 0 {
                Err(full())
            } else {
                Ok(())
            }
        });
        let summary = with_session(
            Plan::everything(),
            sink.clone(),
            options,
            &operators,
            |tap| {
                run_step(tap, 0, &operators);
            },
        );
        let n_failed = 90 / k;
        assert_eq!(summary.counters.n_failed, n_failed * 3);
        assert_eq!(summary.counters.n_operators_written, 90 - n_failed);
        assert_eq!(sink.kept().len() as u64, 90 - n_failed);
    }
}

#[test]
fn a_panic_anywhere_in_a_sink_is_a_failure() {
    let operators = additions(5);
    for (method, purpose) in [
        ("write", Purpose::Values),
        ("write_overflow", Purpose::Overflow),
        ("write_failure", Purpose::Failures(FailureDetail::Brief)),
        ("open_model", Purpose::Values),
        ("begin_step", Purpose::Values),
        ("finish", Purpose::Values),
    ] {
        for on_failure in [FailurePolicy::StopCapture, FailurePolicy::Drop] {
            let plan = Plan {
                purpose,
                ..Plan::everything()
            };
            let sink = Arc::new(Broken(method));
            let summary = with_session(plan, sink, policy(on_failure), &operators, |tap| {
                tap.begin_step(0);
                for operator in &operators {
                    match purpose {
                        Purpose::Failures(_) => {
                            if let Some(mut probe) = tap.open(operator) {
                                probe.input(0, float(1.0));
                                probe.fail("no");
                            }
                        }
                        _ => show(
                            tap,
                            operator,
                            [float(f32::MAX), float(f32::MAX)],
                            float(f32::INFINITY),
                        ),
                    }
                }
                tap.end_step();
            });
            let error = summary.first_error.unwrap().to_string();
            assert_eq!(error, format!("the sink panicked: broken in {method}"));
            let c = summary.counters;
            let is_beside = matches!(method, "open_model" | "begin_step" | "finish");
            assert_eq!(c.n_failed == 0, is_beside, "{method} {c:?}");
            let is_ended = on_failure == FailurePolicy::StopCapture;
            assert_eq!(summary.is_ended_by_failure, is_ended);
            if is_ended && matches!(method, "open_model" | "begin_step") {
                assert_eq!((c.n_selected, c.dropped.n_stopped), (15, 15));
            }
        }
    }
}

#[test]
fn operators_that_nobody_judged_any_more_are_counted() {
    let operators = additions(40);
    for purpose in [
        Purpose::Overflow,
        Purpose::NonFinite,
        Purpose::Failures(FailureDetail::Brief),
    ] {
        let plan = Plan {
            purpose,
            ..Plan::everything()
        };
        let sink = Scripted::new(|_| Err(full()));
        let options = SessionOptions {
            queue_bytes_max: 1,
            ..policy(FailurePolicy::StopCapture)
        };
        let summary = with_session(plan, sink, options, &operators, |tap| {
            for operator in &operators {
                let Some(mut probe) = tap.open(operator) else {
                    continue;
                };
                probe.input(0, float(f32::MAX));
                probe.input(1, float(f32::MAX));
                if let Purpose::Failures(_) = purpose {
                    probe.fail("no");
                } else {
                    probe.output(0, float(f32::INFINITY));
                    probe.submit();
                }
            }
        });
        let c = summary.counters;
        let n_slots = if let Purpose::Failures(_) = purpose {
            2
        } else {
            3
        };
        assert_eq!((c.n_failed, c.n_written), (n_slots, 0));
        let n_stopped = c.dropped.n_stopped / n_slots;
        assert_eq!(
            1 + n_stopped + c.n_operators_skipped,
            40,
            "{purpose:?} {c:?}"
        );
    }
}

#[test]
fn parameters_are_lost_with_a_count() {
    let operators = additions(3);
    let plan = || Plan {
        has_parameters: true,
        ..Plan::everything()
    };
    let run_with = |plan, sink| {
        with_session(
            plan,
            sink,
            policy(FailurePolicy::StopCapture),
            &operators,
            |tap| {
                run_step(tap, 0, &operators);
                run_step(tap, 1, &operators);
            },
        )
        .counters
    };
    let good = run_with(plan(), willing() as Arc<dyn opscope_capture::Sink>);
    let bad = run_with(plan(), Scripted::new(|_| Err(full())));
    assert!(good.n_selected > 18);
    assert_eq!(
        (bad.n_offered, bad.n_selected),
        (good.n_offered, good.n_selected)
    );
    assert_eq!(bad.n_failed + bad.dropped.n_stopped, bad.n_selected);
    // Parameters of operators that were not opened any more are among them.
    let early = run_with(plan(), Arc::new(Broken("open_model")));
    assert_eq!(early.dropped.n_stopped, good.n_selected);
}

#[test]
fn an_engine_that_dies_in_mid_step_leaves_no_gap() {
    let operators = additions(4);
    let summary = with_session(
        Plan::everything(),
        willing(),
        one_writer(),
        &operators,
        |tap| {
            tap.begin_step(0);
            show(tap, &operators[0], [float(1.0), float(1.0)], float(2.0));
            let tap = &*tap;
            let operators = &operators;
            let died = std::thread::scope(|scope| {
                scope
                    .spawn(move || {
                        let mut probe = tap.open(&operators[1]).unwrap();
                        probe.input(0, bytes(3));
                        panic!("the engine breaks");
                    })
                    .join()
            });
            assert!(died.is_err());
        },
    );
    let c = summary.counters;
    assert_eq!((c.n_written, c.dropped.n_operator_failed), (3, 3));
}
