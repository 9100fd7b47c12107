//! A dump in the memory of this process, for comparing a run with another one at once.

mod room;

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::{Sink, SinkError, WholeTensors, WrittenFiles};
use opscope_engine::LoadedModel;
use opscope_store::file_format::graph_json::{self, GraphFile};
use opscope_store::reader::{
    DumpIndex, DumpTerm, ElementsPlace, FileKind, IndexedExecution, IndexedTensor, NATIVE_FORM,
};
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_store::tree::acl::stream_id;
use opscope_store::{FormatError, HeldElements, SharedText};
use opscope_tensor::{Tensor, TensorMemo};

use crate::model::{graph_text, input_names, result_names};

pub use room::HeldRoom;

/// Records with the elements of their tensors; content that occurs several times is stored once.
/// [`HeldDump::take_index`] returns the index that a reader would build from a native dump of them.
pub struct HeldDump {
    room: Arc<HeldRoom>,
    state: Mutex<HeldState>,
}

#[derive(Default)]
struct HeldState {
    records: Vec<HeldRecord>,
    places: HashMap<TensorKey, Arc<Mutex<HeldPlace>>>,
}

/// The stored elements of a tensor. The writer that stores them keeps the lock: an operator's
/// output and the next one's input often reach two writers at once.
type HeldPlace = Option<HeldElements>;

/// A record whose elements are held elsewhere than in the engine.
struct HeldRecord {
    model: Arc<ModelId>,
    operator: Arc<Operator>,
    step: u64,
    timestamp_us: u64,
    /// In the order of the record's slots.
    tensors: Vec<IndexedTensor>,
}

/// A tensor of the engine. It is known by its memo, which all its clones have in common: memory is
/// given out again once a tensor is dropped, and the memo stays here.
struct TensorKey(Arc<TensorMemo>);

impl PartialEq for TensorKey {
    fn eq(&self, other: &TensorKey) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TensorKey {}

impl Hash for TensorKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl HeldDump {
    /// An empty dump, which takes its space from `room`.
    pub fn new(room: Arc<HeldRoom>) -> HeldDump {
        HeldDump {
            room,
            state: Mutex::default(),
        }
    }

    /// Keeps the elements of a tensor, unless they are already kept: in memory up to its limit,
    /// else in a file.
    ///
    /// # Errors
    /// [`SinkError`] if they are not in the host's memory, or cannot be written.
    pub fn hold(&self, tensor: &Tensor) -> Result<HeldElements, SinkError> {
        self.hold_by(tensor, || self.room.hold(tensor))
    }

    /// Holds elements that another dump holds as those of a tensor, unless that one's are held.
    pub fn hold_shared(&self, tensor: &Tensor, shared: &HeldElements) -> HeldElements {
        let Ok(held) = self.hold_by(tensor, || Ok::<_, Infallible>(shared.clone()));
        held
    }

    fn hold_by<E>(
        &self,
        tensor: &Tensor,
        hold: impl FnOnce() -> Result<HeldElements, E>,
    ) -> Result<HeldElements, E> {
        let key = TensorKey(tensor.memo().clone());
        let place = self.lock().places.entry(key).or_default().clone();
        // A place is changed by one assignment, whatever panics before it.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*place {
            return Ok(held.clone());
        }
        let held = hold()?;
        *place = Some(held.clone());
        Ok(held)
    }

    /// Stores the tensors of a record that are not stored yet, and returns the elements of its
    /// slots in order.
    ///
    /// # Errors
    /// As [`HeldDump::hold`].
    pub fn hold_all(&self, record: &Record) -> Result<Vec<HeldElements>, SinkError> {
        let slots = record.slots();
        slots.map(|(_, _, tensor)| self.hold(tensor)).collect()
    }

    /// Adds a record whose slots are `tensors`, made by [`describe_slots`].
    pub fn push(&self, record: &Record, tensors: Vec<IndexedTensor>) -> WrittenFiles {
        self.lock().records.push(HeldRecord {
            model: record.model.clone(),
            operator: record.operator.clone(),
            step: record.step,
            timestamp_us: record.timestamp_us,
            tensors,
        });
        WrittenFiles {
            n_bytes: record.n_bytes(),
            whole: WholeTensors::all(record),
            ..WrittenFiles::default()
        }
    }

    /// The records so far as a reader would give them, in order of execution; the dump is empty
    /// afterwards. `descriptions` are those of the models' graphs.
    pub fn take_index(&self, descriptions: Vec<GraphFile>) -> DumpIndex {
        let mut state = std::mem::take(&mut *self.lock());
        // Threads report in any order; time is that of execution.
        state
            .records
            .sort_by_key(|record| (record.step, record.timestamp_us));
        let mut index = DumpIndex {
            form: NATIVE_FORM,
            descriptions,
            ..DumpIndex::default()
        };
        // As a table counts them: an operator in a loop runs several times in one step.
        let mut n_calls: HashMap<(u64, u32, String), usize> = HashMap::new();
        for record in state.records {
            let operator = &record.operator;
            let call = (record.step, operator.task_id, operator.op_name.clone());
            let n_calls = n_calls.entry(call).or_insert(0);
            let execution = Arc::new(execution_of(&record, *n_calls));
            *n_calls += 1;
            index.executions.push(execution.clone());
            index
                .tensors
                .extend(record.tensors.into_iter().map(|tensor| IndexedTensor {
                    execution: execution.clone(),
                    task_id: Some(operator.task_id),
                    stream_id: Some(stream_id(&record.model)),
                    timestamp: Some(record.timestamp_us),
                    ..tensor
                }));
        }
        index
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        // Lists stay whole whatever panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for HeldDump {
    fn keeps_tensors(&self) -> bool {
        true
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let elements = self.hold_all(record)?;
        Ok(self.push(record, describe_slots(record, elements)))
    }
}

/// The slots of a record as rows of a native dump describe them. `elements` are those of the slots,
/// in their order.
pub fn describe_slots(record: &Record, elements: Vec<HeldElements>) -> Vec<IndexedTensor> {
    let slots = record.slots().zip(elements);
    slots
        .map(|((side, index, tensor), held)| IndexedTensor {
            placement: record.operator.placement(side, index).cloned(),
            ..described(side, index, tensor, held)
        })
        .collect()
}

/// The description of a model's graph, as a reader would find it in a dump.
///
/// # Errors
/// [`FormatError`] if it is larger than descriptions may be.
pub fn describe(model: &dyn LoadedModel, id: &ModelId) -> Result<GraphFile, FormatError> {
    let (arguments, results) = (input_names(model), result_names(model));
    let graph = graph_text(model, id, &arguments, &results);
    // By way of the text, so that both kinds of dump say the very same.
    let mut text = Vec::new();
    graph_json::write(&mut text, &graph)
        .map_err(|error| FormatError::new(0, "a description of the graph", error.to_string()))?;
    graph_json::parse(&text)
}

fn execution_of(record: &HeldRecord, call: usize) -> IndexedExecution {
    let model = &record.model;
    let name = (!model.file_stem.is_empty()).then(|| SharedText::from(model.file_stem.as_str()));
    IndexedExecution {
        op_type: record.operator.op_type.as_str().into(),
        op_name: record.operator.op_name.as_str().into(),
        model: name,
        model_id: model.load,
        rank: Some(0),
        step: Some(record.step),
        run: call,
        collective: record.operator.collective.clone(),
        ..IndexedExecution::default()
    }
}

/// Describes a tensor as a row of a native dump does.
fn described(side: SlotSide, index: usize, tensor: &Tensor, held: HeldElements) -> IndexedTensor {
    let dtype = DumpTerm::Known(tensor.dtype());
    IndexedTensor {
        slot: u32::try_from(index).ok().map(|index| (side, index)),
        dtype: Some(dtype.clone()),
        stored_dtype: Some(dtype),
        layout: Some(DumpTerm::Known(tensor.layout())),
        shape: Some(tensor.shape().iter().map(|&dim| dim as u64).collect()),
        n_bytes: Some(tensor.n_bytes() as u64),
        elements: Some(ElementsPlace {
            real_name: SharedText::default(),
            kind: Some(FileKind::Elements),
            tensor: Some((SlotSide::Output, 0)),
            offset: Some(0),
        }),
        held: Some(held),
        ..IndexedTensor::default()
    }
}

#[cfg(test)]
mod tests;
