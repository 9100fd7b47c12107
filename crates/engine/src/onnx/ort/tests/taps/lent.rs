//! Values that are too large for the queue are written from where they are.

use std::sync::Mutex;

use opscope_capture::{Sink, SinkError, WrittenFiles};

use super::*;
use crate::input::{RandomNumbers, resolve_shape};
use crate::onnx::proto;

/// Keeps copies of what it is shown, as a file would.
#[derive(Default)]
struct TensorCopies(Mutex<Vec<Record>>);

impl Sink for TensorCopies {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let copy = |slots: &[(usize, Tensor)]| -> Vec<(usize, Tensor)> {
            let copy = |tensor: &Tensor| {
                let bytes = tensor.host_bytes().unwrap().to_vec();
                Tensor::from_vec(tensor.dtype(), tensor.shape().clone(), bytes).unwrap()
            };
            slots.iter().map(|(i, tensor)| (*i, copy(tensor))).collect()
        };
        self.0.lock().unwrap().push(Record {
            inputs: copy(&record.inputs),
            outputs: copy(&record.outputs),
            ..record.clone()
        });
        Ok(WrittenFiles::default())
    }
}

fn run(model: &ModelProto, inputs: &[Tensor], plan: Plan, options: SessionOptions) -> Vec<String> {
    let mut loaded = load(&engine().unwrap(), model);
    let sink = Arc::new(TensorCopies::default());
    let session = CaptureSession::start(plan, sink.clone(), options).unwrap();
    let given = loaded.signature().inputs.iter();
    let names: Vec<String> = given.map(|value| value.name.clone()).collect();
    let (mut tap, _) = session.attach(&Arc::new(id()), loaded.operators(), &names);
    for step in 0..2 {
        tap.begin_step(step);
        loaded.run(inputs, Some(&tap)).unwrap();
        tap.end_step();
    }
    drop(tap);
    let counters = session.finish().counters;
    assert_eq!(counters.n_dropped, 0);
    let mut records = std::mem::take(&mut *sink.0.lock().unwrap());
    records.sort_by_key(|record| record.timestamp_us);
    told(&records)
}

/// Describes the contents of records, without their times.
fn told(records: &[Record]) -> Vec<String> {
    let text = |record: &Record| {
        let slots: Vec<String> = record
            .slots()
            .map(|(side, i, tensor)| {
                let dims = tensor.shape().dims();
                format!(
                    "{side:?} {i} {} {dims:?} {:?}",
                    tensor.dtype(),
                    tensor.host_bytes().unwrap()
                )
            })
            .collect();
        format!("{} {} {slots:?}", record.step, record.operator.op_name)
    };
    records.iter().map(text).collect()
}

/// A queue in which nothing has room: every value is lent.
fn no_room() -> SessionOptions {
    SessionOptions {
        queue_bytes_max: 0,
        ..SessionOptions::default()
    }
}

#[test]
fn values_are_those_of_copies() {
    if engine().is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models");
    for name in [
        "char_lm.onnx",
        "overflow_six.onnx",
        "shapes_cnn_qdq_int8.onnx",
        "loop.onnx",
    ] {
        let file = std::fs::read(folder.join(name)).unwrap();
        let model = proto::decode(&file).unwrap().proto;
        let loaded = load(&engine().unwrap(), &model);
        let mut random = RandomNumbers::new(1);
        let given = loaded.signature().inputs.iter();
        let inputs = given.map(|value| {
            let list = Shape::new([2, 5]).unwrap();
            let image = Shape::new([1, 1, 32, 32]).unwrap();
            let mut shapes = [None, Some(&list), Some(&image)].into_iter();
            let shape = shapes.find_map(|shape| resolve_shape(value, shape).ok());
            random.tensor(value, shape.unwrap()).unwrap()
        });
        let inputs: Vec<Tensor> = inputs.collect();
        let with_inputs = Plan {
            has_graph_inputs: true,
            has_parameters: true,
            ..Plan::everything()
        };
        for plan in [Plan::everything(), with_inputs] {
            let copied = run(&model, &inputs, plan.clone(), SessionOptions::default());
            let lent = run(&model, &inputs, plan, no_room());
            assert!(!copied.is_empty());
            assert!(lent == copied, "{name}");
        }
    }
}
