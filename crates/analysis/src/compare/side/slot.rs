//! A tensor of an execution. Large dumps have millions of them, and few that differ in more than
//! their place.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use opscope_store::reader::{
    DumpTerm, FileKind, IndexedExecution, IndexedTensor, TensorStatistics,
};
use opscope_store::{HeldElements, SharedPath, SharedText, record};
use opscope_tensor::{DType, Layout};

use crate::compare::result::{SharedSummary, SlotKey, TensorSummary};
use crate::compare::whole::WholeTensor;

/// A tensor of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSlot {
    /// Input or output; an array of unknown side is an output.
    pub side: record::SlotSide,
    /// Which one.
    pub index: u32,
    /// Statistics and digests that the dump has: title of the column, and the text if there is a
    /// value.
    pub statistics: TensorStatistics,
    /// Where its bytes begin in its file; [`NO_OFFSET`] where the dump does not say.
    offset: u64,
    /// Which tensor of its file it is; none of a damaged one.
    place: Option<(record::SlotSide, u32)>,
    /// Most have none of these, which takes the memory of a pointer.
    rare: Option<Box<RareFacts>>,
    facts: Arc<SlotFacts>,
}

/// Facts that only few slots have.
#[derive(Clone, Debug, Default, PartialEq)]
struct RareFacts {
    original: Option<(String, u32)>,
    made_value: Option<SharedText>,
    held: Option<HeldElements>,
    /// The parts that it is put together from, or why that is impossible.
    parts: Option<Result<Arc<WholeTensor>, Arc<str>>>,
}

/// Replaces the place of a slot in shared facts.
const ANY_PLACE: (record::SlotSide, usize) = (record::SlotSide::Output, 0);
/// No file is so large. A number takes half of the room of one that may be missing.
const NO_OFFSET: u64 = u64::MAX;

/// Everything else that is known of a slot, which it may share with others.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotFacts {
    /// Element type; none if it is unknown.
    pub dtype: Option<DType>,
    /// Name of the element type as the dump has it.
    pub dtype_name: SharedText,
    /// The meaning of the axes; none if it is unknown.
    pub layout: Option<Layout>,
    /// Shape as stored; `None` for a damaged file.
    pub shape: Option<Vec<u64>>,
    /// Shape before the layout was changed, if the dump has it.
    pub original_shape: Option<Vec<u64>>,
    /// Bytes of the tensor.
    pub n_bytes: u64,
    /// The file.
    pub path: SharedPath,
    /// Whether the dump has the elements.
    pub has_elements: bool,
    /// Why it cannot be read, if so.
    pub problem: Option<String>,
    /// The same in results, once it was asked for.
    summary: OnceLock<SharedSummary>,
    /// The record that they were made from, without what it says of the execution and the place.
    pub(super) record: IndexedTensor,
}

impl Deref for ExecutionSlot {
    type Target = SlotFacts;

    fn deref(&self) -> &SlotFacts {
        &self.facts
    }
}

impl DerefMut for ExecutionSlot {
    /// Changed facts are no longer shared.
    fn deref_mut(&mut self) -> &mut SlotFacts {
        let facts = Arc::make_mut(&mut self.facts);
        facts.summary.take();
        facts
    }
}

impl ExecutionSlot {
    /// A slot with known dtype and shape only: the dump has neither elements nor statistics of it.
    pub fn described(
        side: record::SlotSide,
        index: u32,
        dtype: DType,
        shape: &[u64],
    ) -> ExecutionSlot {
        let facts = SlotFacts {
            dtype: Some(dtype),
            dtype_name: dtype.name().into(),
            shape: Some(shape.to_vec()),
            ..SlotFacts::from_record(IndexedTensor::default())
        };
        ExecutionSlot {
            side,
            index,
            statistics: TensorStatistics::default(),
            offset: NO_OFFSET,
            place: None,
            rare: None,
            facts: Arc::new(facts),
        }
    }

    /// A tensor combined from the parts of ranks, in place of the slot of the first rank.
    pub(crate) fn of_whole(first: &ExecutionSlot, whole: Arc<WholeTensor>) -> Self {
        let mut slot = first.without_own_elements();
        slot.dtype = Some(whole.dtype);
        slot.shape = Some(whole.shape.clone());
        slot.n_bytes = whole.n_bytes();
        slot.has_elements = true;
        slot.rare().parts = Some(Ok(whole));
        slot
    }

    /// A tensor whose parts cannot be put together, and why, in place of the slot of the first of
    /// them.
    pub(crate) fn in_parts(first: &ExecutionSlot, reason: String) -> ExecutionSlot {
        let mut slot = first.without_own_elements();
        // A damaged part is reported as such.
        slot.problem.clone_from(&first.problem);
        slot.shape = None;
        slot.has_elements = false;
        slot.rare().parts = Some(Err(reason.into()));
        slot
    }

    /// The slot without what the dump has of one part alone.
    fn without_own_elements(&self) -> ExecutionSlot {
        let mut slot = ExecutionSlot {
            statistics: TensorStatistics::default(),
            offset: NO_OFFSET,
            place: None,
            ..self.clone()
        };
        if let Some(rare) = &mut slot.rare {
            rare.held = None;
        }
        slot.original_shape = None;
        slot.layout = None;
        slot.record.elements = None;
        slot
    }

    fn rare(&mut self) -> &mut RareFacts {
        self.rare.get_or_insert_default()
    }

    /// Name and output of the operator before fusion, where the dump says.
    pub fn original(&self) -> Option<&(String, u32)> {
        self.rare.as_ref()?.original.as_ref()
    }

    /// Sets [`original`](Self::original).
    pub fn set_original(&mut self, original: (String, u32)) {
        self.rare().original = Some(original);
    }

    /// Name of the value in a graph that an engine made of a model; none of other graphs' values, and
    /// empty if its elements are in the engine's own order.
    pub fn made_value(&self) -> Option<&SharedText> {
        self.rare.as_ref()?.made_value.as_ref()
    }

    /// Whether an engine has put its elements into an order of its own.
    pub fn is_in_own_order(&self) -> bool {
        self.made_value().is_some_and(|name| name.is_empty())
    }

    /// Sets [`made_value`](Self::made_value).
    pub(super) fn set_made_value(&mut self, name: SharedText) {
        self.rare().made_value = Some(name);
    }

    fn parts(&self) -> Option<&Result<Arc<WholeTensor>, Arc<str>>> {
        self.rare.as_ref()?.parts.as_ref()
    }

    /// The parts that it was combined from; `None` for a tensor in one piece.
    pub fn whole(&self) -> Option<&WholeTensor> {
        self.parts()?.as_deref().ok()
    }

    /// Why its parts cannot be put together, if so.
    pub fn parts_problem(&self) -> Option<&str> {
        self.parts()?.as_ref().err().map(|reason| &**reason)
    }

    /// The slot of a tensor that this process holds, by itself.
    pub fn of_held(record: IndexedTensor) -> ExecutionSlot {
        ExecutionSlot::from_record(record, &mut KnownFacts::default())
    }

    /// The slot of a record.
    pub(super) fn from_record(mut record: IndexedTensor, known: &mut KnownFacts) -> ExecutionSlot {
        let (side, index) = record.slot.take().unwrap_or((record::SlotSide::Output, 0));
        let original = record.original.take();
        let (mut offset, mut place) = (None, None);
        if let Some(elements) = &mut record.elements {
            offset = elements.offset.take();
            let tensor = elements.tensor;
            place = tensor.and_then(|(side, index)| Some((side, u32::try_from(index).ok()?)));
            // Tensors of one file differ in nothing else. That there is a place stays known.
            if place.is_some() {
                elements.tensor = Some(ANY_PLACE);
            }
        }
        let rare = RareFacts {
            original,
            held: record.held.take(),
            ..RareFacts::default()
        };
        let is_any = rare.original.is_some() || rare.held.is_some();
        record.execution.clone_from(&known.no_execution);
        record.task_id = None;
        record.timestamp = None;
        ExecutionSlot {
            side,
            index,
            statistics: std::mem::take(&mut record.statistics),
            offset: offset.unwrap_or(NO_OFFSET),
            place,
            rare: is_any.then(|| Box::new(rare)),
            facts: known.share(record),
        }
    }

    /// The dump's description of the tensor, apart from its execution and its place there. To read
    /// its elements takes [`ExecutionSlot::elements_record`].
    pub fn record(&self) -> &IndexedTensor {
        &self.record
    }

    /// The facts that it may share with other slots.
    pub fn facts(&self) -> &SlotFacts {
        &self.facts
    }

    /// Where its bytes begin in its file; none where they are compressed or in an order of their
    /// own.
    pub fn offset(&self) -> Option<u64> {
        (self.offset != NO_OFFSET).then_some(self.offset)
    }

    /// Its elements, if this process holds them.
    pub fn held(&self) -> Option<&HeldElements> {
        self.rare.as_ref()?.held.as_ref()
    }

    /// The number of its contents, which slots with the same bytes of one file share; none of a form
    /// that has each slot's bytes by themselves, and where the bytes cannot be read.
    pub fn contents_number(&self) -> Option<u64> {
        let elements = self.record.elements.as_ref()?;
        if elements.kind != Some(FileKind::Elements) || self.problem.is_some() {
            return None;
        }
        // An address does for a number: elements that are held stay where they are.
        match self.held() {
            Some(held) => Some(held.number()),
            None => self.offset(),
        }
    }

    /// Which tensor of its file it is; none of a damaged one.
    pub fn place_in_file(&self) -> Option<(record::SlotSide, usize)> {
        self.place.map(|(side, index)| (side, index as usize))
    }

    /// The record for reading its elements.
    pub fn elements_record(&self) -> IndexedTensor {
        let mut elements = self.record.elements.clone();
        if let Some(place) = &mut elements {
            place.offset = self.offset();
            place.tensor = self.place_in_file().or(place.tensor);
        }
        let shared = &self.record;
        IndexedTensor {
            // Reading elements needs none of them.
            statistics: TensorStatistics::default(),
            elements,
            execution: shared.execution.clone(),
            task_id: None,
            stream_id: None,
            timestamp: None,
            slot: Some((self.side, self.index)),
            dtype: shared.dtype.clone(),
            stored_dtype: shared.stored_dtype.clone(),
            layout: shared.layout.clone(),
            dtype_in_name: shared.dtype_in_name.clone(),
            layout_in_name: shared.layout_in_name.clone(),
            shape: shared.shape.clone(),
            original_shape: shared.original_shape.clone(),
            original: None,
            parameter: None,
            placement: None,
            n_bytes: shared.n_bytes,
            path: shared.path.clone(),
            held: self.held().cloned(),
        }
    }

    /// Its shape; empty if unknown.
    pub(crate) fn dims(&self) -> &[u64] {
        self.shape.as_deref().unwrap_or_default()
    }

    /// Number of elements, from its shape; `None` if unknown.
    pub fn n_elements(&self) -> Option<u64> {
        let mut dims = self.shape.as_ref()?.iter();
        dims.try_fold(1_u64, |n, &dim| n.checked_mul(dim))
    }

    /// Its name in results.
    pub fn key(&self) -> SlotKey {
        SlotKey {
            side: self.side,
            index: self.index,
        }
    }
}

impl SlotFacts {
    /// The tensor's description in results.
    pub fn summary(&self) -> &SharedSummary {
        self.summary.get_or_init(|| {
            let layout = self.layout.filter(|&layout| layout != Layout::Nd);
            // Elements that this process holds are in no file.
            let path = Some(&self.path).filter(|path| !path.as_os_str().is_empty());
            let summary = TensorSummary {
                dtype: self.dtype_name.clone(),
                layout: layout.map(|layout| layout.name().into()),
                shape: self.shape.clone().unwrap_or_default(),
                path: path.map(|path| path.display().to_string().into()),
            };
            summary.into()
        })
    }

    fn from_record(record: IndexedTensor) -> SlotFacts {
        let dtype = record.dtype.as_ref();
        let places = record.elements.as_ref();
        let original_shape = record.original_shape.clone();
        SlotFacts {
            dtype: dtype.and_then(DumpTerm::value),
            dtype_name: dtype
                .map(|dtype| dtype.to_string().into())
                .unwrap_or_default(),
            layout: record.layout.as_ref().and_then(DumpTerm::value),
            shape: record.shape.clone(),
            original_shape: original_shape.filter(|dims| !dims.is_empty()),
            n_bytes: record.n_bytes.unwrap_or(0),
            path: record.path.clone(),
            has_elements: places.is_some_and(|place| place.tensor.is_some()),
            problem: None,
            summary: OnceLock::new(),
            record,
        }
    }
}

/// Facts that slots before had.
#[derive(Default)]
pub(super) struct KnownFacts {
    last: Option<Arc<SlotFacts>>,
    facts: HashSet<FactsOfRecord>,
    no_execution: Arc<IndexedExecution>,
}

/// Facts, found by the record that they were made from.
struct FactsOfRecord(Arc<SlotFacts>);

/// Maximum number of remembered facts: beyond that they are hardly repeated.
const N_KNOWN_MAX: usize = 1 << 16;

impl KnownFacts {
    fn share(&mut self, record: IndexedTensor) -> Arc<SlotFacts> {
        // Tensors that follow each other are often alike, which spares the search.
        if let Some(last) = self.last.as_ref().filter(|last| last.record == record) {
            return last.clone();
        }
        let new = FactsOfRecord(Arc::new(SlotFacts::from_record(record)));
        let facts = match self.facts.get(&new) {
            Some(known) => known.0.clone(),
            None => {
                let facts = new.0.clone();
                if self.facts.len() < N_KNOWN_MAX {
                    self.facts.insert(new);
                }
                facts
            }
        };
        self.last = Some(facts.clone());
        facts
    }
}

impl PartialEq for FactsOfRecord {
    fn eq(&self, other: &FactsOfRecord) -> bool {
        self.0.record == other.0.record
    }
}

impl Eq for FactsOfRecord {}

impl Hash for FactsOfRecord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let record = &self.0.record;
        // The cells in which records of one dump differ; the others are compared.
        (&record.path, &record.dtype, &record.shape).hash(state);
    }
}
