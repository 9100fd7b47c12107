//! Runs that fail or stop, and several of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use opscope_capture::{
    FailureDetail, ModelSelection, OperatorSelection, Purpose, Sink, SinkError, SlotSides,
    TensorSummarizer, WrittenFiles,
};
use opscope_store::record::SlotSide;
use opscope_tensor::TensorObserver;

use super::build::*;
use super::*;

/// A graph in which a value is picked; a number beyond the end makes it fail.
fn picking() -> ModelProto {
    let nodes = [
        node("Relu", &["x"], &["r"]),
        node("Gather", &["r", "i"], &["g"]).called(""),
        node("Neg", &["g"], &["y"]),
    ];
    model(graph(
        &[value("x", FLOAT, 1), value("i", INT64, 1)],
        &[],
        &nodes,
        &[value("y", FLOAT, 1)],
    ))
}

fn failures() -> Plan {
    Plan {
        purpose: Purpose::Failures(FailureDetail::Normal),
        ..Plan::everything()
    }
}

#[test]
fn a_failing_operator_is_named_and_the_next_run_goes_well() {
    let Some(engine) = engine() else { return };
    let mut loaded = load(&engine, &picking());
    let (good, bad) = (numbers(&[1], &[1]), numbers(&[1], &[9]));
    let x = tensor(&[2], &[1.0, 2.0]);
    for _ in 0..2 {
        let captured = capture(&mut *loaded, &[x.clone(), bad.clone()]);
        let error = captured.outputs.unwrap_err().to_string();
        assert!(
            error.starts_with("operator `g` of type `Gather` failed: "),
            "{error}"
        );
        assert_eq!(names(&captured.records), ["Relu_r"]);
        assert_eq!(captured.counters.dropped.n_operator_failed, 3);
        let error = loaded
            .run(&[x.clone(), bad.clone()], None)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("operator `g` of type `Gather` failed: "),
            "{error}"
        );
        let captured = capture(&mut *loaded, &[x.clone(), good.clone()]);
        assert_eq!(f32s(&captured.outputs.unwrap()[0]), [-2.0]);
        assert_eq!(names(&captured.records), ["Relu_r", "g", "Neg_y"]);
    }
}

/// Takes what operators that fail have read.
#[derive(Default)]
struct FailureLog(Mutex<Vec<(Record, String)>>);

impl Sink for FailureLog {
    fn write(&self, _: &Record) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }

    fn write_failure(
        &self,
        record: &Record,
        failure: &opscope_capture::OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        let told = (record.clone(), failure.reason.clone());
        self.0.lock().unwrap().push(told);
        Ok(WrittenFiles::default())
    }
}

fn told(model: &mut dyn LoadedModel, inputs: &[Tensor]) -> (Vec<(Record, String)>, EngineError) {
    let sink = Arc::new(FailureLog::default());
    let session =
        CaptureSession::start(failures(), sink.clone(), SessionOptions::default()).unwrap();
    let (mut tap, _) = session.attach(&Arc::new(id()), model.operators(), &[]);
    tap.begin_step(0);
    let error = model.run(inputs, Some(&tap)).unwrap_err();
    drop(tap);
    session.finish();
    let told = std::mem::take(&mut *sink.0.lock().unwrap());
    (told, error)
}

#[test]
fn what_a_failing_operator_read_is_told() {
    let Some(engine) = engine() else { return };
    let mut loaded = load(&engine, &picking());
    let inputs = [tensor(&[2], &[-1.0, 2.0]), numbers(&[1], &[9])];
    let (told, error) = told(&mut *loaded, &inputs);
    let [(record, reason)] = told.as_slice() else {
        panic!("{}", told.len())
    };
    assert_eq!(record.operator.op_name, "g");
    assert!(error.to_string().ends_with(reason.as_str()));
    assert!(reason.contains("out of data bounds"), "{reason}");
    assert_eq!(record.inputs.len(), 2);
    assert_eq!(f32s(&record.inputs[0].1), [0.0, 2.0]);
    assert_eq!(i64s(&record.inputs[1].1), [9]);
    // A successful run records nothing and is as fast as one without taps.
    let captured = capture_by(
        failures(),
        &mut *loaded,
        &[inputs[0].clone(), numbers(&[1], &[1])],
    );
    captured.outputs.unwrap();
    assert_eq!(captured.counters.n_operators_seen, 3);
}

#[test]
fn what_it_read_in_the_iteration_that_failed() {
    let Some(engine) = engine() else { return };
    let body = graph(
        &[
            value("i", INT64, 0),
            value("on", BOOL, 0),
            value("carried", FLOAT, 1),
        ],
        &[],
        &[
            node("Identity", &["on"], &["still_on"]),
            node("Gather", &["x", "i"], &["picked"]).called("pick"),
            node("Add", &["carried", "picked"], &["sum"]),
        ],
        &[value("still_on", BOOL, 0), value("sum", FLOAT, 1)],
    );
    let weights = [ints("n", &[], &[5]), floats("zero", &[1], &[0.0])];
    let nodes = [node("Loop", &["n", "", "zero"], &["y"])
        .called("loop")
        .body("body", body)];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &weights,
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let mut loaded = load(&engine, &model);
    let (told, error) = told(&mut *loaded, &[tensor(&[3], &[1.0, 2.0, 3.0])]);
    let [(record, _)] = told.as_slice() else {
        panic!("{error}")
    };
    assert_eq!(record.operator.op_name, "pick.3");
    assert_eq!(i64s(&record.inputs[1].1), [3]);
    assert_eq!(f32s(&record.inputs[0].1), [1.0, 2.0, 3.0]);
    let captured = capture(&mut *loaded, &[tensor(&[2], &[1.0, 2.0])]);
    assert!(captured.outputs.is_err());
    assert_eq!(
        names(&captured.records).last(),
        Some(&"Identity_still_on.2")
    );
}

#[test]
fn an_id_out_of_range_in_a_language_model() {
    let Some(engine) = engine() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/char_lm.onnx");
    let mut loaded = engine
        .load(ModelSource::File(&path), &LoadOptions::with_threads(1))
        .unwrap();
    let inputs: Vec<Tensor> = loaded
        .signature()
        .inputs
        .iter()
        .map(|_| numbers(&[1, 3], &[1, 99_999, 2]))
        .collect();
    let (told, error) = told(&mut *loaded, &inputs);
    let [(record, _)] = told.as_slice() else {
        panic!("{error}")
    };
    assert_eq!(record.operator.op_type, "Gather");
    assert_eq!(record.inputs.len(), 2);
    assert!(
        record
            .inputs
            .iter()
            .any(|(_, tensor)| tensor.dtype() == DType::I64 && i64s(tensor) == [1, 99_999, 2])
    );
}

#[test]
fn a_run_stops_between_operators() {
    /// Asks for an end as soon as it sees anything; panics afterwards if it is to.
    #[derive(Default)]
    struct StoppingSink {
        flag: OnceLock<Arc<AtomicBool>>,
        n_seen: AtomicUsize,
        n_written: AtomicUsize,
    }
    impl Sink for StoppingSink {
        fn write(&self, _: &Record) -> Result<WrittenFiles, SinkError> {
            self.n_written.fetch_add(1, Ordering::Relaxed);
            Ok(WrittenFiles::default())
        }
        fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
            Some(self)
        }
    }
    impl TensorSummarizer for StoppingSink {
        fn summarize(&self, _: TensorObserver<'_>) -> bool {
            self.n_seen.fetch_add(1, Ordering::Relaxed);
            self.flag.get().unwrap().store(true, Ordering::Relaxed);
            true
        }
    }
    let Some(engine) = engine() else { return };
    let sink = Arc::new(StoppingSink::default());
    let session =
        CaptureSession::start(Plan::everything(), sink.clone(), SessionOptions::default()).unwrap();
    sink.flag.set(session.stop_flag()).unwrap();
    let mut loaded = load(&engine, &picking());
    let (mut tap, _) = session.attach(&Arc::new(id()), loaded.operators(), &[]);
    tap.begin_step(0);
    let inputs = [tensor(&[2], &[-1.0, 2.0]), numbers(&[1], &[1])];
    let error = loaded.run(&inputs, Some(&tap)).unwrap_err();
    assert!(matches!(error, EngineError::Stopped), "{error}");
    drop(tap);
    session.finish();
    // The first operator's input and output; the second operator was not shown any more.
    assert_eq!(sink.n_seen.load(Ordering::Relaxed), 2);
    assert_eq!(sink.n_written.load(Ordering::Relaxed), 1);
    assert_eq!(f32s(&loaded.run(&inputs, None).unwrap()[0]), [-2.0]);
}

#[test]
fn only_what_is_selected_has_a_tap() {
    let Some(engine) = engine() else { return };
    let mut loaded = load(&engine, &picking());
    let inputs = [tensor(&[2], &[-1.0, 2.0]), numbers(&[1], &[1])];
    let only = |name: &str, sides| Plan {
        models: ModelSelection::Every(OperatorSelection {
            names: Some(vec![name.into()]),
            ..OperatorSelection::default()
        }),
        sides,
        ..Plan::everything()
    };
    for name in ["Relu_r", "Neg_y", "Relu_r"] {
        for sides in [SlotSides::Inputs, SlotSides::Outputs, SlotSides::Both] {
            let captured = capture_by(only(name, sides), &mut *loaded, &inputs);
            captured.outputs.unwrap();
            assert_eq!(names(&captured.records), [name]);
            assert_eq!(captured.counters.n_operators_seen, 3);
            let record = &captured.records[0];
            assert_eq!(record.inputs.len(), usize::from(sides.inputs()));
            assert_eq!(record.outputs.len(), usize::from(sides.outputs()));
        }
    }
}

#[test]
fn values_cannot_be_watched() {
    let Some(engine) = engine() else { return };
    let mut loaded = load(&engine, &picking());
    let plan = Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(OperatorSelection {
            watched: vec!["Relu_r".into()],
            ..OperatorSelection::default()
        }),
        ..Plan::everything()
    };
    let captured = capture_by(
        plan,
        &mut *loaded,
        &[tensor(&[1], &[1.0]), numbers(&[1], &[0])],
    );
    let error = captured.outputs.unwrap_err();
    assert!(matches!(error, EngineError::Watch { .. }), "{error}");
    assert!(error.to_string().contains("tract can"));
}

#[test]
fn several_models_on_several_threads() {
    let Some(engine) = engine() else { return };
    let run = |k: usize| {
        let mut loaded = load(&engine, &picking());
        for i in 0..20 {
            let inputs = [tensor(&[2], &[k as f32, i as f32]), numbers(&[1], &[i % 2])];
            let captured = capture(&mut *loaded, &inputs);
            captured.outputs.unwrap();
            assert_eq!(
                f32s(shown(&captured.records, "Relu_r", SlotSide::Output, 0)),
                [k as f32, i as f32]
            );
            let picked = [k as f32, i as f32][(i % 2) as usize];
            assert_eq!(
                f32s(shown(&captured.records, "Neg_y", SlotSide::Output, 0)),
                [-picked]
            );
        }
    };
    thread::scope(|scope| {
        for k in 0..4 {
            scope.spawn(move || run(k));
        }
    });
}

#[test]
fn a_model_may_move_to_another_thread() {
    let Some(engine) = engine() else { return };
    let mut loaded = load(&engine, &picking());
    let inputs = [tensor(&[2], &[1.0, 2.0]), numbers(&[1], &[1])];
    capture(&mut *loaded, &inputs).outputs.unwrap();
    let moved = thread::scope(|scope| {
        let thread = scope.spawn(|| capture(&mut *loaded, &inputs).records.len());
        thread.join().unwrap()
    });
    assert_eq!(moved, 3);
    capture(&mut *loaded, &inputs).outputs.unwrap();
}
