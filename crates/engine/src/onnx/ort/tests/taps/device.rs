//! Taps on a simulated device: its memory is the CPU's, and its results reach the host late.

use opscope_capture::{Sink, SinkError, TensorSummarizer, WrittenFiles};
use opscope_tensor::{Stats, TensorObserver};

use super::build::*;
use super::*;
use crate::onnx::ort::device::fake::{self, FakeDevice};
use crate::onnx::ort::device::{DeviceMemory, DeviceSide, DeviceStream};

/// The engine with taps on a device.
macro_rules! engine_with {
    ($behaviour:ident) => {
        match engine() {
            Some(mut engine) => {
                engine.open_device = |_| Some(fake::open(FakeDevice::$behaviour));
                engine
            }
            None => return,
        }
    };
}

/// Values of several types: floats with NaN and infinities, integers, truth values, none.
fn model_of_types() -> ModelProto {
    let nodes = [
        node("Log", &["x"], &["log"]),
        node("Div", &["x", "zero"], &["ratio"]),
        node("Cast", &["x"], &["whole"]).int("to", i64::from(INT64)),
        node("Greater", &["x", "zero"], &["is_above"]),
        node("NonZero", &["zero"], &["places"]),
        node("Shape", &["log"], &["shape"]),
        node("Add", &["log", "ratio"], &["sum"]),
    ];
    model(graph(
        &[value("x", FLOAT, 1)],
        &[floats("zero", &[1], &[0.0])],
        &nodes,
        &[value("sum", FLOAT, 1), value("is_above", BOOL, 1)],
    ))
}

fn inputs() -> [Tensor; 1] {
    [tensor(&[5], &[1.0, -2.0, 0.0, 1e-3, 1e30])]
}

/// Elements of everything that was shown, in order.
fn shown_elements(records: &[Record]) -> Vec<(String, SlotSide, usize, DType, Vec<u8>)> {
    let slots = records.iter().flat_map(|record| {
        let name = &record.operator.op_name;
        record.slots().map(move |(side, index, tensor)| {
            let bytes = tensor.host_bytes().unwrap().to_vec();
            (name.clone(), side, index, tensor.dtype(), bytes)
        })
    });
    slots.collect()
}

#[test]
fn copies_are_what_taps_on_the_cpu_show() {
    let model = model_of_types();
    for behaviour in [FakeDevice::Sound, FakeDevice::Unpinned] {
        let Some(mut engine) = engine() else {
            return;
        };
        let on_cpu = capture(&mut *load(&engine, &model), &inputs());
        engine.open_device = match behaviour {
            FakeDevice::Sound => |_| Some(fake::open(FakeDevice::Sound)),
            _ => |_| Some(fake::open(FakeDevice::Unpinned)),
        };
        let mut loaded = load(&engine, &model);
        // Twice, and the second time with memory that was used before.
        for _ in 0..2 {
            let found = capture(&mut *loaded, &inputs());
            assert_eq!(
                format!("{:?}", found.outputs),
                format!("{:?}", on_cpu.outputs)
            );
            assert_eq!(
                shown_elements(&found.records),
                shown_elements(&on_cpu.records)
            );
            assert_eq!(found.counters.n_dropped, 0);
        }
        assert_eq!(loaded.take_warnings(), Vec::<String>::new());
    }
}

/// Keeps records, and wants numbers of tensors alone.
#[derive(Default)]
struct NumberSink(MemorySink);

impl Sink for NumberSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        self.0.write(record)
    }

    fn keeps_tensors(&self) -> bool {
        true
    }

    fn takes_device_numbers(&self) -> bool {
        true
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        Some(self)
    }
}

impl TensorSummarizer for NumberSink {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        let _ = tensor.stats();
        true
    }
}

fn capture_numbers(loaded: &mut dyn LoadedModel) -> (Vec<Record>, Counters) {
    let sink = Arc::new(NumberSink::default());
    let options = SessionOptions::default();
    let session = CaptureSession::start(Plan::everything(), sink.clone(), options).unwrap();
    let (mut tap, _) = session.attach(&Arc::new(id()), loaded.operators(), &["x".to_owned()]);
    tap.begin_step(0);
    loaded.run(&inputs(), Some(&tap)).unwrap();
    drop(tap);
    let counters = session.finish().counters;
    let mut records = sink.0.take();
    records.sort_by_key(|record| record.timestamp_us);
    (records, counters)
}

fn all_stats(records: &[Record]) -> Vec<(String, String)> {
    let slots = records.iter().flat_map(|record| {
        let name = &record.operator.op_name;
        record.slots().map(move |(_, _, tensor)| {
            let stats: Stats = *tensor.stats().unwrap();
            let places = tensor.observed().non_finite_places();
            (name.clone(), format!("{stats:?} {places:?}"))
        })
    });
    slots.collect()
}

#[test]
fn numbers_take_the_place_of_elements() {
    let engine = engine_with!(Sound);
    let mut loaded = load(&engine, &model_of_types());
    let n_waits = fake::n_waits();
    let (records, counters) = capture_numbers(&mut *loaded);
    // One wait is of the check when the device was opened, and nothing waits within the run.
    assert_eq!(fake::n_waits() - n_waits, 2);
    assert_eq!(counters.n_dropped, 0);
    let log = shown(&records, "Log_log", SlotSide::Output, 0);
    assert!(log.host_bytes().is_err());
    let mut on_cpu = engine;
    on_cpu.open_device = |_| None;
    let (expected, _) = capture_numbers(&mut *load(&on_cpu, &model_of_types()));
    assert_eq!(all_stats(&records), all_stats(&expected));
    assert_eq!(records.len(), 7);
}

#[test]
fn records_of_bodies_keep_their_place() {
    let Some(mut engine) = engine() else {
        return;
    };
    let body = graph(
        &[
            value("i", INT64, 0),
            value("going", BOOL, 0),
            value("carried", FLOAT, 1),
        ],
        &[],
        &[
            node("Identity", &["going"], &["still"]),
            node("Add", &["carried", "x"], &["next"]),
        ],
        &[value("still", BOOL, 0), value("next", FLOAT, 1)],
    );
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[ints("n", &[], &[3])],
        &[
            node("Relu", &["x"], &["start"]),
            node("Loop", &["n", "", "start"], &["y"]).body("body", body),
            node("Neg", &["y"], &["z"]),
        ],
        &[value("z", FLOAT, 1)],
    ));
    let expected = capture(&mut *load(&engine, &model), &inputs());
    engine.open_device = |_| Some(fake::open(FakeDevice::Sound));
    let found = capture(&mut *load(&engine, &model), &inputs());
    assert_eq!(
        shown_elements(&found.records),
        shown_elements(&expected.records)
    );
    assert_eq!(found.records.len(), expected.records.len());
}

#[test]
fn more_values_than_there_are_rows_for_are_waited_for() {
    let engine = engine_with!(Sound);
    let n = 4200;
    let names: Vec<String> = (0..=n).map(|i| format!("v{i}")).collect();
    let nodes = (0..n).map(|i| {
        let from = if i == 0 { "x" } else { names[i].as_str() };
        node("Neg", &[from], &[&names[i + 1]])
    });
    let nodes: Vec<_> = nodes.collect();
    let graph = graph(
        &[value("x", FLOAT, 1)],
        &[],
        &nodes,
        &[value(&names[n], FLOAT, 1)],
    );
    let mut loaded = load(&engine, &model(graph));
    let n_waits = fake::n_waits();
    let (records, counters) = capture_numbers(&mut *loaded);
    assert_eq!(fake::n_waits() - n_waits, 3);
    assert_eq!(counters.n_dropped, 0);
    assert_eq!(records.len(), n);
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.operator.op_name, format!("Neg_v{}", i + 1));
        let stats = record.outputs[0].1.stats().unwrap();
        let max = if i % 2 == 0 { 2.0 } else { 1e30_f32.into() };
        assert_eq!(stats.max, max, "{i}");
    }
}

#[test]
fn a_lost_device_takes_its_values_alone() {
    let engine = engine_with!(Lost);
    let mut loaded = load(&engine, &model_of_types());
    let found = capture(&mut *loaded, &inputs());
    // The operators themselves run on the CPU here.
    assert!(found.outputs.is_ok());
    // Of records nothing stays but what the host has.
    let shown = found.records.iter().flat_map(Record::slots);
    assert!(
        shown
            .into_iter()
            .all(|(_, _, tensor)| tensor.host_bytes().is_ok())
    );
    assert!(found.counters.n_dropped >= 7);
    let expected =
        "values of the device were lost: CUDA: cuStreamSynchronize: unspecified launch failure";
    assert_eq!(loaded.take_warnings(), [expected]);
    assert_eq!(loaded.take_warnings(), Vec::<String>::new());
}

#[test]
fn a_device_that_cannot_be_used_leaves_taps_on_the_cpu() {
    let model = model_of_types();
    let cases = [
        (FakeDevice::Wrong, "numbers of known values are others"),
        (
            FakeDevice::Kernelless,
            "CUDA: cuModuleLoadData: unspecified launch failure",
        ),
        (
            FakeDevice::Missing,
            "CUDA: cuDeviceGet: invalid device ordinal",
        ),
    ];
    for (behaviour, reason) in cases {
        let Some(mut engine) = engine() else {
            return;
        };
        let expected = capture(&mut *load(&engine, &model), &inputs());
        engine.open_device = match behaviour {
            FakeDevice::Wrong => |_| Some(fake::open(FakeDevice::Wrong)),
            FakeDevice::Kernelless => |_| Some(fake::open(FakeDevice::Kernelless)),
            _ => |_| Some(fake::open(FakeDevice::Missing)),
        };
        let mut loaded = load(&engine, &model);
        let found = capture(&mut *loaded, &inputs());
        assert_eq!(
            shown_elements(&found.records),
            shown_elements(&expected.records)
        );
        let warnings = loaded.take_warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].ends_with(reason), "{warnings:?}");
    }
}

#[test]
fn types_that_a_device_cannot_have_are_still_shown() {
    let engine = engine_with!(Sound);
    let nodes = [
        node("Cast", &["x"], &["text"]).int("to", TEXT.into()),
        node("Identity", &["text"], &["same"]),
        node("Cast", &["same"], &["y"]).int("to", FLOAT.into()),
    ];
    let model = model(graph(
        &[value("x", FLOAT, 1)],
        &[],
        &nodes,
        &[value("y", FLOAT, 1)],
    ));
    let input = [tensor(&[2], &[1.5, -2.0])];
    let found = capture(&mut *load(&engine, &model), &input);
    let same = shown(&found.records, "Identity_same", SlotSide::Output, 0);
    let texts = opscope_tensor::text::iter(same.host_view().unwrap()).unwrap();
    assert_eq!(texts.collect::<Vec<_>>(), [b"1.5".as_slice(), b"-2"]);
    assert_eq!(found.counters.n_dropped, 0);
}

/// A value in the memory of the device, which is the CPU's.
fn on_device(values: &[u8]) -> DeviceMemory {
    DeviceMemory {
        address: values.as_ptr().expose_provenance() as u64,
        dtype: DType::U8,
        shape: Shape::new([values.len()]).unwrap(),
        n_bytes: values.len(),
    }
}

#[test]
fn a_device_waits_for_copies_that_take_much_memory_and_for_other_streams() {
    let device = DeviceSide::new(Arc::new(fake::open(FakeDevice::Unpinned).unwrap()));
    let values = vec![7; 64 << 20];
    let begin = fake::n_waits();
    let mut copies = Vec::new();
    for n_waits in [0, 0, 0, 0, 1] {
        device.make_room(1);
        assert_eq!(fake::n_waits() - begin, n_waits);
        let copy = device.take(DeviceStream(1), &on_device(&values), false);
        copies.push(copy.unwrap());
    }
    assert!(copies[..4].iter().all(|copy| !copy.is_awaited()));
    assert!(copies[4].is_awaited());
    let other = device.take(DeviceStream(2), &on_device(&values[..4]), true);
    assert_eq!(fake::n_waits() - begin, 2);
    assert!(!copies[4].is_awaited());
    // A copy of the CPU's own counts as well.
    device.note_copy(256 << 20);
    device.make_room(1);
    assert_eq!(fake::n_waits() - begin, 3);
    let first = copies.swap_remove(0).arrived().unwrap();
    assert_eq!(first.host_bytes().unwrap(), values);
    let other = other.unwrap().arrived().unwrap();
    assert!(other.host_bytes().is_err());
    assert_eq!(other.stats().unwrap().sum, 28.0);
}
