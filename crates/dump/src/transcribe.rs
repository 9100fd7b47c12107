//! A dump of any form, written again in another one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Sink, SinkError, WrittenFiles};
use opscope_store::atomic_file::Creator;
use opscope_store::reader::{ExecutionKind, FileKind, IndexedExecution, IndexedTensor, TensorFile};
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_store::tree::own;
use opscope_store::{SharedPath, SharedText, StoreError, regular_file};
use opscope_tensor::{DType, Layout, Tensor};

use crate::destination::DumpPlace;

/// The outcome of [`transcribe`].
#[derive(Debug, Default)]
pub struct TranscriptionReport {
    /// Executions of models.
    pub n_steps: u64,
    /// Executions of operators that were written.
    pub n_executions: u64,
    /// Tensors that were written.
    pub n_tensors: u64,
    /// Files and bytes.
    pub written: WrittenFiles,
    /// Tensors that are not in the new dump, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Executions that could not be read or written.
    pub errors: Vec<TranscriptionError>,
}

/// Why an execution is not in the new dump.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptionError {
    /// Its elements cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// Its elements do not match the dump's description.
    #[error("`{path}`: {reason}", path = path.display())]
    Elements {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The sink refused.
    #[error(transparent)]
    Write(#[from] SinkError),
}

/// A model's name, its load and the rank.
type ModelKey = (Option<SharedText>, Option<u32>, Option<u32>);

impl TranscriptionReport {
    /// Adds the outcome of other executions.
    pub fn add(&mut self, other: TranscriptionReport) {
        self.n_steps += other.n_steps;
        self.n_executions += other.n_executions;
        self.n_tensors += other.n_tensors;
        self.written = self.written + other.written;
        for (reason, n) in other.left_out {
            *self.left_out.entry(reason).or_default() += n;
        }
        self.errors.extend(other.errors);
    }

    /// The counts, as the records of runs have them.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let n_refused = self.left_out.values().sum();
        let n_failed = self.errors.len() as u64;
        let counts = [
            ("n_steps", self.n_steps),
            ("n_operators_written", self.n_executions),
            ("n_offered", self.n_tensors + n_refused),
            ("n_selected", self.n_tensors),
            ("n_refused", n_refused),
            ("n_written", self.n_tensors),
            ("n_whole", self.n_tensors),
            ("n_failed", n_failed),
            ("n_dropped", 0),
            ("n_files", self.written.n_files),
            ("n_linked", self.written.n_linked),
            ("n_bytes_written", self.written.n_bytes),
            ("n_bytes_linked", self.written.n_bytes_linked),
        ];
        counts.map(|(name, n)| (name.to_owned(), n)).into()
    }
}

/// Writes the executions of a dump to `sink`. Missing times are generated, so that the order stays.
/// Tensors without elements, parameters, constants and overflow records are left out, and counted.
pub fn transcribe(tensors: &[IndexedTensor], sink: &dyn Sink) -> TranscriptionReport {
    let mut report = TranscriptionReport::default();
    let mut models: BTreeMap<ModelKey, Arc<ModelId>> = BTreeMap::new();
    let mut open: Option<(Arc<ModelId>, u64)> = None;
    let mut steps = BTreeSet::new();
    let mut file = LastFile::default();
    let mut last_time = 0;
    let groups = tensors.chunk_by(|a, b| Arc::ptr_eq(&a.execution, &b.execution));
    for group in groups {
        let execution = &group[0].execution;
        // Sinks write executions of operators alone.
        if execution.kind != ExecutionKind::Operator {
            let reason = format!(
                "it belongs to a {}",
                execution.kind.name().replace('_', " ")
            );
            *report.left_out.entry(reason).or_default() += group.len() as u64;
            continue;
        }
        let n_models = models.len();
        let key = (execution.model.clone(), execution.model_id, execution.rank);
        let model = models
            .entry(key.clone())
            .or_insert_with(|| model_of(execution, n_models));
        let step = execution.model_step().unwrap_or(0);
        // A step ends before the next one begins, or its table would wait for the end of the dump.
        if open
            .as_ref()
            .is_none_or(|(known, at)| !Arc::ptr_eq(known, model) || *at != step)
        {
            end_step(sink, open.take(), &mut report);
            note(sink.begin_step(model, step), &mut report);
            steps.insert((key, step));
            open = Some((model.clone(), step));
        }
        let mut record = Record {
            model: model.clone(),
            operator: Arc::new(operator_of(group)),
            step,
            timestamp_us: group[0].timestamp.unwrap_or(0).max(last_time + 1),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        // Sinks order executions by time, and two of the same time would be one.
        last_time = record.timestamp_us;
        match read_into(&mut record, group, &mut file, &mut report.left_out) {
            Ok(()) if record.n_slots() == 0 => {}
            Ok(()) => {
                report.n_executions += 1;
                report.n_tensors += record.n_slots();
                note(sink.write(&record), &mut report);
            }
            Err(error) => report.errors.push(error),
        }
    }
    end_step(sink, open.take(), &mut report);
    note(sink.finish(), &mut report);
    report.n_steps = steps.len() as u64;
    report
}

/// Maximum number of bytes of a description that is copied.
const GRAPH_BYTES_MAX: u64 = 1 << 30;

/// Copies the graph descriptions of the runs of a dump to the dump at `place`. A name that two runs
/// have is copied once.
///
/// # Errors
/// [`StoreError::Io`] if one cannot be read or written.
pub fn copy_graphs(tensors: &[IndexedTensor], place: &DumpPlace) -> Result<(), StoreError> {
    let creator = Creator::in_dump(&place.dump_path, place.modes);
    let dirs: BTreeSet<&Path> = tensors
        .iter()
        .filter_map(|tensor| tensor.path.parent())
        .collect();
    let graph_dirs = dirs.into_iter().filter_map(|dir| {
        let mut above = dir.ancestors().map(own::graphs_dir);
        above.find(|graphs| graphs.is_dir())
    });
    let graphs: BTreeSet<PathBuf> = graph_dirs.collect();
    for dir in graphs {
        let entries = std::fs::read_dir(&dir).map_err(StoreError::io("list", &dir))?;
        for entry in entries {
            let path = entry.map_err(StoreError::io("list", &dir))?.path();
            // Read whole, so that a description that cannot be read leaves no half of itself.
            let bytes = regular_file::read_in_dump(&path, GRAPH_BYTES_MAX);
            let bytes = bytes.map_err(StoreError::io("read", &path))?;
            let name = path.file_name().unwrap_or_default();
            creator.create_file(&own::graphs_dir(&place.root).join(name), &[&bytes])?;
        }
    }
    Ok(())
}

fn end_step(sink: &dyn Sink, open: Option<(Arc<ModelId>, u64)>, report: &mut TranscriptionReport) {
    if let Some((model, step)) = open {
        note(sink.end_step(&model, step), report);
    }
}

fn note(result: Result<WrittenFiles, SinkError>, report: &mut TranscriptionReport) {
    match result {
        Ok(written) => report.written = report.written + written,
        Err(error) => report.errors.push(error.into()),
    }
}

/// Loads that a dump does not number are numbered as they come.
fn model_of(execution: &IndexedExecution, n_models: usize) -> Arc<ModelId> {
    let name = execution.model.as_deref().unwrap_or("dump").to_owned();
    Arc::new(ModelId {
        file_stem: name.clone(),
        graph_name: name,
        load: execution.model_id.or(u32::try_from(n_models + 1).ok()),
        device: execution.rank.unwrap_or(0),
    })
}

fn operator_of(group: &[IndexedTensor]) -> Operator {
    let execution = &group[0].execution;
    let [n_inputs, n_outputs] = [SlotSide::Input, SlotSide::Output].map(|side| {
        let slots = group.iter().filter_map(|tensor| tensor.slot);
        let slots = slots.filter(|(known, _)| *known == side);
        slots.map(|(_, i)| i as usize + 1).max().unwrap_or(0)
    });
    // Another form may not represent them; the native one keeps them.
    let mut input_placements = vec![None; n_inputs];
    let mut output_placements = vec![None; n_outputs];
    for tensor in group {
        let (placements, index) = match tensor.slot {
            Some((SlotSide::Input, index)) => (&mut input_placements, index),
            Some((SlotSide::Output, index)) => (&mut output_placements, index),
            None => continue,
        };
        placements[index as usize] = tensor.placement.clone();
    }
    Operator {
        task_id: group[0].task_id.unwrap_or(0),
        op_type: execution.op_type.to_string(),
        op_name: execution.op_name.to_string(),
        inputs: vec![String::new(); n_inputs],
        outputs: vec![String::new(); n_outputs],
        collective: execution.collective.clone(),
        input_placements,
        output_placements,
        ..Operator::default()
    }
}

fn read_into(
    record: &mut Record,
    group: &[IndexedTensor],
    file: &mut LastFile,
    left_out: &mut BTreeMap<String, u64>,
) -> Result<(), TranscriptionError> {
    for tensor in group {
        let Some((side, index)) = tensor.slot.filter(|_| tensor.elements.is_some()) else {
            let reason = "the dump has no elements of it".to_owned();
            *left_out.entry(reason).or_default() += 1;
            continue;
        };
        let read = file.read(tensor)?;
        let list = match side {
            SlotSide::Input => &mut record.inputs,
            SlotSide::Output => &mut record.outputs,
        };
        list.push((index as usize, read));
    }
    Ok(())
}

/// The file that was read last: tensors of one often follow one another.
#[derive(Default)]
struct LastFile(Option<(SharedPath, TensorFile)>);

impl LastFile {
    fn read(&mut self, record: &IndexedTensor) -> Result<Tensor, TranscriptionError> {
        let Some(place) = &record.elements else {
            let reason = "the dump has no elements of it".to_owned();
            return Err(self.wrong(record, reason));
        };
        let is_elements = place.kind == Some(FileKind::Elements);
        let last = self
            .0
            .take()
            .filter(|(path, file)| *path == record.path && !file.kind().is_archive());
        let mut file = match last {
            Some((_, file)) => file,
            // The file may be unfinished, so its own header may be meaningless.
            None if is_elements => TensorFile::open_elements(record)?,
            None => TensorFile::open_for(&record.path, &place.real_name, place.tensor)?,
        };
        if is_elements {
            file.turn_to(record)?;
        }
        // A file of a single tensor does not say which it is.
        let (side, index) = place.tensor.unwrap_or((SlotSide::Output, 0));
        let stored = file.tensor(side, index);
        let tensor = stored.map(|stored| {
            let dtype = stored.dtype.value().unwrap_or(DType::Undefined);
            let layout = stored.layout.value().unwrap_or(Layout::Nd);
            let shape = stored.element_shape().map_err(|error| error.to_string())?;
            let part = file.elements(stored).map_err(|error| error.to_string())?;
            let tensor = Tensor::new(dtype, shape, Arc::new(part));
            let tensor = tensor.map_err(|error| error.to_string())?;
            Ok(tensor.with_layout(layout))
        });
        // Kept open even if the tensor is corrupt, as others in the file may be sound.
        self.0 = Some((record.path.clone(), file));
        let tensor = tensor.unwrap_or_else(|| Err("its file lacks it".to_owned()));
        tensor.map_err(|reason| self.wrong(record, reason))
    }

    fn wrong(&self, record: &IndexedTensor, reason: String) -> TranscriptionError {
        TranscriptionError::Elements {
            path: record.path.to_path_buf(),
            reason,
        }
    }
}
