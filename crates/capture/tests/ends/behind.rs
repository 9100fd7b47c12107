//! A sink that is slower than the engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use opscope_capture::{
    CaptureSession, Plan, Purpose, SessionOptions, Sink, SinkError, WhenBehind, WrittenFiles,
};
use opscope_store::record::Record;
use opscope_tensor::{DType, Shape, Tensor};

use crate::double::{
    additions, assert_adds_up, bytes, float, model, one_writer, run_step, show, with_session,
};

/// Bytes that a record takes in the queue in addition to its tensors.
const OVERHEAD: u64 = 1024;

/// Writes only while the gate is free.
#[derive(Default)]
struct Gated(Arc<Mutex<()>>);

impl Sink for Gated {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let _gate = self.0.lock().unwrap();
        thread::yield_now();
        Ok(WrittenFiles {
            n_bytes: record.n_bytes(),
            ..WrittenFiles::default()
        })
    }
}

#[test]
fn what_finds_no_room_is_dropped_and_counted() {
    let operators = additions(100);
    let options = SessionOptions {
        queue_bytes_max: 3 * (12 + OVERHEAD),
        when_behind: WhenBehind::Drop,
        ..SessionOptions::default()
    };
    let sink = Arc::new(Gated::default());
    let gate = sink.0.clone();
    let summary = with_session(Plan::everything(), sink, options, &operators, |tap| {
        let closed = gate.lock().unwrap();
        run_step(tap, 0, &operators);
        drop(closed);
    });
    let c = summary.counters;
    // Two are with the writers and one waits; which of them does not matter.
    assert_eq!((c.n_written, c.n_operators_seen), (9, 100));
    assert_eq!((c.dropped.n_behind, c.n_dropped), (291, 291));
}

#[test]
fn operators_that_may_have_overflowed_are_skipped_instead() {
    let operators = additions(10);
    let options = SessionOptions {
        queue_bytes_max: 1,
        when_behind: WhenBehind::Drop,
        ..one_writer()
    };
    let plan = Plan {
        purpose: Purpose::Overflow,
        ..Plan::everything()
    };
    let sink = Arc::new(Gated::default());
    let gate = sink.0.clone();
    let summary = with_session(plan, sink, options, &operators, |tap| {
        let closed = gate.lock().unwrap();
        for operator in &operators {
            let large = || float(f32::MAX);
            show(tap, operator, [large(), large()], float(f32::INFINITY));
        }
        drop(closed);
    });
    let c = summary.counters;
    assert_eq!(
        (c.n_written, c.n_selected, c.n_operators_skipped),
        (3, 3, 9)
    );
}

/// Memory that says how much of its kind is alive.
struct Counted {
    bytes: Vec<u8>,
    live: Arc<AtomicU64>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let n = self.bytes.len() as u64;
        self.live.fetch_sub(n, Ordering::SeqCst);
    }
}

#[test]
fn a_slow_sink_bounds_memory() {
    const RECORD_BYTES: u64 = 10_000;
    let operators = additions(300);
    for (queue_bytes_max, n_writers) in [(1, 1), (1, 4), (50_000, 1), (50_000, 4), (9_000, 3)] {
        let live = Arc::new(AtomicU64::new(0));
        let peak = AtomicU64::new(0);
        let options = SessionOptions {
            queue_bytes_max,
            n_writers,
            ..SessionOptions::default()
        };
        let sink = Arc::new(Gated::default());
        let summary = with_session(Plan::everything(), sink, options, &operators, |tap| {
            for operator in &operators {
                let n_live = live.fetch_add(RECORD_BYTES, Ordering::SeqCst) + RECORD_BYTES;
                peak.fetch_max(n_live, Ordering::SeqCst);
                let bytes = vec![0; RECORD_BYTES as usize];
                let live = live.clone();
                let shape = Shape::new([bytes.len()]).unwrap();
                let tensor = Tensor::new(DType::U8, shape, Arc::new(Counted { bytes, live }));
                let mut probe = tap.open(operator).unwrap();
                probe.output(0, tensor.unwrap());
                probe.submit();
            }
        });
        let c = summary.counters;
        assert_eq!((c.n_written, c.dropped.n_not_shown), (300, 600));
        // The queue and the writers, and what the engine holds. A queue that is smaller than
        // a record has room for one.
        let most = queue_bytes_max.max(RECORD_BYTES) + RECORD_BYTES;
        let peak = peak.into_inner();
        assert!((RECORD_BYTES..=most).contains(&peak), "{peak} of {most}");
        assert_eq!(live.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_session_that_is_dropped_frees_an_engine_that_waits() {
    let sink = Arc::new(Gated::default());
    let gate = sink.0.clone();
    let options = SessionOptions {
        queue_bytes_max: 1,
        ..one_writer()
    };
    let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
    let watch = session.watch();
    let operators = additions(20);
    let (mut tap, _) = session.attach(&model(), &operators, &[]);
    let closed = gate.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| run_step(&mut tap, 0, &operators));
        // The engine waits for its record to be written by now, or will.
        while watch.counters().n_operators_seen < 1 {
            thread::yield_now();
        }
        let dropped = scope.spawn(move || drop(session));
        drop(closed);
        dropped.join().unwrap();
    });
    let c = watch.counters();
    assert_adds_up(c);
    assert_eq!(c.n_written + c.dropped.n_ended, c.n_selected);
}

#[test]
fn what_is_shown_after_the_end_is_counted() {
    let session =
        CaptureSession::start(Plan::everything(), Arc::new(Gated::default()), one_writer());
    let session = session.unwrap();
    let watch = session.watch();
    let operators = additions(2);
    let (tap, _) = session.attach(&model(), &operators, &[]);
    session.finish();
    show(&tap, &operators[0], [bytes(1), bytes(1)], bytes(1));
    let c = watch.counters();
    assert_adds_up(c);
    assert_eq!((c.n_selected, c.dropped.n_ended), (3, 3));
}
