//! A loaded model with inputs for it, and what it answers to them.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink, Tap};
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
    /// Inputs and the answers to them, which steps take in turn: contents that come again cost
    /// less.
    samples: Vec<Sample>,
}

struct Sample {
    inputs: Vec<Tensor>,
    expected: Vec<Tensor>,
}

/// As many as a run has steps at the most.
const N_SAMPLES: u64 = 10;

impl Subject {
    pub(crate) fn load(path: &Path) -> Subject {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut model = Tract
            .load(
                ModelSource::File(path),
                &LoadOptions::with_threads(n_threads),
            )
            .unwrap();
        let samples = (1..=N_SAMPLES).map(|seed| {
            let inputs = inputs(&*model, seed);
            let expected = model.run(&inputs, None).unwrap();
            Sample { inputs, expected }
        });
        let samples = samples.collect();
        Subject {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            model,
            samples,
        }
    }

    /// Runs the model once.
    fn run(&mut self, step: u64, tap: Option<&Tap>) {
        let n_samples = self.samples.len() as u64;
        let sample = &self.samples[(step % n_samples) as usize];
        let outputs = self.model.run(&sample.inputs, tap).unwrap();
        check(&sample.expected, &outputs);
    }

    /// Runs without any dump.
    pub(crate) fn run_plain(&mut self, n_steps: u64) {
        for step in 0..n_steps {
            self.run(step, None);
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
            self.run(step, Some(&tap));
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
            self.run(step, Some(&tap));
            tap.end_step();
        }
        session.finish()
    }
}

fn inputs(model: &dyn LoadedModel, seed: u64) -> Vec<Tensor> {
    let mut random = RandomNumbers::new(seed);
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
    Arc::new(ModelId::first_load("m", "g"))
}

fn check(expected: &[Tensor], found: &[Tensor]) {
    let is_same = |(a, b): (&Tensor, &Tensor)| a.host_bytes().unwrap() == b.host_bytes().unwrap();
    assert!(expected.iter().zip(found).all(is_same));
}
