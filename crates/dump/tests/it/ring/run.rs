//! A model of two operators under a ring of steps.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{
    CaptureSession, Plan, RingOptions, RingReport, SessionOptions, SessionSummary, Sink, Tap,
    TriggerKind, Triggers,
};
use opscope_dump::AclSink;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::dump;
use opscope_store::record::{ModelId, Operator};
use opscope_tensor::{DType, Shape, Tensor};

/// The directory of steps below the one that is dumped to.
pub(crate) const MODEL_DIR: &str = "20240102030405/0/net/1";

pub(crate) fn model() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("net", "g"))
}

/// Two operators in a row.
pub(crate) fn operators() -> Vec<Arc<Operator>> {
    let operator = |task_id, name: &str, input: &str, output: &str| {
        Arc::new(Operator {
            task_id,
            op_type: "Mul".into(),
            op_name: name.into(),
            inputs: vec![input.into(), input.into()],
            outputs: vec![output.into()],
            ..Operator::default()
        })
    };
    vec![
        operator(0, "first", "x", "h"),
        operator(1, "second", "h", "y"),
    ]
}

pub(crate) fn float(value: f32) -> Tensor {
    let bytes = value.to_le_bytes().to_vec();
    Tensor::from_vec(DType::F32, Shape::new([1]).unwrap(), bytes).unwrap()
}

pub(crate) fn ring(n_steps: usize, triggers: &[TriggerKind]) -> RingOptions {
    RingOptions {
        n_steps: NonZeroUsize::new(n_steps).unwrap(),
        triggers: triggers.iter().copied().collect::<Triggers>(),
        keeps_only_triggered: false,
    }
}

pub(crate) fn only_triggered(options: RingOptions) -> RingOptions {
    RingOptions {
        keeps_only_triggered: true,
        ..options
    }
}

pub(crate) fn acl_sink(dir: &Path) -> AclSink {
    AclSink::create(
        dir,
        ["20240102030405".to_owned()],
        PermissionModes::default(),
    )
    .unwrap()
}

/// Runs one step: both operators square what they read.
pub(crate) fn step(tap: &mut Tap, operators: &[Arc<Operator>], number: u64, x: f32) {
    tap.begin_step(number);
    let mut value = x;
    for operator in operators {
        if let Some(mut probe) = tap.open(operator) {
            probe.input(0, float(value));
            probe.input(1, float(value));
            probe.output(0, float(value * value));
            probe.submit();
        }
        value *= value;
    }
    tap.end_step();
}

/// A session over `sink` in which `work` runs the model.
pub(crate) fn run(
    plan: Plan,
    sink: Arc<dyn Sink>,
    ring: RingOptions,
    n_writers: usize,
    work: impl FnOnce(&CaptureSession, &mut Tap, &[Arc<Operator>]),
) -> (SessionSummary, RingReport) {
    let options = SessionOptions {
        n_writers,
        ring: Some(ring),
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(plan, sink, options).unwrap();
    let operators = operators();
    let (mut tap, _) = session.attach(&model(), &operators, &[]);
    work(&session, &mut tap, &operators);
    let mut summary = session.finish();
    let report = summary.ring.take().unwrap();
    if let Some(error) = summary.first_error.as_ref().or(report.first_error.as_ref()) {
        panic!("{error}");
    }
    let c = summary.counters;
    assert_eq!(c.n_selected, c.n_written + c.n_dropped, "{c:?}");
    (summary, report)
}

/// Runs a step for each of `values` into `dir`; checks what counters say against the disk.
pub(crate) fn run_values(
    dir: &Path,
    ring: RingOptions,
    values: &[f32],
) -> (SessionSummary, RingReport) {
    let result = run(
        Plan::everything(),
        Arc::new(acl_sink(dir)),
        ring,
        2,
        |_, tap, operators| {
            for (number, &value) in (0..).zip(values) {
                step(tap, operators, number, value);
            }
        },
    );
    check_counters(dir, &result);
    result
}

/// Files and bytes on disk are those that were written and not removed; steps are those that are
/// told.
pub(crate) fn check_counters(dir: &Path, (summary, report): &(SessionSummary, RingReport)) {
    let c = summary.counters;
    let entries = dump::list(dir).entries;
    assert_eq!(c.n_files - c.n_files_removed, entries.len() as u64);
    let n_bytes: u64 = entries.iter().map(|entry| entry.n_bytes).sum();
    assert_eq!(c.n_bytes_written - c.n_bytes_removed, n_bytes);
    let kept = report.kept.iter().flat_map(|kept| &kept.steps);
    let kept: BTreeSet<u64> = kept.flat_map(|range| range.clone()).collect();
    assert_eq!(steps_on_disk(dir), kept.into_iter().collect::<Vec<_>>());
}

/// The numbers of the step directories that are there.
pub(crate) fn steps_on_disk(dir: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(dir.join(MODEL_DIR)) else {
        return Vec::new();
    };
    let number = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let mut steps: Vec<u64> = entries.map(|entry| number(entry.unwrap().path())).collect();
    steps.sort_unstable();
    steps
}
