//! An engine of a few lines, and sinks that misbehave.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use opscope_capture::{
    CaptureSession, Counters, GraphView, OperatorFailure, Plan, SelectedOperators, SessionOptions,
    SessionSummary, Sink, SinkError, Tap, WrittenFiles, overflow::OperatorOverflow,
};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

/// One writer, so that records reach the sink in the order of execution.
pub(crate) fn one_writer() -> SessionOptions {
    SessionOptions {
        n_writers: 1,
        ..SessionOptions::default()
    }
}

pub(crate) fn model() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("net", ""))
}

/// An addition of `x` and `w`.
pub(crate) fn addition(task_id: u32) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: "Add".into(),
        op_name: format!("op{task_id}"),
        inputs: vec!["x".into(), "w".into()],
        outputs: vec![format!("y{task_id}")],
        ..Operator::default()
    })
}

pub(crate) fn additions(n: u32) -> Vec<Arc<Operator>> {
    (0..n).map(addition).collect()
}

pub(crate) fn float(value: f32) -> Tensor {
    let bytes = value.to_le_bytes().to_vec();
    Tensor::from_vec(DType::F32, Shape::new([1]).unwrap(), bytes).unwrap()
}

pub(crate) fn bytes(n: usize) -> Tensor {
    Tensor::from_vec(DType::U8, Shape::new([n]).unwrap(), vec![7; n]).unwrap()
}

/// Runs `body` under a session and checks that the counts add up.
pub(crate) fn with_session(
    plan: Plan,
    sink: Arc<dyn Sink>,
    options: SessionOptions,
    operators: &[Arc<Operator>],
    body: impl FnOnce(&mut Tap),
) -> SessionSummary {
    let session = CaptureSession::start(plan, sink, options).unwrap();
    let graph_inputs = ["x".to_owned()];
    let (mut tap, _) = session.attach(&model(), operators, &graph_inputs);
    body(&mut tap);
    let summary = session.finish();
    assert_adds_up(summary.counters);
    summary
}

pub(crate) fn assert_adds_up(c: Counters) {
    let all = c.n_written + c.n_refused + c.n_dropped + c.n_failed;
    assert_eq!(c.n_selected, all, "{c:?}");
    assert_eq!(c.n_dropped, c.dropped.total(), "{c:?}");
}

/// Runs operators of three tensors of four bytes each, until the session wants no more.
pub(crate) fn run_step(tap: &mut Tap, step: u64, operators: &[Arc<Operator>]) {
    tap.begin_step(step);
    for operator in operators {
        if tap.is_stopped() {
            return;
        }
        show(tap, operator, [float(1.0), float(2.0)], float(3.0));
    }
    tap.end_step();
}

pub(crate) fn show(tap: &Tap, operator: &Arc<Operator>, inputs: [Tensor; 2], output: Tensor) {
    let Some(mut probe) = tap.open(operator) else {
        return;
    };
    for (i, input) in inputs.into_iter().enumerate() {
        probe.input(i, input);
    }
    probe.output(0, output);
    probe.submit();
}

/// Follows its instruction for each record, by the number of the call.
pub(crate) struct Scripted<F> {
    script: F,
    n_calls: AtomicU64,
    /// Names of the operators that were kept.
    pub(crate) kept: Mutex<Vec<String>>,
}

impl<F: Fn(u64) -> Result<(), SinkError> + Send + Sync> Scripted<F> {
    pub(crate) fn new(script: F) -> Arc<Scripted<F>> {
        Arc::new(Scripted {
            script,
            n_calls: AtomicU64::new(0),
            kept: Mutex::default(),
        })
    }

    pub(crate) fn kept(&self) -> Vec<String> {
        self.kept.lock().unwrap().clone()
    }
}

impl<F: Fn(u64) -> Result<(), SinkError> + Send + Sync> Sink for Scripted<F> {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        (self.script)(self.n_calls.fetch_add(1, Ordering::Relaxed))?;
        let name = record.operator.op_name.clone();
        self.kept.lock().unwrap().push(name);
        Ok(WrittenFiles {
            n_files: 1,
            n_bytes: record.n_bytes(),
            ..WrittenFiles::default()
        })
    }
}

/// Takes everything.
pub(crate) fn willing() -> Arc<Scripted<impl Fn(u64) -> Result<(), SinkError>>> {
    Scripted::new(|_| Ok(()))
}

pub(crate) fn full() -> SinkError {
    SinkError::Other("no space left on device".into())
}

/// Panics in one of its methods.
pub(crate) struct Broken(pub(crate) &'static str);

impl Broken {
    fn call(&self, method: &str) -> Result<WrittenFiles, SinkError> {
        assert!(self.0 != method, "broken in {method}");
        Ok(WrittenFiles::default())
    }
}

impl Sink for Broken {
    fn write(&self, _: &Record) -> Result<WrittenFiles, SinkError> {
        self.call("write")
    }

    fn write_overflow(&self, _: &Record, _: &OperatorOverflow) -> Result<WrittenFiles, SinkError> {
        self.call("write_overflow")
    }

    fn write_failure(&self, _: &Record, _: &OperatorFailure) -> Result<WrittenFiles, SinkError> {
        self.call("write_failure")
    }

    fn open_model(
        &self,
        _: &Arc<ModelId>,
        _: GraphView<'_>,
        _: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        self.call("open_model")
    }

    fn begin_step(&self, _: &ModelId, _: u64) -> Result<WrittenFiles, SinkError> {
        self.call("begin_step")
    }

    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        self.call("finish")
    }
}
