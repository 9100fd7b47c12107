//! The steps that each kind of trigger keeps.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    Plan, RingReport, Sink, SinkError, StepRemover, Steps, TriggerCause, TriggerKind, WrittenFiles,
};
use opscope_dump::AclSink;
use opscope_store::record::{ModelId, Record};

use crate::ring::run::{
    acl_sink, float, only_triggered, ring, run, run_values, step, steps_on_disk,
};

const NAN: f32 = f32::NAN;

/// Kind, step and operator of each trigger.
fn told(report: &RingReport) -> Vec<(TriggerKind, u64, &str)> {
    let operator = |operator: Option<_>| operator.map_or("", |o: &Arc<_>| name(o));
    let triggers = report.triggers.iter();
    triggers
        .map(|t| (t.cause.kind(), t.step, operator(t.operator.as_ref())))
        .collect()
}

fn name(operator: &Arc<opscope_store::record::Operator>) -> &str {
    &operator.op_name
}

/// Runs a step for each value with a ring of two, with and without the last steps at the end.
fn check(values: &[f32], triggers: &[TriggerKind], last: &[u64], triggered: &[u64]) -> RingReport {
    let dir = tempfile::tempdir().unwrap();
    let (summary, report) = run_values(dir.path(), only_triggered(ring(2, triggers)), values);
    assert_eq!(steps_on_disk(dir.path()), triggered);
    let n_steps = values.len() as u64;
    assert_eq!(report.n_steps_removed, n_steps - triggered.len() as u64);
    assert_eq!(summary.counters.n_selected, n_steps * 6);

    let dir = tempfile::tempdir().unwrap();
    let (_, report) = run_values(dir.path(), ring(2, triggers), values);
    assert_eq!(steps_on_disk(dir.path()), last);
    report
}

#[test]
fn nan_keeps_the_steps_up_to_it() {
    let kinds = [TriggerKind::NonFinite];
    let none = check(&[1.0; 6], &kinds, &[4, 5], &[]);
    assert!(none.triggers.is_empty());
    let report = check(
        &[1.0, 1.0, 1.0, NAN, 1.0, 1.0, 1.0],
        &kinds,
        &[2, 3, 5, 6],
        &[2, 3],
    );
    assert_eq!(told(&report), [(TriggerKind::NonFinite, 3, "first")]);
    let last = check(&[1.0, 1.0, 1.0, NAN], &kinds, &[2, 3], &[2, 3]);
    assert_eq!(last.n_triggers, 1);
    let two = check(
        &[NAN, 1.0, 1.0, 1.0, NAN, 1.0],
        &kinds,
        &[0, 3, 4, 5],
        &[0, 3, 4],
    );
    assert_eq!(
        told(&two),
        [
            (TriggerKind::NonFinite, 0, "first"),
            (TriggerKind::NonFinite, 4, "first")
        ]
    );
}

#[test]
fn an_overflow_is_told_from_values_that_were_infinite_before() {
    // 1e15² fits, its square does not.
    let values = [1.0, 1.0, 1.0, 1e15, 1.0, f32::INFINITY, 1.0, 1.0];
    let report = check(&values, &[TriggerKind::Overflow], &[2, 3, 6, 7], &[2, 3]);
    assert_eq!(told(&report), [(TriggerKind::Overflow, 3, "second")]);
    assert!(matches!(report.triggers[0].cause, TriggerCause::Overflow(status) if status != 0));
}

#[test]
fn only_what_is_asked_for_is_a_trigger() {
    check(&[NAN, 1e15, 1.0, 1.0, 1.0], &[], &[3, 4], &[]);
    check(
        &[NAN, 1.0, 1.0, 1.0, 1.0],
        &[TriggerKind::Overflow],
        &[3, 4],
        &[],
    );
}

#[test]
fn an_operator_that_fails_keeps_its_step() {
    let dir = tempfile::tempdir().unwrap();
    let options = only_triggered(ring(2, &TriggerKind::ALL));
    let sink = Arc::new(acl_sink(dir.path()));
    let (summary, report) = run(Plan::everything(), sink, options, 2, |_, tap, operators| {
        (0..5).for_each(|number| step(tap, operators, number, 1.0));
        tap.begin_step(5);
        let mut probe = tap.open(&operators[0]).unwrap();
        probe.output(0, float(1.0));
        probe.submit();
        tap.open(&operators[1]).unwrap().fail("no memory");
        // The run ends by this error.
        tap.fail_step("no memory, says the operator");
    });
    assert_eq!(steps_on_disk(dir.path()), [4, 5]);
    assert_eq!(told(&report), [(TriggerKind::Failure, 5, "second")]);
    assert_eq!(
        report.triggers[0].cause,
        TriggerCause::Failure("no memory".into())
    );
    // Two inputs of the first, all three tensors of the second.
    assert_eq!(summary.counters.n_dropped, 5);
}

#[test]
fn a_failure_outside_of_selected_operators_keeps_the_ring() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        steps: Steps::in_ranges(vec![0..=3]),
        ..Plan::everything()
    };
    let options = only_triggered(ring(2, &TriggerKind::ALL));
    let (_, report) = run(
        plan,
        Arc::new(acl_sink(dir.path())),
        options,
        1,
        |_, tap, operators| {
            (0..6).for_each(|number| step(tap, operators, number, 1.0));
            tap.begin_step(6);
            tap.fail_step("broken");
        },
    );
    assert_eq!(steps_on_disk(dir.path()), [2, 3]);
    assert_eq!(told(&report), [(TriggerKind::Failure, 6, "")]);
}

#[test]
fn a_signal_keeps_the_current_step_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let options = only_triggered(ring(2, &[TriggerKind::Signal]));
    let sink = Arc::new(acl_sink(dir.path()));
    let (_, report) = run(
        Plan::everything(),
        sink,
        options,
        2,
        |session, tap, operators| {
            for number in 0..8 {
                tap.begin_step(number);
                if number == 4 {
                    session.ring_flag().unwrap().store(true, Ordering::Relaxed);
                }
                step(tap, &operators[..1], number, 1.0);
            }
        },
    );
    assert_eq!(steps_on_disk(dir.path()), [3, 4]);
    assert_eq!(told(&report), [(TriggerKind::Signal, 4, "")]);
}

/// Holds the first record back until three more steps have begun.
struct Slow {
    sink: AclSink,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Sink for Slow {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        drop(is_open);
        self.sink.write(record)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        if step == 4 {
            *self.is_open.lock().unwrap() = true;
            self.opened.notify_all();
        }
        self.sink.begin_step(model, step)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.sink.step_remover()
    }
}

#[test]
fn nan_is_found_however_late_a_writer_comes() {
    for n_writers in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Slow {
            sink: acl_sink(dir.path()),
            is_open: Mutex::default(),
            opened: Condvar::new(),
        });
        let options = only_triggered(ring(1, &[TriggerKind::NonFinite]));
        run(
            Plan::everything(),
            sink,
            options,
            n_writers,
            |_, tap, operators| {
                // With one writer, step 1 is not inspected when step 4 begins.
                for (number, value) in (0..).zip([1.0, NAN, 1.0, 1.0, 1.0, 1.0, 1.0]) {
                    step(tap, operators, number, value);
                }
            },
        );
        assert_eq!(steps_on_disk(dir.path()), [1]);
    }
}

#[test]
fn records_in_memory_can_be_taken_back_too() {
    let sink = Arc::new(MemorySink::default());
    let options = ring(2, &[TriggerKind::NonFinite]);
    run(
        Plan::everything(),
        sink.clone(),
        options,
        2,
        |_, tap, operators| {
            for (number, value) in (0..).zip([1.0, NAN, 1.0, 1.0, 1.0, 1.0]) {
                step(tap, operators, number, value);
            }
        },
    );
    let steps: Vec<u64> = sink.take().iter().map(|record| record.step).collect();
    assert_eq!(steps, [0, 0, 1, 1, 4, 4, 5, 5]);
}
