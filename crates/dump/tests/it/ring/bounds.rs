//! How much is on disk while a model runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opscope_capture::{
    BatchPreparer, CaptureSession, N_STEPS_BEHIND_MAX, Plan, SessionOptions, Sink, SinkError,
    StepRemover, TriggerKind, WhenBehind, WrittenFiles,
};
use opscope_dump::{AclSink, StatsSink};
use opscope_store::record::{ModelId, Record};

use crate::ring::run::{
    acl_sink, check_counters, model, only_triggered, operators, ring, run, run_values, step,
    steps_on_disk,
};

/// Counts step directories whenever something is written.
struct Counting {
    sink: AclSink,
    dir: PathBuf,
    most: AtomicUsize,
}

impl Counting {
    fn look(&self) {
        let n = steps_on_disk(&self.dir).len();
        self.most.fetch_max(n, Ordering::Relaxed);
    }
}

impl Sink for Counting {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        // Some records take much longer than others.
        for _ in 0..record.step % 7 {
            thread::yield_now();
        }
        let written = self.sink.write(record);
        self.look();
        written
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.look();
        self.sink.begin_step(model, step)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.sink.step_remover()
    }
}

#[test]
fn directories_are_few_at_every_moment() {
    for (n_steps, n_writers) in [(1, 1), (3, 1), (3, 4)] {
        let dir = tempfile::tempdir().unwrap();
        let sink = Arc::new(Counting {
            sink: acl_sink(dir.path()),
            dir: dir.path().to_owned(),
            most: AtomicUsize::new(0),
        });
        let options = ring(n_steps, &TriggerKind::ALL);
        let result = run(
            Plan::everything(),
            sink.clone(),
            options,
            n_writers,
            |_, tap, operators| {
                (0..200).for_each(|number| step(tap, operators, number, 1.0));
            },
        );
        let most = sink.most.load(Ordering::Relaxed);
        assert!(
            (n_steps..=n_steps + N_STEPS_BEHIND_MAX).contains(&most),
            "{most}"
        );
        assert_eq!(steps_on_disk(dir.path()).len(), n_steps);
        assert_eq!(result.1.n_steps_removed, 200 - n_steps as u64);
        check_counters(dir.path(), &result);
    }
}

#[test]
fn nothing_is_left_without_a_trigger() {
    let dir = tempfile::tempdir().unwrap();
    let options = only_triggered(ring(3, &TriggerKind::ALL));
    let (summary, report) = run_values(dir.path(), options, &[1.0; 10]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!((report.n_steps_removed, report.kept.len()), (10, 0));
    let c = summary.counters;
    assert_eq!((c.n_written, c.n_files, c.n_files_removed), (60, 20, 20));
}

#[test]
fn each_model_has_a_ring_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::new(acl_sink(dir.path()));
    let options = ring(2, &TriggerKind::ALL);
    let (_, report) = run(
        Plan::everything(),
        sink,
        options,
        2,
        |session, tap, operators| {
            let other = ModelId {
                load: Some(2),
                ..ModelId::clone(&model())
            };
            let (mut second, _) = session.attach(&Arc::new(other), operators, &[]);
            for number in 0..6 {
                step(tap, operators, number, 1.0);
                let value = if number == 1 { f32::NAN } else { 1.0 };
                step(&mut second, operators, number, value);
            }
        },
    );
    let kept: Vec<_> = report
        .kept
        .iter()
        .map(|kept| (kept.model.load, &*kept.steps))
        .collect();
    assert_eq!(
        kept,
        [(Some(1), &[4..=5][..]), (Some(2), &[0..=1, 4..=5][..])]
    );
    assert_eq!(steps_on_disk(dir.path()), [4, 5]);
}

/// Operators that run on their own have no directory for a step.
#[test]
fn files_of_single_operators_go_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::new(acl_sink(dir.path()));
    let options = SessionOptions {
        ring: Some(ring(2, &[])),
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(Plan::everything(), sink.clone(), options).unwrap();
    let operators = operators();
    let (mut tap, _) = session.attach(&Arc::new(ModelId::default()), &operators, &[]);
    for number in 0..5 {
        step(&mut tap, &operators, number, 1.0);
    }
    let summary = session.finish();
    let c = summary.counters;
    assert_eq!((c.n_files, c.n_files_removed), (10, 6));
    let dir = sink.tree().root().join("0");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 4);
}

#[test]
fn a_sink_that_cannot_take_steps_back_is_refused() {
    let options = SessionOptions {
        ring: Some(ring(1, &[])),
        ..SessionOptions::default()
    };
    let result = CaptureSession::start(Plan::everything(), Arc::new(StatsSink::default()), options);
    let error = result.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("cannot take steps back"),
        "{error}"
    );
}

/// A disk that stands still while the lock is held.
struct Standing {
    sink: AclSink,
    turn: Arc<Mutex<()>>,
}

impl Sink for Standing {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let _turn = self.turn.lock().unwrap();
        self.sink.write(record)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.sink.begin_step(model, step)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.sink.step_remover()
    }
}

#[test]
fn a_model_that_never_waits_does_not_wait_for_steps_either() {
    let dir = tempfile::tempdir().unwrap();
    let turn = Arc::new(Mutex::new(()));
    let sink = Arc::new(Standing {
        sink: acl_sink(dir.path()),
        turn: turn.clone(),
    });
    let options = SessionOptions {
        ring: Some(ring(1, &TriggerKind::ALL)),
        when_behind: WhenBehind::Drop,
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
    let operators = operators();
    let (mut tap, _) = session.attach(&model(), &operators, &[]);
    let held = turn.lock().unwrap();
    let n_steps = 10 * N_STEPS_BEHIND_MAX as u64;
    (0..n_steps).for_each(|number| step(&mut tap, &operators, number, 1.0));
    drop(held);
    drop(tap);
    let summary = session.finish();
    assert_eq!(steps_on_disk(dir.path()), [n_steps - 1]);
    assert_eq!(summary.ring.unwrap().n_steps_removed, n_steps - 1);
}

/// A sink that likes to see many records together.
struct Gathering(AclSink);

impl BatchPreparer for Gathering {
    fn batch_size(&self) -> usize {
        1000
    }

    fn prepare_batch(&self, _: &[&Record]) {}
}

impl Sink for Gathering {
    fn batch_preparer(&self) -> Option<&dyn BatchPreparer> {
        Some(self)
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        self.0.write(record)
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        self.0.begin_step(model, step)
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.0.step_remover()
    }
}

#[test]
fn a_model_that_waits_for_steps_does_not_wait_for_more_records() {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::new(Gathering(acl_sink(dir.path())));
    let n_steps = 5 * N_STEPS_BEHIND_MAX as u64;
    let options = ring(1, &TriggerKind::ALL);
    run(Plan::everything(), sink, options, 2, |_, tap, operators| {
        (0..n_steps).for_each(|number| step(tap, operators, number, 1.0));
    });
    assert_eq!(steps_on_disk(dir.path()), [n_steps - 1]);
}
