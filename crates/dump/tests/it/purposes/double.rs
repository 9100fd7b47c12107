//! An engine of a few lines: operators are shown by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink, Tap};
use opscope_dump::AclSink;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::record::{ModelId, Operator};
use opscope_tensor::{DType, Shape, Tensor};

pub(crate) const TIME: &str = "20240102030405";

pub(crate) fn operator(
    task_id: u32,
    op_type: &str,
    op_name: &str,
    inputs: &[&str],
    outputs: &[&str],
) -> Arc<Operator> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(Operator {
        task_id,
        op_type: op_type.into(),
        op_name: op_name.into(),
        inputs: owned(inputs),
        outputs: owned(outputs),
        ..Operator::default()
    })
}

pub(crate) fn model() -> Arc<ModelId> {
    Arc::new(ModelId::first_load("net", "graph"))
}

pub(crate) fn floats(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

/// Shows one execution as an engine does.
pub(crate) fn execute(tap: &Tap, operator: &Arc<Operator>, inputs: &[Tensor], outputs: &[Tensor]) {
    let Some(mut probe) = tap.open(operator) else {
        return;
    };
    if probe.wants_inputs() {
        for (i, tensor) in inputs.iter().enumerate() {
            probe.input(i, tensor.clone());
        }
    }
    if probe.wants_outputs() {
        for (i, tensor) in outputs.iter().enumerate() {
            probe.output(i, tensor.clone());
        }
    }
    probe.submit();
}

/// Runs `body` under a session and checks that every tensor is accounted for.
pub(crate) fn with_session(
    plan: Plan,
    sink: Arc<dyn Sink>,
    operators: &[Arc<Operator>],
    graph_inputs: &[&str],
    body: impl FnOnce(&mut Tap),
) -> SessionSummary {
    let graph_inputs: Vec<String> = graph_inputs.iter().map(|name| (*name).into()).collect();
    let session = CaptureSession::start(plan, sink, SessionOptions::default()).unwrap();
    let (mut tap, _) = session.attach(&model(), operators, &graph_inputs);
    body(&mut tap);
    let summary = session.finish();
    let c = summary.counters;
    assert_eq!(
        c.n_selected,
        c.n_written + c.n_dropped + c.n_failed,
        "{c:?}"
    );
    summary
}

pub(crate) fn lazy_sink(dump_path: &Path) -> AclSink {
    AclSink::lazy(dump_path, TIME, PermissionModes::default())
}

/// The files below a directory by relative path, time stamps and times replaced by letters.
pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                let old = files.insert(timeless(name), std::fs::read(&path).unwrap());
                assert!(old.is_none(), "{name} is there twice");
            }
        }
    }
    files
}

/// A path with its stamp of 16 digits, or local time of 17, replaced.
pub(crate) fn timeless(path: &str) -> String {
    let fields = path.split('.').map(|field| {
        match (field.bytes().all(|b| b.is_ascii_digit()), field.len()) {
            (true, 16) => "STAMP",
            (true, 17) => "LOCALTIME",
            _ => field,
        }
    });
    fields.collect::<Vec<_>>().join(".")
}
