//! Switching a session, and giving it another plan, while models run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, FailureDetail, GraphView, ModelSelection, OperatorSelection, Plan, PlanRefusal,
    Purpose, SelectedOperators, SelectedSlots, SessionOptions, Sink, SinkError, SlotSides, Steps,
    Tap, WrittenFiles,
};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

const N_OPERATORS: u32 = 4;

fn operators() -> Vec<Arc<Operator>> {
    let operator = |task_id| Operator {
        task_id,
        op_type: "Add".into(),
        op_name: format!("op{task_id}"),
        inputs: vec!["a".into()],
        outputs: vec!["c".into()],
        ..Operator::default()
    };
    (0..N_OPERATORS).map(operator).map(Arc::new).collect()
}

fn model() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("m", ""))
}

fn tensor() -> Tensor {
    Tensor::from_vec(DType::F32, Shape::new([1]).unwrap(), vec![0; 4]).unwrap()
}

fn start(plan: Plan, sink: Arc<dyn Sink>) -> (CaptureSession, Tap, Vec<Arc<Operator>>) {
    let session = CaptureSession::start(plan, sink, SessionOptions::default()).unwrap();
    let operators = operators();
    let (tap, _) = session.attach(&model(), &operators, &[]);
    (session, tap, operators)
}

/// One step as an engine runs it; `between` is called before each operator.
fn run_step(tap: &mut Tap, operators: &[Arc<Operator>], step: u64, mut between: impl FnMut(u32)) {
    tap.begin_step(step);
    let tap = Some(&*tap).filter(|tap| tap.is_active());
    for operator in operators {
        between(operator.task_id);
        if let Some(mut probe) = tap.and_then(|tap| tap.open(operator)) {
            probe.input(0, tensor());
            probe.output(0, tensor());
            probe.submit();
        }
    }
    if let Some(tap) = tap {
        tap.end_step();
    }
}

/// Step, task, number of tensors.
fn kept(sink: &MemorySink) -> Vec<(u64, u32, u64)> {
    let records = sink.take();
    let key = |r: &Record| (r.step, r.operator.task_id, r.n_slots());
    records.iter().map(key).collect()
}

fn only(names: &[&str], sides: SlotSides) -> Plan {
    Plan {
        models: ModelSelection::Every(OperatorSelection::named(names.iter().copied())),
        sides,
        ..Plan::everything()
    }
}

#[test]
fn steps_while_the_dump_is_off_leave_no_trace() {
    let sink = Arc::new(MemorySink::default());
    let (session, mut tap, operators) = start(only(&["op1"], SlotSides::Both), sink.clone());
    for step in 0..10 {
        session.set_enabled(!(3..7).contains(&step));
        assert_eq!(session.is_enabled(), !(3..7).contains(&step));
        run_step(&mut tap, &operators, step, |_| {});
        assert_eq!(tap.is_enabled(), session.is_enabled());
    }
    let c = session.finish().counters;
    let steps: Vec<u64> = kept(&sink).into_iter().map(|(step, ..)| step).collect();
    assert_eq!(steps, [0, 1, 2, 7, 8, 9]);
    assert_eq!((c.n_steps, c.n_steps_active), (10, 6));
    assert_eq!(c.n_operators_seen, 6 * u64::from(N_OPERATORS));
    assert_eq!((c.n_offered, c.n_selected, c.n_written), (48, 12, 12));
}

#[test]
fn off_from_the_start_and_operators_that_are_shown_all_the_same() {
    let sink = Arc::new(MemorySink::default());
    let session =
        CaptureSession::start(Plan::everything(), sink.clone(), SessionOptions::default());
    let session = session.unwrap();
    assert!(!session.control().toggle());
    let operators = operators();
    let (mut tap, _) = session.attach(&model(), &operators, &[]);
    assert!(!tap.is_active() && tap.open(&operators[0]).is_none());
    tap.begin_step(0);
    assert!(tap.open(&operators[0]).is_none());
    tap.end_step();
    let c = session.finish().counters;
    assert_eq!(
        (c.n_steps, c.n_steps_active, c.n_operators_seen, c.n_offered),
        (1, 0, 0, 0)
    );
    assert!(sink.take().is_empty());
}

#[test]
fn steps_that_the_plan_leaves_out_are_as_cheap() {
    let plan = Plan {
        steps: Steps::in_ranges(vec![2..=3]),
        ..Plan::everything()
    };
    let (session, mut tap, operators) = start(plan, Arc::new(MemorySink::default()));
    let mut active = Vec::new();
    for step in 0..6 {
        run_step(&mut tap, &operators, step, |_| {});
        assert!(tap.is_enabled());
        active.extend(tap.is_active().then_some(step));
    }
    assert_eq!(active, [2, 3]);
    assert_eq!(session.finish().counters.n_steps_active, 2);
}

#[test]
fn a_change_during_a_step_waits_for_the_next_one() {
    let sink = Arc::new(MemorySink::default());
    let (session, mut tap, operators) = start(Plan::everything(), sink.clone());
    let control = session.control();
    for step in 0..4 {
        run_step(&mut tap, &operators, step, |task_id| {
            if (step, task_id) == (0, 2) {
                control
                    .replace_plan(only(&["op3"], SlotSides::Inputs))
                    .unwrap();
            }
            if (step, task_id) == (1, 2) {
                control.set_enabled(false);
            }
            if (step, task_id) == (2, 0) {
                control
                    .change(Some(true), Some(Plan::everything()))
                    .unwrap();
            }
        });
    }
    session.finish();
    let all = |step| (0..N_OPERATORS).map(move |task_id| (step, task_id, 2));
    let expected: Vec<_> = all(0).chain([(1, 3, 1)]).chain(all(3)).collect();
    assert_eq!(kept(&sink), expected);
}

/// Two plans that share no operator are swapped from another thread as fast as that goes.
#[test]
fn each_step_is_by_one_plan() {
    let sink = Arc::new(MemorySink::default());
    let pairs = [["op0", "op1"], ["op2", "op3"]];
    let (session, mut tap, operators) = start(only(&pairs[0], SlotSides::Both), sink.clone());
    let control = session.control();
    let (is_done, n_swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                control
                    .replace_plan(only(&pairs[i % 2], SlotSides::Both))
                    .unwrap();
                n_swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        for step in 0..200 {
            // Some change has come between any two steps, and may come inside any.
            let before = n_swaps.load(Ordering::Relaxed);
            run_step(&mut tap, &operators, step, |_| thread::yield_now());
            while n_swaps.load(Ordering::Relaxed) == before {
                thread::yield_now();
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(session.finish().counters.n_written, 200 * 4);
    let kept = kept(&sink);
    for step in kept.chunks(2) {
        assert_eq!(step[0].0, step[1].0);
        let tasks = [step[0].1, step[1].1];
        assert!([[0, 1], [2, 3]].contains(&tasks), "{tasks:?}");
    }
    assert!(kept.iter().any(|(_, task_id, _)| *task_id == 0));
    assert!(kept.iter().any(|(_, task_id, _)| *task_id == 2));
}

#[test]
fn every_tap_follows_at_its_own_next_step() {
    let sink = Arc::new(MemorySink::default());
    let (session, mut first, operators) = start(Plan::everything(), sink);
    let (mut second, _) = session.attach(&model(), &operators, &[]);
    first.begin_step(0);
    second.begin_step(0);
    session.set_enabled(false);
    first.begin_step(1);
    assert!(!first.is_active() && second.is_active());
    second.begin_step(1);
    assert!(!second.is_active());
}

#[test]
fn another_tap_has_a_step_of_its_own() {
    let sink = Arc::new(MemorySink::default());
    let (session, mut first, operators) = start(Plan::everything(), sink.clone());
    let mut second = first.another();
    first.begin_step(0);
    run_step(&mut second, &operators, 1, |_| {});
    let mut probe = first.open(&operators[0]).unwrap();
    probe.output(0, tensor());
    probe.submit();
    let mut third = second.another();
    session.set_enabled(false);
    third.begin_step(2);
    assert!(first.is_active() && !third.is_active());
    let summary = session.finish();
    assert_eq!(summary.counters.n_steps, 3);
    let mut steps: Vec<u64> = kept(&sink).into_iter().map(|(step, ..)| step).collect();
    steps.sort_unstable();
    assert_eq!(steps, [0, 1, 1, 1, 1]);
}

#[test]
fn a_value_in_several_slots() {
    let sink = Arc::new(MemorySink::default());
    let (session, mut tap, operators) = start(only(&["op1"], SlotSides::Both), sink.clone());
    tap.begin_step(0);
    for operator in &operators {
        let wide = Arc::new(Operator {
            outputs: vec!["c.indices".into(), "c.values".into()],
            ..Operator::clone(operator)
        });
        let adapt = |kept: &Arc<SelectedSlots>| {
            let outputs = kept.outputs.iter().flat_map(|_| [0, 1]).collect();
            Arc::new(SelectedSlots {
                outputs,
                ..SelectedSlots::clone(kept)
            })
        };
        if let Some(mut probe) = tap.open_as(&wide, adapt) {
            probe.input(0, tensor());
            probe.output(0, tensor());
            probe.output(1, tensor());
            probe.submit();
        }
    }
    let summary = session.finish();
    assert_eq!(kept(&sink), [(0, 1, 3)]);
    assert_eq!(
        (summary.counters.n_selected, summary.counters.n_written),
        (3, 3)
    );
}

#[test]
fn what_a_plan_may_not_change() {
    let limited = Plan {
        purpose: Purpose::Overflow,
        n_overflows_max: Some(3),
        ..Plan::everything()
    };
    let (session, mut tap, _) = start(limited.clone(), Arc::new(MemorySink::default()));
    let failures = Purpose::Failures(FailureDetail::Brief);
    let check = |plan: Plan, text: &str| {
        let refused: PlanRefusal = session.replace_plan(plan).unwrap_err();
        assert_eq!(refused.to_string(), text);
    };
    check(
        Plan {
            purpose: failures,
            ..limited.clone()
        },
        "the plan is for operators that fail, expected one for operators that overflow as at the start",
    );
    check(
        Plan {
            n_overflows_max: None,
            ..limited.clone()
        },
        "the plan keeps all operators that overflow, expected at most 3 as at the start",
    );
    // A refused plan takes nothing else with it.
    let both = session
        .control()
        .change(Some(false), Some(Plan::everything()));
    assert!(both.is_err() && session.is_enabled());
    tap.begin_step(0);
    assert_eq!(**tap.plan(), limited);
}

/// Remembers which operators reached the sink.
#[derive(Default)]
struct Listener(Mutex<Vec<Vec<u32>>>);

impl Sink for Listener {
    fn write(&self, _record: &Record) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    fn open_model(
        &self,
        _model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        assert_eq!(graph.operators.len(), N_OPERATORS as usize);
        let mut tasks: Vec<u32> = selected.kept.keys().copied().collect();
        tasks.sort_unstable();
        self.0.lock().unwrap().push(tasks);
        Ok(WrittenFiles {
            n_files: 1,
            ..WrittenFiles::default()
        })
    }
}

#[test]
fn the_sink_hears_of_the_model_again_when_the_plan_changes() {
    let sink = Arc::new(Listener::default());
    let (session, mut tap, _) = start(Plan::nothing(), sink.clone());
    let plans = [
        Plan::nothing(),
        only(&["op1"], SlotSides::Both),
        only(&["op0", "nope"], SlotSides::Both),
    ];
    for (step, plan) in (0..).zip(plans) {
        session.replace_plan(plan).unwrap();
        session.set_enabled(step != 1);
        tap.begin_step(step);
    }
    assert_eq!(tap.selected().unmatched, ["nope"]);
    tap.begin_step(3);
    assert_eq!(*sink.0.lock().unwrap(), [vec![1], vec![0]]);
    // Files that take the place of earlier ones are counted once.
    assert_eq!(session.finish().counters.n_files, 1);
}
