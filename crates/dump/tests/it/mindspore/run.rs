//! A model of two operators, and a session that dumps it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{
    CaptureSession, GraphView, Plan, RingOptions, SessionOptions, SessionSummary, Sink, Tap,
};
use opscope_dump::{FileSharing, MindSporeOptions, MindSporeSink, RuntimeMode};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::record::graph::TensorType;
use opscope_store::record::{ModelId, Operator};
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::{DType, Shape, Tensor};

pub(crate) fn options(dir: &Path, target: TreeTarget) -> MindSporeOptions {
    MindSporeOptions {
        target,
        path: dir.to_owned(),
        rank: 0,
        net_name: "Net".into(),
        first_iteration: 0,
        has_tensors: true,
        statistics: None,
        device_statistics: None,
        n_samples: None,
        has_host_layout: true,
        is_bin: false,
        dedup: FileSharing::default(),
        compression: None,
        has_kernel_args: false,
        has_parameters_only: false,
        runtime: RuntimeMode::Values("all"),
        configuration: b"{}".to_vec(),
        time: "20240102030405".into(),
        modes: PermissionModes::default(),
    }
}

/// Returns the type that the model gives for `conv.weight`.
pub(crate) fn weight_type() -> TensorType {
    TensorType {
        dtype: DType::F16,
        shape: vec![8, 3, -1],
    }
}

pub(crate) fn tensor(dtype: DType, dims: &[usize], bytes: &[u8]) -> Tensor {
    Tensor::from_vec(dtype, Shape::new(dims).unwrap(), bytes.to_vec()).unwrap()
}

pub(crate) fn floats(values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    tensor(DType::F32, &[values.len()], &bytes)
}

/// `/conv/Conv` reads the model's input `x` and the weight `conv.weight`; `/add/Add` adds a
/// constant.
pub(crate) fn operators() -> Vec<Arc<Operator>> {
    let operator = |task_id, op_type: &str, op_name: &str, inputs: [&str; 2], output: &str| {
        Arc::new(Operator {
            task_id,
            op_type: op_type.into(),
            op_name: op_name.into(),
            inputs: inputs.map(Into::into).into(),
            outputs: vec![output.into()],
            attributes: vec![("group".into(), "1".into()), ("axis".into(), "[1]".into())],
            ..Operator::default()
        })
    };
    vec![
        operator(0, "Conv", "/conv/Conv", ["x", "conv.weight"], "h"),
        operator(1, "Add", "/add/Add", ["h", "c"], "y"),
    ]
}

pub(crate) fn execute(tap: &Tap, operator: &Arc<Operator>, inputs: &[Tensor], output: &Tensor) {
    let Some(mut probe) = tap.open(operator) else {
        return;
    };
    if probe.wants_inputs() {
        for (i, input) in inputs.iter().enumerate() {
            probe.input(i, input.clone());
        }
    }
    if probe.wants_outputs() {
        probe.output(0, output.clone());
    }
    probe.submit();
}

/// Runs the model `n_steps` times; `h` is what the first operator makes.
pub(crate) fn run(
    options: MindSporeOptions,
    plan: Plan,
    n_steps: u64,
    h: &Tensor,
) -> SessionSummary {
    run_with(options, plan, |tap, operators| {
        run_steps(tap, operators, n_steps, h);
    })
}

pub(crate) fn run_steps(tap: &mut Tap, operators: &[Arc<Operator>], n_steps: u64, h: &Tensor) {
    for step in 0..n_steps {
        tap.begin_step(step);
        let (x, w) = (floats(&[1.0, 2.0]), floats(&[3.0]));
        execute(tap, &operators[0], &[x, w], h);
        let c = floats(&[0.5]);
        execute(tap, &operators[1], &[h.clone(), c], &floats(&[9.0, -1.0]));
        tap.end_step();
    }
}

pub(crate) fn run_with(
    options: MindSporeOptions,
    plan: Plan,
    work: impl FnOnce(&mut Tap, &[Arc<Operator>]),
) -> SessionSummary {
    run_in_ring(options, plan, None, work)
}

/// Runs `work` where steps that are too old are removed again.
pub(crate) fn run_in_ring(
    options: MindSporeOptions,
    plan: Plan,
    ring: Option<RingOptions>,
    work: impl FnOnce(&mut Tap, &[Arc<Operator>]),
) -> SessionSummary {
    let sink = MindSporeSink::create(options).unwrap();
    run_sink(Arc::new(sink), plan, ring, work)
}

pub(crate) fn run_sink(
    sink: Arc<dyn Sink>,
    plan: Plan,
    ring: Option<RingOptions>,
    work: impl FnOnce(&mut Tap, &[Arc<Operator>]),
) -> SessionSummary {
    let one_writer = SessionOptions {
        n_writers: 1,
        ring,
        ..SessionOptions::default()
    };
    let session = CaptureSession::start(plan, sink, one_writer).unwrap();
    let model = Arc::new(ModelId::first_load("net", "g"));
    let operators = operators();
    let graph = GraphView {
        operators: &operators,
        inputs: &["x".to_owned()],
        constants: &["c".to_owned()],
        types: &[("conv.weight".to_owned(), weight_type())],
        ..GraphView::default()
    };
    let (mut tap, _) = session.attach_graph(&model, graph);
    work(&mut tap, &operators);
    let summary = session.finish();
    assert!(
        summary.first_error.is_none(),
        "{}",
        summary.first_error.unwrap()
    );
    let c = summary.counters;
    assert_eq!(c.n_selected, c.n_written + c.n_refused + c.n_dropped);
    summary
}

/// Every file below `dir`, sorted, with `T` in place of times in names.
pub(crate) fn files(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, &mut found);
    let relative = |path: PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
    let mut names: Vec<String> = found.into_iter().map(relative).collect();
    for name in &mut names {
        let is_time = |part: &&str| part.len() == 16 && part.bytes().all(|b| b.is_ascii_digit());
        let time = name.split('.').find(is_time).map(str::to_owned);
        if let Some(time) = time {
            *name = name.replace(&time, "T");
        }
    }
    names.sort();
    names
}

pub(crate) fn text(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap()
}
