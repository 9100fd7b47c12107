//! What a dump costs: each model plain, with statistics of every tensor, and with every tensor on
//! disk, in turn within the same run.
//!
//! `cargo bench --bench capture -- MODEL.onnx …`. Every measurement checks its answer. The limits
//! beside it are a copy of the same bytes in memory and one plain file of the same bytes on the same
//! disk.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opscope_capture::sink::{AclSink, MemorySink, StatsSink};
use opscope_capture::{Plan, Session, SessionOptions, Sink};
use opscope_engine::input::{Random, resolve_shape};
use opscope_engine::onnx::Tract;
use opscope_engine::{Dim, Engine, LoadOptions, LoadedModel, ModelSource};
use opscope_store::atomic_file::Modes;
use opscope_store::record::{ModelId, Record};
use opscope_tensor::{Shape, Tensor, stats};

/// Rounds of which the median is taken.
const N_ROUNDS: usize = 9;
/// What an extent that the model leaves open is set to.
const OPEN_EXTENT: usize = 16;

fn main() {
    println!(
        "{:<18} {:>9} {:>17} {:>17} {:>9} {:>10} {:>10} {:>10} {:>10}",
        "model",
        "plain",
        "statistics",
        "tensors",
        "bytes",
        "statistics",
        "tensors",
        "memory",
        "disk"
    );
    for path in std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
    {
        measure(Path::new(&path));
    }
}

fn measure(path: &Path) {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut model = Tract
        .load(ModelSource::File(path), &LoadOptions { n_threads })
        .unwrap();
    let inputs = inputs(&*model);
    let expected = model.run(&inputs, None).unwrap();
    let dir = tempfile::tempdir_in(".").unwrap();
    let records = records(&mut *model, &inputs);
    let n_bytes: u64 = records.iter().map(Record::n_bytes).sum();
    let mut times: [Vec<Duration>; 5] = Default::default();
    for round in 0..N_ROUNDS {
        times[0].push(timed(|| {
            check(&expected, &model.run(&inputs, None).unwrap());
        }));
        let sink = Arc::new(StatsSink::default());
        times[1].push(timed(|| {
            captured(&mut *model, &inputs, &expected, sink.clone(), n_bytes);
        }));
        check_stats(&sink, &records);
        let out = dir.path().join(round.to_string());
        let sink = AclSink::create(&out, ["dump".to_owned()], Modes::default()).unwrap();
        times[2].push(timed(|| {
            captured(&mut *model, &inputs, &expected, Arc::new(sink), n_bytes);
        }));
        fs::remove_dir_all(&out).unwrap();
        times[3].push(timed(|| copy(&records)));
        times[4].push(timed(|| write(&records, &dir.path().join("plain"))));
    }
    let [plain, statistics, tensors, memory, disk] = times.map(median);
    let rate = |time: Duration| format!("{:.2} GB/s", n_bytes as f64 / time.as_secs_f64() / 1e9);
    let cost = |time: Duration| {
        let ratio = time.as_secs_f64() / plain.as_secs_f64();
        format!("{:.2} ms ({ratio:.2}x)", time.as_secs_f64() * 1e3)
    };
    println!(
        "{:<18} {:>6.2} ms {:>17} {:>17} {:>6.1} MB {:>10} {:>10} {:>10} {:>10}",
        path.file_stem().unwrap_or_default().to_string_lossy(),
        plain.as_secs_f64() * 1e3,
        cost(statistics),
        cost(tensors),
        n_bytes as f64 / 1e6,
        rate(statistics.saturating_sub(plain)),
        rate(tensors.saturating_sub(plain)),
        rate(memory),
        rate(disk),
    );
}

/// Runs the model under `sink` until the last tensor is dealt with.
fn captured(
    model: &mut dyn LoadedModel,
    inputs: &[Tensor],
    expected: &[Tensor],
    sink: Arc<dyn Sink>,
    n_bytes: u64,
) {
    let session = Session::start(Plan::everything(), sink, SessionOptions::default()).unwrap();
    let (tap, _) = session.attach(&id(), model.operators(), &[]);
    check(expected, &model.run(inputs, Some(&tap)).unwrap());
    let c = session.finish().counters;
    assert_eq!((c.n_written, c.n_bytes_selected), (c.n_offered, n_bytes));
}

fn records(model: &mut dyn LoadedModel, inputs: &[Tensor]) -> Vec<Record> {
    let sink = Arc::new(MemorySink::default());
    let session =
        Session::start(Plan::everything(), sink.clone(), SessionOptions::default()).unwrap();
    let (tap, _) = session.attach(&id(), model.operators(), &[]);
    model.run(inputs, Some(&tap)).unwrap();
    session.finish();
    sink.take()
}

fn check_stats(sink: &StatsSink, records: &[Record]) {
    let rows = sink.take();
    let tensors: Vec<_> = records.iter().flat_map(Record::slots).collect();
    assert_eq!(rows.len(), tensors.len());
    for (row, (side, index, tensor)) in rows.iter().zip(tensors) {
        assert_eq!((row.side, row.index), (side, index));
        // NaN differs from itself, so compare the text.
        let direct = stats(tensor.view()).ok();
        assert_eq!(format!("{:?}", row.stats), format!("{direct:?}"));
    }
}

fn check(expected: &[Tensor], found: &[Tensor]) {
    assert!(
        expected
            .iter()
            .zip(found)
            .all(|(a, b)| a.bytes() == b.bytes())
    );
}

fn copy(records: &[Record]) {
    let mut to = Vec::new();
    for (_, _, tensor) in records.iter().flat_map(Record::slots) {
        to.clear();
        to.extend_from_slice(tensor.bytes());
        std::hint::black_box(&to);
    }
}

fn write(records: &[Record], path: &Path) {
    let mut file = File::create(path).unwrap();
    for (_, _, tensor) in records.iter().flat_map(Record::slots) {
        file.write_all(tensor.bytes()).unwrap();
    }
}

fn inputs(model: &dyn LoadedModel) -> Vec<Tensor> {
    let mut random = Random::new(1);
    let make = |value: &opscope_engine::ValueInfo| {
        let dims = value.dims.iter().flatten().map(|dim| match dim {
            Dim::Fixed(n) => *n,
            Dim::Named(_) | Dim::Unknown => OPEN_EXTENT,
        });
        let shape = Shape::new(dims.collect::<Vec<_>>()).unwrap();
        random
            .tensor(value, resolve_shape(value, Some(&shape)).unwrap())
            .unwrap()
    };
    model.signature().inputs.iter().map(make).collect()
}

fn id() -> Arc<ModelId> {
    Arc::new(ModelId {
        file_stem: "m".into(),
        graph_name: "g".into(),
        load: Some(1),
        device: 0,
    })
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
