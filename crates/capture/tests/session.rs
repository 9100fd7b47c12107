//! A session under good and bad sinks: every tensor is accounted for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, FailurePolicy, ModelSelection, OperatorSelection, Plan, SessionOptions,
    SessionSummary, Sink, SinkError, SlotSides, Steps, WrittenFiles,
};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

fn operator(task_id: u32) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: "Add".into(),
        op_name: format!("op{task_id}"),
        inputs: vec!["a".into(), String::new(), "b".into()],
        outputs: vec!["c".into()],
        ..Operator::default()
    })
}

fn model() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("m", "g"))
}

fn tensor(value: f32) -> Tensor {
    Tensor::from_vec(
        DType::F32,
        Shape::new([1]).unwrap(),
        value.to_le_bytes().to_vec(),
    )
    .unwrap()
}

/// Runs `n_operators` operators with two inputs and one output each, over `n_steps` steps.
fn run(
    plan: Plan,
    sink: Arc<dyn Sink>,
    options: SessionOptions,
    n_operators: u32,
    n_steps: u64,
) -> SessionSummary {
    let session = CaptureSession::start(plan, sink, options).unwrap();
    let operators: Vec<_> = (0..n_operators).map(operator).collect();
    let (mut tap, _) = session.attach(&model(), &operators, &[]);
    for step in 0..n_steps {
        tap.begin_step(step);
        for operator in &operators {
            let Some(mut probe) = tap.open(operator) else {
                continue;
            };
            probe.input(0, tensor(operator.task_id as f32));
            probe.input(2, tensor(1.0));
            probe.output(0, tensor(operator.task_id as f32 + 1.0));
            probe.submit();
        }
    }
    let summary = session.finish();
    let c = summary.counters;
    assert_eq!(
        c.n_selected,
        c.n_written + c.n_dropped + c.n_failed,
        "{c:?}"
    );
    assert_eq!(c.n_steps, n_steps);
    assert_eq!(
        c.n_operators_seen,
        u64::from(n_operators) * c.n_steps_active
    );
    assert_eq!(c.n_offered, c.n_operators_seen * 3);
    summary
}

#[test]
fn everything_arrives_in_order_of_step_and_task() {
    let sink = Arc::new(MemorySink::default());
    let summary = run(
        Plan::everything(),
        sink.clone(),
        SessionOptions::default(),
        20,
        3,
    );
    assert_eq!(summary.counters.n_written, 180);
    let records = sink.take();
    let keys: Vec<_> = records
        .iter()
        .map(|r| (r.step, r.operator.task_id))
        .collect();
    let expected: Vec<_> = (0..3).flat_map(|s| (0..20).map(move |t| (s, t))).collect();
    assert_eq!(keys, expected);
    assert_eq!(
        records[7]
            .inputs
            .iter()
            .map(|(i, _)| *i)
            .collect::<Vec<_>>(),
        [0, 2]
    );
}

#[test]
fn the_plan_decides() {
    let names = OperatorSelection::named(["op3", "op5"]);
    let plan = Plan {
        models: ModelSelection::Named(vec![("m".into(), names)]),
        sides: SlotSides::Inputs,
        steps: Steps::in_ranges(vec![1..=1]),
        ..Plan::everything()
    };
    let sink = Arc::new(MemorySink::default());
    let summary = run(plan, sink.clone(), SessionOptions::default(), 8, 3);
    assert_eq!(
        (summary.counters.n_selected, summary.counters.n_written),
        (4, 4)
    );
    assert_eq!(summary.counters.n_steps_active, 1);
    let records = sink.take();
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|r| r.step == 1 && r.outputs.is_empty() && r.inputs.len() == 2)
    );
}

/// Refuses every third record and panics at every fifth.
#[derive(Default)]
struct BadSink(AtomicU64);

impl Sink for BadSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            n if n % 3 == 0 => Err(SinkError::Other("full".into())),
            n if n % 5 == 0 => panic!("broken"),
            _ => Ok(WrittenFiles {
                n_files: 1,
                n_bytes: record.n_bytes(),
                ..WrittenFiles::default()
            }),
        }
    }
}

#[test]
fn a_sink_that_fails_and_panics_loses_nothing_uncounted() {
    let summary = run(
        Plan::everything(),
        Arc::new(BadSink::default()),
        SessionOptions {
            on_failure: FailurePolicy::Drop,
            ..SessionOptions::default()
        },
        60,
        1,
    );
    let n_bad = (0..60).filter(|n| n % 3 == 0 || n % 5 == 0).count() as u64;
    assert_eq!(summary.counters.n_failed, n_bad * 3);
    assert_eq!(summary.counters.n_operators_written, 60 - n_bad);
    assert!(summary.first_error.is_some());
}

/// Takes one record at a time and remembers the most that were alive at once.
struct SlowSink {
    gate: Mutex<()>,
}

impl Sink for SlowSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let _gate = self.gate.lock().unwrap();
        thread::yield_now();
        Ok(WrittenFiles {
            n_files: 0,
            n_bytes: record.n_bytes(),
            ..WrittenFiles::default()
        })
    }
}

#[test]
fn a_queue_smaller_than_one_record_still_moves() {
    let options = SessionOptions {
        queue_bytes_max: 1,
        n_writers: 3,
        ..SessionOptions::default()
    };
    let sink = Arc::new(SlowSink {
        gate: Mutex::new(()),
    });
    let summary = run(Plan::everything(), sink, options, 200, 2);
    assert_eq!(summary.counters.n_written, 1200);
}

#[test]
fn an_operator_that_fails_counts_as_dropped() {
    let sink = Arc::new(MemorySink::default());
    let session =
        CaptureSession::start(Plan::everything(), sink.clone(), SessionOptions::default()).unwrap();
    let operators = [operator(0), operator(1)];
    let (tap, _) = session.attach(&model(), &operators, &[]);
    drop(tap.open(&operators[0]));
    let mut probe = tap.open(&operators[1]).unwrap();
    probe.output(0, tensor(1.0));
    probe.submit();
    let c = session.finish().counters;
    assert_eq!((c.n_selected, c.n_dropped, c.n_written), (6, 5, 1));
    assert_eq!(sink.take().len(), 1);
}

#[test]
fn the_first_non_finite_operator_is_found_whatever_the_order_of_writing() {
    let sink = Arc::new(MemorySink::default());
    let session = CaptureSession::start(
        Plan::everything(),
        sink,
        SessionOptions {
            n_writers: 4,
            ..SessionOptions::default()
        },
    )
    .unwrap();
    let operators: Vec<_> = (0..50).map(operator).collect();
    let (tap, _) = session.attach(&model(), &operators, &[]);
    for operator in &operators {
        let mut probe = tap.open(operator).unwrap();
        let value = if operator.task_id >= 17 {
            f32::NAN
        } else {
            1.0
        };
        probe.output(0, tensor(value));
        probe.submit();
    }
    let first = session.finish().first_non_finite.unwrap();
    assert_eq!((first.op_name.as_str(), first.counts.n_nan), ("op17", 1));
}
