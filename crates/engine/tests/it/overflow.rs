//! Overflow in models that the embedded engine runs.
#![cfg(feature = "tract")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    CaptureSession, Plan, Purpose, SessionOptions, Sink, SinkError, WrittenFiles,
};
use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::Tract;
use opscope_engine::{Engine, LoadOptions, LoadedModel, ModelSource};
use opscope_store::record::{ModelId, Record};
use opscope_tensor::{DType, Shape, Tensor};

/// Keeps each overflowing operator's name and status.
#[derive(Default)]
struct Overflows(Mutex<Vec<(String, u64)>>);

impl Sink for Overflows {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        panic!("`{}` did not overflow", record.operator.op_name);
    }

    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        let name = record.operator.op_name.clone();
        self.0.lock().unwrap().push((name, overflow.status));
        Ok(WrittenFiles::default())
    }
}

fn load(path: &str) -> Box<dyn LoadedModel> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    Tract
        .load(ModelSource::File(&path), &LoadOptions::with_threads(1))
        .unwrap()
}

fn overflows(model: &mut dyn LoadedModel, inputs: &[Tensor]) -> Vec<(String, u64)> {
    let sink = Arc::new(Overflows::default());
    let plan = Plan {
        purpose: Purpose::Overflow,
        ..Plan::everything()
    };
    let session = CaptureSession::start(plan, sink.clone(), SessionOptions::default()).unwrap();
    let id = ModelId::first_load("m", "g");
    let (tap, _) = session.attach(&Arc::new(id), model.operators(), &[]);
    model.run(inputs, Some(&tap)).unwrap();
    assert!(session.finish().first_error.is_none());
    let mut found = std::mem::take(&mut *sink.0.lock().unwrap());
    found.sort();
    found
}

#[test]
fn one_operator_for_each_cause() {
    let mut model = load("tests/models/overflow_six.onnx");
    let x = [-3.0_f32, 0.5, 100.0, 2.0].map(f32::to_le_bytes);
    let counts = [i32::MIN, i32::MAX, 0, 7].map(i32::to_le_bytes);
    let tensor = |dtype, dims: &[usize], bytes: [[u8; 4]; 4]| {
        let shape = Shape::new(dims).unwrap();
        Tensor::from_vec(dtype, shape, bytes.as_flattened().to_vec()).unwrap()
    };
    let inputs = [
        tensor(DType::F32, &[1, 4], x),
        tensor(DType::I32, &[4], counts),
    ];
    let expected = [
        ("/count/Add", 0x10),
        ("/grow/Exp", 0x20),
        ("/negate/Neg", 0x08),
        ("/project/MatMul", 0x400),
        ("/to_byte/Cast", 0x80),
        ("/to_half/Cast", 0x100),
    ];
    let found = overflows(&mut *model, &inputs);
    let found: Vec<(&str, u64)> = found.iter().map(|(name, bits)| (&**name, *bits)).collect();
    assert_eq!(found, expected);
}

#[test]
fn ordinary_models_do_not_overflow() {
    for (path, dims) in [
        (
            "tests/models/shapes_cnn_f32.onnx",
            Some(&[2, 1, 32, 32][..]),
        ),
        ("tests/models/shapes_cnn_f16.onnx", Some(&[2, 1, 32, 32])),
        (
            "tests/models/shapes_cnn_qdq_int8.onnx",
            Some(&[1, 1, 32, 32]),
        ),
        ("tests/models/char_lm.onnx", Some(&[2, 7])),
        ("tests/models/light_squeezenet.onnx", None),
        ("examples/digits/digits_cnn.onnx", Some(&[3, 1, 8, 8])),
    ] {
        let mut model = load(path);
        let shape = dims.map(|dims| Shape::new(dims).unwrap());
        let mut random = RandomNumbers::new(7);
        let inputs = model.signature().inputs.iter();
        let inputs: Vec<Tensor> = inputs
            .map(|value| {
                let shape = resolve_shape(value, shape.as_ref()).unwrap();
                random.tensor(value, shape).unwrap()
            })
            .collect();
        assert_eq!(overflows(&mut *model, &inputs), [], "{path}");
    }
}
