//! The native form where steps are removed, and where files cannot grow any more.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use opscope_capture::{
    CaptureSession, FailurePolicy, Plan, RingOptions, SessionOptions, SessionSummary, Sink,
};
use opscope_dump::NativeSink;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::dump;
use opscope_store::reader::{DumpIndex, TensorFile, read_dump, read_dump_into, read_overview};
use opscope_store::record::parallel::{Collective, CollectiveKind, Placement, Reduction};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

use crate::full_disk::{DIR_VARIABLE, run_limited};

const TIME: &str = "20240102030405";
/// Bytes of a tensor where files have a limit.
const N_LARGE: usize = 30_000;

#[test]
fn a_ring_keeps_whole_steps_and_their_elements_alone() {
    for n_writers in [1, 4] {
        let dir = tempfile::tempdir().unwrap();
        let options = SessionOptions {
            n_writers,
            ring: Some(RingOptions {
                n_steps: NonZeroUsize::new(3).unwrap(),
                triggers: [].into_iter().collect(),
                keeps_only_triggered: false,
            }),
            ..SessionOptions::default()
        };
        let summary = run(dir.path(), options, 50, 16);
        assert_eq!(summary.counters.n_failed, 0);
        let index = read(dir.path());
        assert_eq!(contents(&index), expected(47..50, 16));
        let elements = sizes_below(dir.path());
        let n_elements = elements
            .keys()
            .filter(|name| name.ends_with(".safetensors"));
        assert_eq!(n_elements.count(), 3, "{elements:?}");
        // Counters know what is left on the disk.
        let c = summary.counters;
        let n_bytes: u64 = elements.values().sum();
        assert_eq!(c.n_bytes_written - c.n_bytes_removed, n_bytes);
        assert_eq!(c.n_files - c.n_files_removed, elements.len() as u64);
        assert!(
            index
                .passed_over
                .iter()
                .all(|one| one.path.ends_with("run.json")
                    || one.path.extension().is_some_and(|e| e == "safetensors"))
        );
    }
}

#[test]
fn rows_that_were_reported_are_there_when_files_cannot_grow() {
    if let Some(dir) = env::var_os(DIR_VARIABLE) {
        return with_limited_files(Path::new(&dir));
    }
    run_limited(
        "native::rows_that_were_reported_are_there_when_files_cannot_grow",
        400,
    );
}

/// From the table of a whole step, and from the journal of one that is not over.
#[test]
fn rows_tell_collectives_and_placements() {
    let dir = tempfile::tempdir().unwrap();
    let creator = Arc::new(Creator::in_dump(dir.path(), PermissionModes::default()));
    let sink = NativeSink::lazy_by(creator, dir.path(), TIME, 3);
    let placement: Arc<Placement> = Arc::new("dp=1/2:R,tp=1/2:S(0) of [6]".parse().unwrap());
    let collective = Arc::new(Collective {
        kind: CollectiveKind::AllReduce(Some(Reduction::Sum)),
        ranks: vec![1, 3],
    });
    let operator = Arc::new(Operator {
        op_type: "all_reduce".into(),
        op_name: "loss".into(),
        inputs: vec!["x".into()],
        outputs: vec!["y".into()],
        collective: Some(collective.clone()),
        output_placements: vec![Some(placement.clone())],
        ..Operator::default()
    });
    let model = Arc::new(ModelId::first_load("net", ""));
    for step in 0..2 {
        let record = Record {
            model: model.clone(),
            operator: operator.clone(),
            step,
            timestamp_us: step,
            inputs: vec![(0, tensor(step, 1, 3))],
            outputs: vec![(0, tensor(step, 2, 3))],
        };
        sink.write(&record).unwrap();
    }
    sink.end_step(&model, 0).unwrap();
    let index = read(dir.path());
    assert_eq!(index.tensors.len(), 4);
    for pair in index.tensors.chunks(2) {
        assert_eq!(pair[0].execution.collective.as_ref(), Some(&collective));
        assert_eq!(pair[0].placement, None);
        assert_eq!(pair[1].placement.as_ref(), Some(&placement));
    }
}

fn with_limited_files(dir: &Path) {
    for (name, on_failure) in [
        ("drop", FailurePolicy::Drop),
        ("stop", FailurePolicy::StopCapture),
    ] {
        let dir = dir.join(name);
        let options = SessionOptions {
            on_failure,
            n_writers: 1,
            ..SessionOptions::default()
        };
        let summary = run(&dir, options, 10, N_LARGE);
        let c = summary.counters;
        assert!(c.n_written > 0 && c.n_failed > 0, "{c:?}");
        assert_eq!(c.n_selected, c.n_written + c.n_dropped + c.n_failed);
        let index = read(&dir);
        assert_eq!(index.tensors.len() as u64, c.n_written, "{name}");
        let found = contents(&index);
        let all = expected(0..10, N_LARGE);
        assert!(
            found
                .iter()
                .all(|(slot, bytes)| all.get(slot) == Some(bytes))
        );
        // Errors name their place.
        let error = summary.first_error.unwrap().to_string();
        assert!(error.contains("elements-0.safetensors"), "{error}");
    }
}

/// Step, operator and slot.
type SlotName = (u64, String, u32);

/// Runs a model of two operators, both of which read what the one before gave.
fn run(dir: &Path, options: SessionOptions, n_steps: u64, n_bytes: usize) -> SessionSummary {
    let sink = NativeSink::create(dir, [TIME.to_owned()], PermissionModes::default()).unwrap();
    let session = CaptureSession::start(Plan::everything(), Arc::new(sink), options).unwrap();
    let model = Arc::new(ModelId::first_load("net", ""));
    let operators: Vec<Arc<Operator>> = (0..2).map(operator).collect();
    let (mut tap, _) = session.attach(&model, &operators, &["x".to_owned()]);
    for step in 0..n_steps {
        tap.begin_step(step);
        for operator in &operators {
            let Some(mut probe) = tap.open(operator) else {
                continue;
            };
            let task = u64::from(operator.task_id);
            probe.input(0, tensor(step, task, n_bytes));
            probe.output(0, tensor(step, task + 1, n_bytes));
            probe.submit();
        }
        tap.end_step();
    }
    drop(tap);
    session.finish()
}

fn operator(task_id: u32) -> Arc<Operator> {
    Arc::new(Operator {
        task_id,
        op_type: "Relu".into(),
        op_name: format!("op{task_id}"),
        inputs: vec![format!("x{task_id}")],
        outputs: vec![format!("x{}", task_id + 1)],
        ..Operator::default()
    })
}

/// A content that no other value of the run has.
fn bytes(step: u64, value: u64, n_bytes: usize) -> Vec<u8> {
    let seed = step * 3 + value;
    (0..n_bytes as u64).map(|i| (seed + i / 7) as u8).collect()
}

fn tensor(step: u64, value: u64, n_bytes: usize) -> Tensor {
    let shape = Shape::new([n_bytes]).unwrap();
    Tensor::from_vec(DType::U8, shape, bytes(step, value, n_bytes)).unwrap()
}

fn expected(steps: std::ops::Range<u64>, n_bytes: usize) -> BTreeMap<SlotName, Vec<u8>> {
    let slots = steps.flat_map(|step| (0..2).flat_map(move |task| [0, 1].map(|i| (step, task, i))));
    let all = slots.map(|(step, task, i)| {
        let name = (step, format!("op{task}"), i);
        (name, bytes(step, task + u64::from(i), n_bytes))
    });
    all.collect()
}

/// The elements of every tensor; inputs are slot 0 and outputs slot 1 here.
fn contents(index: &DumpIndex) -> BTreeMap<SlotName, Vec<u8>> {
    let all = index.tensors.iter().map(|record| {
        let file = TensorFile::open_elements(record).unwrap();
        let bytes = file.elements(file.tensors().next().unwrap()).unwrap();
        let bytes = bytes.as_ref().to_vec();
        let is_output = record.slot.unwrap().0.name() == "output";
        let execution = &record.execution;
        let name = execution.op_name.to_string();
        ((execution.step.unwrap(), name, u32::from(is_output)), bytes)
    });
    all.collect()
}

/// Reads a dump in all ways, which have to agree.
fn read(dir: &Path) -> DumpIndex {
    let index = read_dump(dir, &mut |_| Vec::new()).unwrap();
    assert!(index.errors.is_empty(), "{:?}", index.errors);
    let mut handed_over = Vec::new();
    let take = &mut |tensors| handed_over.extend::<Vec<_>>(tensors);
    let rest = read_dump_into(dir, &mut |_| Vec::new(), take).unwrap();
    assert_eq!(handed_over, index.tensors);
    assert!(rest.tensors.is_empty());
    let overview = read_overview(dump::list(dir), &mut |_| Vec::new());
    assert!(overview.tensors.is_empty());
    // The tensors that were handed over have all that tables would.
    assert!(rest.tables.is_empty());
    assert_eq!(overview.tables.len(), index.tables.len());
    for other in [rest, overview] {
        assert_eq!(other.files, index.files);
        assert_eq!(other.passed_over.len(), index.passed_over.len());
    }
    index
}

/// The files below a directory with their sizes.
fn sizes_below(dir: &Path) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            sizes.extend(sizes_below(&entry.path()));
        } else {
            sizes.insert(entry.file_name().into_string().unwrap(), metadata.len());
        }
    }
    sizes
}
