//! A model in a separate session, run in one way.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink};
use opscope_dump::StatsSink;
use opscope_engine::input::{RandomNumbers, resolve_shape};
use opscope_engine::onnx::OnnxRuntime;
use opscope_engine::{DeclaredDim, Engine, LoadOptions, LoadedModel, ModelSource, ValueInfo};
use opscope_store::reader::{IndexedTensor, TensorFile, read_dump};
use opscope_store::record::{ModelId, Record, SlotSide};
use opscope_tensor::digest::{hex, xxh3_128};
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
    /// Every content once, as it is written at the least.
    different: Vec<Tensor>,
}

impl Volume {
    pub(crate) fn n_bytes_different(&self) -> usize {
        self.different.iter().map(Tensor::n_bytes).sum()
    }

    /// Writes the different contents to one plain file in `dir`.
    pub(crate) fn write(&self, dir: &Path) {
        let mut file = File::create(dir.join("plain")).unwrap();
        for tensor in &self.different {
            file.write_all(tensor.host_bytes().unwrap()).unwrap();
        }
    }
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
            dir: tempfile::tempdir_in(mode.place()).unwrap(),
        }
    }

    /// Begins with an empty directory.
    pub(crate) fn clear(&mut self) {
        self.dir = tempfile::tempdir_in(self.mode.place()).unwrap();
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
        let mut seen = HashSet::new();
        let mut is_new = |tensor: &&Tensor| seen.insert(xxh3_128(tensor.host_bytes().unwrap()));
        Volume {
            n_slots: expected.len(),
            n_bytes: expected.values().map(Tensor::n_bytes).sum(),
            different: expected.values().filter(|t| is_new(t)).cloned().collect(),
        }
    }

    /// Whether a dump in our own form has a row for each slot of `n_steps` executions, with the
    /// elements, or the numbers, of the model's outputs.
    pub(crate) fn check_dump(&self, volume: &Volume, n_steps: u64) {
        let index = read_dump(self.dir.path(), &mut |_| Vec::new()).unwrap();
        assert!(index.errors.is_empty(), "{:?}", index.errors);
        assert_eq!(index.tensors.len() as u64, volume.n_slots as u64 * n_steps);
        for output in &self.expected {
            let bytes = output.host_bytes().unwrap();
            let digest = hex(&xxh3_128(bytes));
            // Both forms tell contents by their digest.
            let has_digest = |row: &&IndexedTensor| {
                let mut cells = row.statistics.iter().filter_map(|(_, cell)| cell);
                cells.any(|cell| *cell == digest)
            };
            let row = index.tensors.iter().rev().find(has_digest).unwrap();
            if self.mode.has_native_tensors() {
                let file = TensorFile::open_elements(row).unwrap();
                let found = file.elements(file.tensors().next().unwrap()).unwrap();
                assert!(found.as_ref() == bytes);
            } else {
                let largest = stats(output.host_view().unwrap()).unwrap().max;
                let largest = format!("{largest:?}");
                let mut cells = row.statistics.iter();
                assert!(cells.any(|(_, cell)| cell.as_deref() == Some(&*largest)));
            }
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
    Arc::new(ModelId::first_load("m", "g"))
}

fn check(expected: &[Tensor], found: &[Tensor]) {
    let is_same = |(a, b): (&Tensor, &Tensor)| a.host_bytes().unwrap() == b.host_bytes().unwrap();
    assert_eq!(expected.len(), found.len());
    assert!(expected.iter().zip(found).all(is_same));
}
