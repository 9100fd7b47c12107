//! The fake engine under plans that look for what went wrong.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, FailureDetail, ModelSelection, OperatorSelection, Plan, Purpose,
    SessionOptions, SessionSummary, Sink,
};
use opscope_dump::AclSink;
use opscope_engine::fake::FakeModel;
use opscope_engine::{EngineError, LoadedModel, ModelSignature};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::dump;
use opscope_store::file_bytes::FileBytes;
use opscope_store::record::ModelId;
use opscope_tensor::{DType, Shape, Tensor};

fn run(
    mut model: FakeModel,
    plan: Plan,
    sink: Arc<dyn Sink>,
) -> (SessionSummary, Option<EngineError>) {
    let session = CaptureSession::start(plan, sink, SessionOptions::default()).unwrap();
    let id = ModelId::first_load("net", "");
    let (tap, _) = session.attach(&Arc::new(id), model.operators(), &[]);
    let error = model.run(&[], Some(&tap)).err();
    (session.finish(), error)
}

fn bytes(values: &[u8]) -> Tensor {
    let shape = Shape::new([values.len()]).unwrap();
    Tensor::from_vec(DType::U8, shape, values.to_vec()).unwrap()
}

#[test]
fn an_operator_that_writes_into_another_ones_output_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("buffer");
    // A tensor over a mapped file is memory that changes when the file does.
    let content = vec![1; 1 << 17];
    std::fs::write(&path, &content).unwrap();
    let shape = Shape::new([content.len()]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mapped = Arc::new(FileBytes::map_part(&file, 0..content.len()).unwrap());
    let live = Tensor::new(DType::U8, shape, mapped).unwrap();
    let model = FakeModel::new(ModelSignature::default())
        .with("Relu", "victim", &[], &["a"], move |_| {
            Ok(vec![live.clone()])
        })
        .with("Add", "innocent", &["a"], &["b"], |_| Ok(vec![bytes(&[0])]))
        .with("Mul", "culprit", &["b"], &["c"], move |_| {
            file.write_all_at(&[9], 100)
                .map_err(|error| error.to_string())?;
            Ok(vec![bytes(&[0])])
        });
    let plan = Plan {
        purpose: Purpose::Watch,
        models: ModelSelection::Every(OperatorSelection {
            watched: vec!["victim".into()],
            ..OperatorSelection::every()
        }),
        ..Plan::everything()
    };
    let sink = Arc::new(MemorySink::default());
    let (summary, error) = run(model, plan, sink.clone());
    assert!(error.is_none());
    let records = sink.take();
    let hundredth: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.operator.op_name.as_str(),
                r.outputs[0].1.host_bytes().unwrap()[100],
            )
        })
        .collect();
    assert_eq!(
        hundredth,
        [
            ("victim", 1),
            ("innocent_To_victim", 1),
            ("culprit_To_victim", 9)
        ]
    );
    let [overwrite] = &summary.overwrites[..] else {
        panic!("{:?}", summary.overwrites);
    };
    assert_eq!(overwrite.seen_after.op_name, "culprit");
    assert_eq!((overwrite.first_element, overwrite.n_bytes), (100, 1));
}

#[test]
fn an_operator_that_fails_leaves_its_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let model = FakeModel::new(ModelSignature::default())
        .with("Relu", "fine", &[], &["a"], |_| Ok(vec![bytes(&[1, 2])]))
        .with("Add", "broken", &["a"], &["b"], |_| Err("no".into()));
    let plan = Plan {
        purpose: Purpose::Failures(FailureDetail::Normal),
        ..Plan::everything()
    };
    let sink = AclSink::lazy(dir.path(), "20240102030405", PermissionModes::default());
    let (summary, error) = run(model, plan, Arc::new(sink));
    assert!(matches!(error, Some(EngineError::Operator { .. })));
    assert_eq!(
        (summary.counters.n_selected, summary.counters.n_written),
        (1, 1)
    );
    let entries = dump::list(dir.path()).entries;
    assert_eq!(entries.len(), 1);
    assert!(entries[0].real_name.starts_with("Add.broken.1."));
}

#[test]
fn a_step_while_the_dump_is_off_runs_as_without_a_tap() {
    let (plan, sink) = (Plan::everything(), Arc::new(MemorySink::default()));
    let session = CaptureSession::start(plan, sink.clone(), SessionOptions::default()).unwrap();
    let mut model =
        FakeModel::new(ModelSignature::default())
            .with("Relu", "only", &[], &["a"], |_| Ok(vec![bytes(&[7])]));
    let (mut tap, _) = session.attach(&Arc::default(), model.operators(), &[]);
    for step in 0..3 {
        session.set_enabled(step != 1);
        tap.begin_step(step);
        model.run(&[], Some(&tap)).unwrap();
    }
    let counters = session.finish().counters;
    assert_eq!((counters.n_steps, counters.n_steps_active), (3, 2));
    assert_eq!((counters.n_operators_seen, counters.n_written), (2, 2));
    let steps: Vec<u64> = sink.take().iter().map(|record| record.step).collect();
    assert_eq!(steps, [0, 2]);
}

/// Operators that read each other's results, overflow, and fail in the end.
fn chain() -> FakeModel {
    let f32s = |values: &[f32]| {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
    };
    let read = |tensor: &Tensor| -> Vec<f32> {
        let chunks = tensor.host_bytes().unwrap().chunks_exact(4);
        chunks
            .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect()
    };
    FakeModel::new(ModelSignature::default())
        .with("Constant", "start", &[], &["a"], move |_| {
            // Large enough that copies of it come from memory that is used again.
            Ok(vec![f32s(&vec![f32::MAX; 10_000])])
        })
        .with("Add", "double", &["a", "a"], &["b"], move |inputs| {
            let doubled: Vec<f32> = read(&inputs[0]).iter().map(|v| v + v).collect();
            Ok(vec![f32s(&doubled)])
        })
        .with("Relu", "keep", &["b"], &["c"], |inputs| {
            Ok(vec![inputs[0].clone()])
        })
        .with("Sub", "broken", &["c", "a"], &["d"], |_| Err("no".into()))
}

#[test]
fn an_engine_that_reuses_its_memory_leaves_the_same_dump() {
    let purposes = [
        Purpose::Values,
        Purpose::Overflow,
        Purpose::NonFinite,
        Purpose::Failures(FailureDetail::Normal),
    ];
    for purpose in purposes {
        let records = |model: FakeModel| {
            let plan = Plan {
                purpose,
                ..Plan::everything()
            };
            let sink = Arc::new(MemorySink::default());
            let (summary, _) = run(model, plan, sink.clone());
            let slots: Vec<_> = sink
                .take()
                .iter()
                .flat_map(|record| {
                    let name = &record.operator.op_name;
                    let slots = record.slots();
                    slots
                        .map(|(side, i, tensor)| {
                            (name.clone(), side, i, tensor.host_bytes().unwrap().to_vec())
                        })
                        .collect::<Vec<_>>()
                })
                .collect();
            (summary.counters, slots)
        };
        let (own, in_place) = (records(chain()), records(chain().in_place()));
        assert!(!own.1.is_empty());
        assert!(own == in_place, "{purpose:?}: {:?} {:?}", own.0, in_place.0);
    }
}
