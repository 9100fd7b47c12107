//! The AscendCL sink on a real directory.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{CaptureSession, Plan, SessionOptions, Sink};
use opscope_dump::AclSink;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::dump;
use opscope_store::file_format::dump_data::DumpFile;
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor, text};

fn record(op_name: &str, timestamp_us: u64) -> Record {
    let tensor = Tensor::from_vec(DType::U8, Shape::new([3]).unwrap(), vec![1, 2, 3]).unwrap();
    Record {
        model: Arc::new(ModelId::first_load("net", "g")),
        operator: Arc::new(Operator {
            task_id: 4,
            op_type: "Relu".into(),
            op_name: op_name.into(),
            inputs: vec!["x".into()],
            outputs: vec!["y".into()],
            ..Operator::default()
        }),
        step: 0,
        timestamp_us,
        inputs: vec![],
        outputs: vec![(0, tensor)],
    }
}

fn sink(dir: &Path) -> AclSink {
    AclSink::create(
        dir,
        ["20240102030405".to_owned()],
        PermissionModes::default(),
    )
    .unwrap()
}

#[test]
fn a_taken_name_gets_a_later_stamp() {
    let dir = tempfile::tempdir().unwrap();
    let sink = sink(dir.path());
    for _ in 0..3 {
        sink.write(&record("a/b", 100)).unwrap();
    }
    let names: Vec<_> = dump::list(dir.path())
        .entries
        .into_iter()
        .map(|e| e.real_name)
        .collect();
    assert_eq!(
        names,
        ["Relu.a_b.4.0.100", "Relu.a_b.4.0.101", "Relu.a_b.4.0.102"]
    );
}

#[test]
fn long_names_are_mapped_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("block/{}", "very_long_".repeat(40));
    let sink = sink(dir.path());
    sink.write(&record(&long, 100)).unwrap();
    sink.write(&record(&long, 100)).unwrap();
    let listing = dump::list(dir.path());
    assert_eq!(listing.entries.len(), 2);
    for entry in &listing.entries {
        let stored = entry.path.file_name().unwrap().to_str().unwrap();
        assert!(stored.bytes().all(|b| b.is_ascii_digit()), "{stored}");
        assert_eq!(entry.name.as_ref().unwrap().op_name, long.replace('/', "_"));
        assert_eq!(DumpFile::open(&entry.path).unwrap().header().op_name, long);
    }
}

#[test]
fn a_session_counts_what_is_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let options = SessionOptions::default();
    let session =
        CaptureSession::start(Plan::everything(), Arc::new(sink(dir.path())), options).unwrap();
    let template = record("op", 0);
    let (tap, _) = session.attach(
        &template.model,
        std::slice::from_ref(&template.operator),
        &[],
    );
    // The plan wants the input as well, but no engine shows it.
    let by_task = tap.open(&template.operator);
    assert!(by_task.is_some());
    let mut probe = by_task.unwrap();
    probe.output(0, template.outputs[0].1.clone());
    probe.submit();
    let c = session.finish().counters;
    assert_eq!(
        (c.n_selected, c.n_written, c.n_dropped, c.n_files),
        (2, 1, 1, 1)
    );
    let entries = dump::list(dir.path()).entries;
    assert_eq!(
        entries.iter().map(|e| e.n_bytes).sum::<u64>(),
        c.n_bytes_written
    );
}

#[test]
fn two_dumps_never_share_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let times = || ["20240102030405".to_owned(), "20240102030406".to_owned()];
    let create = || AclSink::create(dir.path(), times(), PermissionModes::default()).unwrap();
    let (first, second) = (create(), create());
    assert!(first.tree().root().ends_with("20240102030405"));
    assert!(second.tree().root().ends_with("20240102030406"));
}

#[test]
fn dtypes_that_cann_lacks_are_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let options = SessionOptions::default();
    let acl = Arc::new(sink(dir.path()));
    let session = CaptureSession::start(Plan::everything(), acl.clone(), options).unwrap();
    let mut template = record("op", 0);
    let operator = Arc::make_mut(&mut template.operator);
    operator.outputs.push("z".into());
    let operators = std::slice::from_ref(&template.operator);
    let (tap, _) = session.attach(&template.model, operators, &[]);
    let shape = Shape::new([3]).unwrap();
    let narrow = |dtype: DType, n_bytes: usize| {
        Tensor::from_vec(dtype, shape.clone(), vec![0x12; n_bytes]).unwrap()
    };
    let texts = Tensor::from_vec(DType::String, shape.clone(), text::encode(&["a", "", "ä"]));
    // One of three, then all.
    for outputs in [
        [narrow(DType::U4, 2), texts.unwrap()],
        [narrow(DType::F8E4M3FNUZ, 3), narrow(DType::U4, 2)],
    ] {
        let mut probe = tap.open(&template.operator).unwrap();
        probe.input(0, narrow(DType::F8E5M2FNUZ, 3));
        for (i, output) in outputs.into_iter().enumerate() {
            probe.output(i, output);
        }
        probe.submit();
    }
    let summary = session.finish();
    assert!(summary.first_error.is_none());
    let counters = summary.counters;
    assert_eq!(
        (
            counters.n_selected,
            counters.n_written,
            counters.n_refused,
            counters.n_files
        ),
        (6, 1, 5, 1)
    );
    let because = |dtype: &str| format!("tensor files of AscendCL have no number for {dtype}");
    assert_eq!(
        acl.refused(),
        [
            (because("float8_e4m3fnuz"), 1),
            (because("float8_e5m2fnuz"), 2),
            (because("uint4"), 2)
        ]
    );
    let listing = dump::list(dir.path());
    let file = DumpFile::open(&listing.entries[0].path).unwrap();
    let tensors: Vec<_> = file.tensors().collect();
    assert_eq!(tensors.len(), 1);
    assert_eq!(tensors[0].entry.dtype(), Some(DType::String));
    assert_eq!(tensors[0].bytes, text::encode(&["a", "", "ä"]));
}
