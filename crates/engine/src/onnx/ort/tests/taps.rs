//! Taps in models that ONNX Runtime runs. Where its library is, `OPSCOPE_ENGINE_LIB` says; without,
//! these tests pass and say that they did nothing.

mod build;
mod control_flow;
mod device;
mod executed;
mod files;
mod kinds;
mod lent;
mod rounded;
mod runs;
mod turns;
mod values;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{CaptureSession, Counters, Plan, SessionOptions};
use opscope_store::record::{ModelId, Record, SlotSide};
use opscope_tensor::{DType, Shape, Tensor};

use self::build::bytes;
use crate::onnx::ort::OnnxRuntime;
use crate::onnx::schema::ModelProto;
use crate::{Engine, EngineError, LoadOptions, LoadedModel, ModelSource};

/// The engine, if the library is there.
fn engine() -> Option<OnnxRuntime> {
    let Some(path) = std::env::var_os("OPSCOPE_ENGINE_LIB") else {
        // Not by a macro, whose output a passing test keeps to itself.
        let _ = writeln!(std::io::stderr(), "skipped: OPSCOPE_ENGINE_LIB is not set");
        return None;
    };
    Some(OnnxRuntime::load(Path::new(&path)).unwrap())
}

fn load(engine: &OnnxRuntime, model: &ModelProto) -> Box<dyn LoadedModel> {
    let options = LoadOptions::with_threads(1);
    let loaded = engine.load(ModelSource::Memory(&bytes(model)), &options);
    loaded.unwrap()
}

fn id() -> ModelId {
    ModelId::first_load("m", "g")
}

/// The results of a run under a plan.
struct TapCapture {
    outputs: Result<Vec<Tensor>, EngineError>,
    records: Vec<Record>,
    counters: Counters,
}

fn capture(model: &mut dyn LoadedModel, inputs: &[Tensor]) -> TapCapture {
    capture_by(Plan::everything(), model, inputs)
}

fn capture_by(plan: Plan, model: &mut dyn LoadedModel, inputs: &[Tensor]) -> TapCapture {
    let sink = Arc::new(MemorySink::default());
    let session = CaptureSession::start(plan, sink.clone(), SessionOptions::default()).unwrap();
    let names: Vec<String> = model
        .signature()
        .inputs
        .iter()
        .map(|v| v.name.clone())
        .collect();
    let (mut tap, _) = session.attach(&Arc::new(id()), model.operators(), &names);
    tap.begin_step(0);
    let outputs = model.run(inputs, Some(&tap));
    drop(tap);
    let counters = session.finish().counters;
    let mut records = sink.take();
    records.sort_by_key(|record| record.timestamp_us);
    TapCapture {
        outputs,
        records,
        counters,
    }
}

/// Names of the operators in the order in which they were shown.
fn names(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record.operator.op_name.as_str())
        .collect()
}

/// The value at a position of the operator of this name.
fn shown<'a>(records: &'a [Record], op_name: &str, side: SlotSide, position: usize) -> &'a Tensor {
    let record = records
        .iter()
        .find(|record| record.operator.op_name == op_name);
    let record = record.unwrap_or_else(|| panic!("no record of {op_name} in {:?}", names(records)));
    let slots = match side {
        SlotSide::Input => &record.inputs,
        SlotSide::Output => &record.outputs,
    };
    let slot = slots.iter().find(|(i, _)| *i == position);
    &slot
        .unwrap_or_else(|| panic!("{op_name} has no {side:?} {position}"))
        .1
}

fn f32s(tensor: &Tensor) -> Vec<f32> {
    assert_eq!(tensor.dtype(), DType::F32);
    tensor
        .host_bytes()
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

fn i64s(tensor: &Tensor) -> Vec<i64> {
    assert_eq!(tensor.dtype(), DType::I64);
    tensor
        .host_bytes()
        .unwrap()
        .as_chunks()
        .0
        .iter()
        .map(|b| i64::from_le_bytes(*b))
        .collect()
}

fn tensor(dims: &[usize], elements: &[f32]) -> Tensor {
    let bytes = elements.iter().flat_map(|f| f.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new(dims).unwrap(), bytes).unwrap()
}

fn numbers(dims: &[usize], elements: &[i64]) -> Tensor {
    let bytes = elements.iter().flat_map(|i| i.to_le_bytes()).collect();
    Tensor::from_vec(DType::I64, Shape::new(dims).unwrap(), bytes).unwrap()
}
