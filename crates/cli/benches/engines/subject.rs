//! A model in a session of its own, run in one way.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink};
use opscope_dump::StatsSink;
use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::OnnxRuntime;
use opscope_engine::{DeclaredDim, Engine, LoadOptions, LoadedModel, ModelSource, ValueInfo};
use opscope_store::record::{ModelId, Record, SlotSide};
use opscope_tensor::{Shape, Tensor, stats};
use tempfile::TempDir;

use crate::sinks::Mode;

/// Extent used, after the batch, where the model leaves one open.
const LENGTH: usize = 64;

pub(crate) struct Subject {
    mode: Mode,
    model: Box<dyn LoadedModel>,
    inputs: Vec<Tensor>,
    expected: Vec<Tensor>,
    dir: TempDir,
}

/// Number of slots that one execution shows, and their bytes.
pub(crate) struct Volume {
    pub(crate) n_slots: usize,
    pub(crate) n_bytes: usize,
}

impl Subject {
    pub(crate) fn load(
        library: &Path,
        path: &Path,
        mode: Mode,
        n_threads: usize,
        n_batch: usize,
    ) -> Subject {
        let engine = OnnxRuntime::load(library).unwrap();
        let options = LoadOptions::with_threads(n_threads);
        let mut model = engine.load(ModelSource::File(path), &options).unwrap();
        let inputs = inputs(&*model, n_batch);
        let expected = model.run(&inputs, None).unwrap();
        Subject {
            mode,
            model,
            inputs,
            expected,
            dir: tempfile::tempdir_in(".").unwrap(),
        }
    }

    pub(crate) fn n_operators(&self) -> usize {
        self.model.operators().len()
    }

    /// Executes the model and checks what it answers.
    pub(crate) fn run(&mut self, n_steps: u64) {
        let Some(sink) = self.mode.sink(self.dir.path()) else {
            for _ in 0..n_steps {
                let outputs = self.model.run(&self.inputs, None).unwrap();
                check(&self.expected, &outputs);
            }
            return;
        };
        let summary = self.captured(sink, self.mode.options(), n_steps);
        let counters = summary.counters;
        let n_taken = match self.mode {
            Mode::Taps => 0,
            _ => counters.n_selected,
        };
        assert_eq!(counters.n_written, n_taken, "{counters:?}");
        let n_operators = self.n_operators() as u64;
        assert_eq!(counters.n_operators_seen, n_steps * n_operators);
    }

    fn captured(
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

    /// Takes statistics of every slot and compares them with those of the tensors themselves.
    pub(crate) fn check_statistics(&mut self) -> Volume {
        let tensors = Arc::new(MemorySink::default());
        let whole = SessionOptions {
            queue_bytes_max: u64::MAX,
            ..SessionOptions::default()
        };
        self.captured(tensors.clone(), whole, 1);
        let records = tensors.take();
        let key = |record: &Record, side: SlotSide, i: usize| (record.operator.task_id, side, i);
        let expected: HashMap<_, Tensor> = records
            .iter()
            .flat_map(|record| {
                let slots = record.slots();
                slots.map(move |(side, i, tensor)| (key(record, side, i), tensor.clone()))
            })
            .collect();
        let rows = Arc::new(StatsSink::default());
        self.captured(rows.clone(), SessionOptions::default(), 1);
        let rows = rows.take().unwrap();
        assert_eq!(rows.len(), expected.len());
        for row in &rows {
            let tensor = &expected[&(row.operator.task_id, row.side, row.index)];
            assert_eq!(
                row.stats,
                stats(tensor.host_view().unwrap()).ok(),
                "{}",
                row.operator.op_name
            );
        }
        Volume {
            n_slots: expected.len(),
            n_bytes: expected.values().map(Tensor::n_bytes).sum(),
        }
    }
}

fn inputs(model: &dyn LoadedModel, n_batch: usize) -> Vec<Tensor> {
    let mut random = RandomNumbers::new(1);
    let make = |value: &ValueInfo| {
        let dims = value.dims.iter().flatten().enumerate();
        let extents = dims.map(|(axis, dim)| match dim {
            DeclaredDim::Fixed(n) => *n,
            DeclaredDim::Named(_) | DeclaredDim::Unknown if axis == 0 => n_batch,
            DeclaredDim::Named(_) | DeclaredDim::Unknown => LENGTH,
        });
        let shape = Shape::new(extents.collect::<Vec<_>>()).unwrap();
        let shape = resolve_shape(value, Some(&shape)).unwrap();
        random.tensor(value, shape).unwrap()
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

fn check(expected: &[Tensor], found: &[Tensor]) {
    let is_same = |(a, b): (&Tensor, &Tensor)| a.host_bytes().unwrap() == b.host_bytes().unwrap();
    assert_eq!(expected.len(), found.len());
    assert!(expected.iter().zip(found).all(is_same));
}
