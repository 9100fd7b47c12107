//! Sinks that want numbers only: each tensor is checked once, and let go of at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use opscope_capture::{
    CaptureSession, Plan, SessionOptions, Sink, SinkError, Tap, TensorSummarizer, WrittenFiles,
};
use opscope_dump::StatsSink;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor, TensorIdentity, TensorObserver};

/// How often elements were inspected, and what records came with.
#[derive(Default)]
struct Looks {
    n_looks: AtomicU64,
    has_elements: Mutex<Vec<bool>>,
    /// From the first look on.
    panics: bool,
}

impl Sink for Looks {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let has_elements = record.slots().map(|(_, _, tensor)| tensor.has_elements());
        self.has_elements.lock().unwrap().extend(has_elements);
        Ok(WrittenFiles::default())
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        Some(self)
    }
}

impl TensorSummarizer for Looks {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        tensor.keep(|tensor| {
            assert!(!self.panics, "the sink broke");
            self.n_looks.fetch_add(1, Ordering::Relaxed);
            tensor.view().unwrap().bytes.to_vec()
        });
        true
    }
}

fn operators(n: u32) -> Vec<Arc<Operator>> {
    let operator = |task_id: u32| Operator {
        task_id,
        op_type: "Add".into(),
        op_name: format!("op{task_id}"),
        inputs: vec!["v0".into(), "weight".into()],
        outputs: vec![format!("v{}", task_id + 1)],
        ..Operator::default()
    };
    (0..n).map(|task_id| Arc::new(operator(task_id))).collect()
}

fn tensor(owner: &Arc<Vec<u8>>) -> Tensor {
    let shape = Shape::new([owner.len() / 4]).unwrap();
    let tensor = Tensor::new(DType::F32, shape, owner.clone()).unwrap();
    tensor.with_identity(TensorIdentity::from_owner(owner))
}

/// An operator whose output three others read, all with the same weight, two times over.
fn run(tap: &mut Tap, operators: &[Arc<Operator>]) {
    let weight = Arc::new(vec![0; 16]);
    for step in 0..2 {
        tap.begin_step(step);
        let mut shared = Arc::new(1.5_f32.to_le_bytes().repeat(8));
        for operator in operators {
            let mut probe = tap.open(operator).unwrap();
            probe.input(0, tensor(&shared));
            probe.input(1, tensor(&weight));
            let output = Arc::new(f32::INFINITY.to_le_bytes().repeat(8));
            probe.output(0, tensor(&output));
            probe.submit();
            if operator.task_id == 0 {
                shared = output;
            } else {
                // Nothing holds it any more, so an engine could write the next result there.
                assert_eq!(Arc::strong_count(&output), 1);
            }
        }
    }
}

fn session(sink: Arc<dyn Sink>) -> (CaptureSession, Tap, Vec<Arc<Operator>>) {
    let session =
        CaptureSession::start(Plan::everything(), sink, SessionOptions::default()).unwrap();
    let operators = operators(4);
    let model = Arc::new(ModelId::default());
    let (tap, _) = session.attach(&model, &operators, &[]);
    (session, tap, operators)
}

#[test]
fn a_tensor_that_several_operators_share_is_looked_at_once() {
    let sink = Arc::new(Looks::default());
    let (session, mut tap, operators) = session(sink.clone());
    run(&mut tap, &operators);
    let summary = session.finish();
    // The weight once; in each step the model's input and four outputs.
    assert_eq!(sink.n_looks.load(Ordering::Relaxed), 1 + 2 * 5);
    assert_eq!(*sink.has_elements.lock().unwrap(), [false; 24]);
    assert_eq!(summary.counters.n_written, 24);
    assert_eq!(summary.counters.n_bytes_selected, 2 * 4 * (32 + 16 + 32));
    let first = summary.first_non_finite.unwrap();
    assert_eq!((first.task_id, first.counts.n_pos_inf), (0, 8));
}

#[test]
fn numbers_of_what_is_gone_arrive() {
    let sink = Arc::new(StatsSink::default());
    let (session, mut tap, operators) = session(sink.clone());
    run(&mut tap, &operators);
    session.finish();
    let rows = sink.take().unwrap();
    assert_eq!(rows.len(), 24);
    let sums: Vec<f64> = rows[..6].iter().map(|row| row.stats.unwrap().sum).collect();
    let inf = f64::INFINITY;
    assert_eq!(sums, [12.0, 0.0, inf, inf, 0.0, inf]);
}

#[test]
fn a_look_that_panics_keeps_the_elements() {
    let sink = Arc::new(Looks {
        panics: true,
        ..Looks::default()
    });
    let (session, mut tap, operators) = session(sink.clone());
    tap.begin_step(0);
    let mut probe = tap.open(&operators[0]).unwrap();
    probe.input(0, tensor(&Arc::new(vec![0; 8])));
    probe.submit();
    let counters = session.finish().counters;
    assert_eq!(*sink.has_elements.lock().unwrap(), [true]);
    assert_eq!((counters.n_written, counters.n_dropped), (1, 2));
}

/// A queue of which `n_bytes` are a large part.
fn small_queue(sink: Arc<dyn Sink>, n_bytes: usize) -> (CaptureSession, Tap, Vec<Arc<Operator>>) {
    let options = SessionOptions {
        queue_bytes_max: 2 * n_bytes as u64,
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
    let operators = operators(1);
    let (tap, _) = session.attach(&Arc::new(ModelId::default()), &operators, &[]);
    (session, tap, operators)
}

#[test]
fn a_large_part_of_the_queue_is_looked_at_at_once() {
    const N_BYTES: usize = 1 << 20;
    let (session, mut tap, operators) = small_queue(Arc::new(StatsSink::default()), N_BYTES);
    tap.begin_step(0);
    let mut probe = tap.open(&operators[0]).unwrap();
    for i in 0..2 {
        let input = Arc::new(vec![0; N_BYTES]);
        probe.input(i, tensor(&input));
        // The operator may write its output there.
        assert_eq!(Arc::strong_count(&input), 1);
    }
    probe.submit();
    assert_eq!(session.finish().counters.n_written, 2);
}

/// Takes records as they are.
struct Whole;

impl Sink for Whole {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        assert!(record.slots().all(|(_, _, tensor)| tensor.has_elements()));
        Ok(WrittenFiles::default())
    }
}

#[test]
fn the_model_goes_on_when_a_record_beyond_the_queue_is_written() {
    const N_BYTES: usize = 1 << 20;
    let (session, mut tap, operators) = small_queue(Arc::new(Whole), N_BYTES / 4);
    for step in 0..20 {
        tap.begin_step(step);
        let mut probe = tap.open(&operators[0]).unwrap();
        let output = Arc::new(vec![0; N_BYTES]);
        probe.output(0, tensor(&output));
        probe.submit();
        assert_eq!(Arc::strong_count(&output), 1);
    }
    assert_eq!(session.finish().counters.n_written, 20);
}
