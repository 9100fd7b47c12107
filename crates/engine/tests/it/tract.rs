//! The embedded engine on real models.
#![cfg(feature = "tract")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::sink::MemorySink;
use opscope_capture::{CaptureSession, Plan, SessionOptions};
use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::Tract;
use opscope_engine::{Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelSource};
use opscope_store::record::{ModelId, Record};
use opscope_tensor::{DType, Shape, Tensor};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/models")
        .join(name)
}

fn load(name: &str, n_threads: usize) -> Box<dyn LoadedModel> {
    Tract
        .load(
            ModelSource::File(&path(name)),
            &LoadOptions::with_threads(n_threads),
        )
        .unwrap()
}

#[test]
fn what_only_another_engine_can_do_is_refused() {
    let plain = LoadOptions::with_threads(1);
    let executed = LoadOptions {
        graph: GraphKind::Executed,
        ..plain.clone()
    };
    let on_device = LoadOptions {
        providers: vec!["cuda".to_owned()],
        ..plain
    };
    let model = path("light_squeezenet.onnx");
    for options in [executed, on_device] {
        let error = Tract.load(ModelSource::File(&model), &options).err();
        let told = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("ONNX Runtime can do more"), "{told}");
    }
}

fn random_inputs(model: &dyn LoadedModel, shape: Option<&[usize]>) -> Vec<Tensor> {
    let shape = shape.map(|dims| Shape::new(dims).unwrap());
    let mut random = RandomNumbers::new(1);
    let inputs = model.signature().inputs.iter();
    inputs
        .map(|value| {
            let shape = resolve_shape(value, shape.as_ref()).unwrap();
            random.tensor(value, shape).unwrap()
        })
        .collect()
}

fn capture(model: &mut dyn LoadedModel, inputs: &[Tensor]) -> (Vec<Tensor>, Vec<Record>) {
    let sink = Arc::new(MemorySink::default());
    let session =
        CaptureSession::start(Plan::everything(), sink.clone(), SessionOptions::default()).unwrap();
    let id = ModelId::first_load("m", "g");
    let (tap, _) = session.attach(&Arc::new(id), model.operators(), &[]);
    let outputs = model.run(inputs, Some(&tap)).unwrap();
    let c = session.finish().counters;
    assert_eq!((c.n_selected, c.n_written), (c.n_offered, c.n_offered));
    (outputs, sink.take())
}

#[test]
fn tapping_changes_no_bit_and_copies_no_tensor() {
    let mut model = load("char_lm.onnx", 1);
    let inputs = random_inputs(&*model, Some(&[2, 5]));
    let plain = model.run(&inputs, None).unwrap();
    let (tapped, records) = capture(&mut *model, &inputs);
    assert_eq!(
        plain[0].host_bytes().unwrap(),
        tapped[0].host_bytes().unwrap()
    );
    assert_eq!(records.len(), model.operators().len());
    // The last operator's output is the very memory that the caller gets.
    let last = records
        .iter()
        .find(|r| r.operator.outputs[0] == "logits")
        .unwrap();
    assert!(std::ptr::eq(
        last.outputs[0].1.host_bytes().unwrap(),
        tapped[0].host_bytes().unwrap()
    ));
}

#[test]
fn threads_change_no_bit() {
    let inputs = random_inputs(&*load("light_squeezenet.onnx", 1), None);
    let run = |n_threads| {
        load("light_squeezenet.onnx", n_threads)
            .run(&inputs, None)
            .unwrap()
    };
    assert_eq!(
        run(1)[0].host_bytes().unwrap(),
        run(3)[0].host_bytes().unwrap()
    );
}

#[test]
fn new_shapes_and_many_of_them_run_on_one_loaded_model() {
    let mut model = load("char_lm.onnx", 1);
    for length in 2..14 {
        let inputs = random_inputs(&*model, Some(&[1, length]));
        let reused = model.run(&inputs, None).unwrap();
        let fresh = load("char_lm.onnx", 1).run(&inputs, None).unwrap();
        assert_eq!(reused[0].shape().dims(), [1, length, 23]);
        let difference =
            |(a, b): (&[u8; 4], &[u8; 4])| (f32::from_le_bytes(*a) - f32::from_le_bytes(*b)).abs();
        let values = |tensor: &Tensor| tensor.host_bytes().unwrap().as_chunks::<4>().0.to_vec();
        let (a, b) = (values(&reused[0]), values(&fresh[0]));
        assert!(
            a.iter().zip(&b).map(difference).all(|d| d < 1e-4),
            "length {length}"
        );
    }
}

#[test]
fn a_stopped_run_says_so() {
    let mut model = load("shapes_cnn_f32.onnx", 1);
    let inputs = random_inputs(&*model, Some(&[1, 1, 32, 32]));
    let session = CaptureSession::start(
        Plan::everything(),
        Arc::<MemorySink>::default(),
        SessionOptions::default(),
    )
    .unwrap();
    let id = ModelId::first_load("m", "g");
    let (tap, _) = session.attach(&Arc::new(id), model.operators(), &[]);
    session.stop_flag().store(true, Ordering::Relaxed);
    assert!(matches!(
        model.run(&inputs, Some(&tap)),
        Err(EngineError::Stopped)
    ));
    assert_eq!(session.finish().counters.n_operators_seen, 0);
}

#[test]
fn float16_models_keep_their_dtype() {
    let mut model = load("shapes_cnn_f16.onnx", 1);
    let inputs = random_inputs(&*model, Some(&[1, 1, 32, 32]));
    let (outputs, records) = capture(&mut *model, &inputs);
    assert_eq!(outputs[0].dtype(), DType::F16);
    let is_float16 = |record: &Record| record.outputs.iter().all(|(_, t)| t.dtype() == DType::F16);
    assert!(records.iter().all(is_float16));
}

#[test]
fn what_the_engine_lacks_is_named() {
    let error = Tract
        .load(
            ModelSource::File(&path("loop.onnx")),
            &LoadOptions::with_threads(1),
        )
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "tract cannot run operator `/Loop` of type `Loop`: it has no such operator; ONNX Runtime can"
    );
}

#[test]
fn every_truncation_of_a_model_is_refused() {
    let bytes = std::fs::read(path("light_squeezenet.onnx")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cut = dir.path().join("cut.onnx");
    for n in (0..bytes.len()).step_by(97) {
        std::fs::write(&cut, &bytes[..n]).unwrap();
        assert!(
            Tract
                .load(ModelSource::File(&cut), &LoadOptions::with_threads(1))
                .is_err(),
            "{n} bytes"
        );
    }
}
