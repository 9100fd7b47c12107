//! A loaded model with inputs for it, and what it answers to them.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink};
use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::Tract;
use opscope_engine::{DeclaredDim, Engine, LoadOptions, LoadedModel, ModelSource};
use opscope_store::record::ModelId;
use opscope_tensor::{Shape, Tensor};

/// Extents used, in this order, where the model leaves them open.
const OPEN_EXTENTS: [usize; 2] = [1, 128];

pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) model: Box<dyn LoadedModel>,
    inputs: Vec<Tensor>,
    expected: Vec<Tensor>,
}

impl Subject {
    pub(crate) fn load(path: &Path) -> Subject {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut model = Tract
            .load(
                ModelSource::File(path),
                &LoadOptions::with_threads(n_threads),
            )
            .unwrap();
        let inputs = inputs(&*model);
        let expected = model.run(&inputs, None).unwrap();
        Subject {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            model,
            inputs,
            expected,
        }
    }

    /// Runs without any dump.
    pub(crate) fn run_plain(&mut self, n_steps: u64) {
        for _ in 0..n_steps {
            let outputs = self.model.run(&self.inputs, None).unwrap();
            check(&self.expected, &outputs);
        }
    }

    /// Runs under a dump that is off.
    pub(crate) fn run_switched_off(&mut self, sink: Arc<dyn Sink>, n_steps: u64) {
        let options = SessionOptions::default();
        let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
        session.set_enabled(false);
        let (mut tap, _) = session.attach(&id(), self.model.operators(), &[]);
        for step in 0..n_steps {
            tap.begin_step(step);
            let outputs = self.model.run(&self.inputs, Some(&tap)).unwrap();
            check(&self.expected, &outputs);
            tap.end_step();
        }
        assert_eq!(session.finish().counters.n_selected, 0);
    }

    /// Runs under `sink` until the last tensor is dealt with.
    pub(crate) fn run_captured(
        &mut self,
        sink: Arc<dyn Sink>,
        options: SessionOptions,
        n_steps: u64,
    ) -> SessionSummary {
        let session = CaptureSession::start(Plan::everything(), sink, options).unwrap();
        let (mut tap, _) = session.attach(&id(), self.model.operators(), &[]);
        for step in 0..n_steps {
            tap.begin_step(step);
            let outputs = self.model.run(&self.inputs, Some(&tap)).unwrap();
            check(&self.expected, &outputs);
            tap.end_step();
        }
        session.finish()
    }
}

fn inputs(model: &dyn LoadedModel) -> Vec<Tensor> {
    let mut random = RandomNumbers::new(1);
    let make = |value: &opscope_engine::ValueInfo| {
        let mut open = OPEN_EXTENTS.iter();
        let dims = value.dims.iter().flatten().map(|dim| match dim {
            DeclaredDim::Fixed(n) => *n,
            DeclaredDim::Named(_) | DeclaredDim::Unknown => *open.next().unwrap_or(&1),
        });
        let shape = Shape::new(dims.collect::<Vec<_>>()).unwrap();
        random
            .tensor(value, resolve_shape(value, Some(&shape)).unwrap())
            .unwrap()
    };
    model.signature().inputs.iter().map(make).collect()
}

pub(crate) fn id() -> Arc<ModelId> {
    Arc::new(ModelId {
        file_stem: "m".into(),
        graph_name: "g".into(),
        load: Some(1),
        device: 0,
    })
}

fn check(expected: &[Tensor], found: &[Tensor]) {
    let is_same = |(a, b): (&Tensor, &Tensor)| a.host_bytes().unwrap() == b.host_bytes().unwrap();
    assert!(expected.iter().zip(found).all(is_same));
}
