//! Which values torch's memory holds.
//!
//! Memory is known by torch's object for it, of which a weak reference is kept: the object's
//! address is given to no other memory meanwhile. A value in it is known until an operator is seen
//! to write there, or until torch's count of writes says that somebody else has.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use opscope_tensor::{DType, DeviceElements, Shape, Tensor, TensorMemo};
use pyo3::prelude::*;

use crate::capture::reason::UnseenReason;

/// How many pieces of memory are remembered before those that are gone are looked for.
const N_SWEEP_MIN: usize = 1024;
/// How many values are remembered of one piece of memory.
const N_KNOWN_MAX: usize = 64;
/// How many tensors are told apart that are the same value.
const N_OBJECTS_MAX: usize = 8;

/// A tensor's elements in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ElementPlace {
    pub(super) address: usize,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// `None` if they lie side by side in row-major order.
    pub(super) strides: Option<Vec<isize>>,
    /// Whether they stand for their negatives or conjugates.
    pub(super) is_lazy: bool,
}

/// A tensor as it was found.
#[derive(Clone)]
pub(super) struct TensorSighting {
    /// Torch's object for its memory.
    pub(super) storage: usize,
    /// Torch's count of writes; `None` if it keeps none.
    pub(super) version: Option<u64>,
    pub(super) place: ElementPlace,
    /// Python's object.
    pub(super) object: usize,
    /// Whether others than torch may write to the memory.
    pub(super) is_shared: bool,
}

/// Knowledge of a value's elements.
#[derive(Clone)]
pub(super) enum ValueContent {
    /// Nothing: they were not looked at.
    None,
    /// They have no meaning.
    Unseen(UnseenReason),
    /// A tensor without elements.
    Numbers(Tensor),
    /// A copy, as long as a writer has it.
    Copy(Weak<dyn AsRef<[u8]> + Send + Sync>, Arc<TensorMemo>),
    /// A copy that a device makes, as long as a record waits for it.
    DeviceCopy(Weak<DeviceElements>, Arc<TensorMemo>),
}

/// Keeps the address of torch's object; `None` if that is done already.
pub(super) type Pin = Option<usize>;

#[derive(Default)]
struct StorageValues {
    values: Vec<KnownValue>,
    /// Names that are told from outside.
    given: Vec<(ElementPlace, Arc<str>)>,
    /// In which step the memory was written to last, and the value that was written.
    writer: Option<(u64, Arc<str>)>,
    /// Whether something may be writing to it at any time.
    is_loose: bool,
    /// Whether it has another size than before, and nothing was written to it since.
    is_blank: bool,
}

struct KnownValue {
    place: ElementPlace,
    version: Option<u64>,
    /// Whether torch counts the write that made it only after it was seen.
    is_count_pending: bool,
    /// The step that names it.
    step: u64,
    /// Names by Python's object; the latest last.
    names: Vec<(usize, Arc<str>)>,
    content: ValueContent,
}

/// The name of a tensor, as far as it is known.
pub(super) enum TensorName {
    Known(Arc<str>),
    /// Told from outside.
    Given(Arc<str>),
    /// It was called this, or is part of it, and was written to since.
    Changed(Arc<str>),
    Unknown,
}

/// All memory that tensors were seen in.
pub(super) struct MemoryValues {
    storages: HashMap<usize, StorageValues>,
    /// How often a step was begun.
    step: u64,
    n_max: usize,
    /// Pins that were not needed.
    spare: Vec<usize>,
    expired: Py<PyAny>,
    free: Py<PyAny>,
}

impl MemoryValues {
    pub(super) fn new(py: Python<'_>) -> PyResult<MemoryValues> {
        let storage = py.import("torch")?.getattr("UntypedStorage")?;
        Ok(MemoryValues {
            storages: HashMap::new(),
            step: 0,
            n_max: N_SWEEP_MIN,
            spare: Vec::new(),
            expired: storage.getattr("_expired")?.unbind(),
            free: storage.getattr("_free_weak_ref")?.unbind(),
        })
    }

    pub(super) fn begin_step(&mut self) {
        self.step += 1;
    }

    pub(super) fn has(&self, storage: usize) -> bool {
        self.storages.contains_key(&storage)
    }

    pub(super) fn n_storages(&self) -> usize {
        self.storages.len()
    }

    /// Returns a tensor's name, and what is remembered of its content if that still holds.
    pub(super) fn find(&mut self, found: &TensorSighting) -> (TensorName, ValueContent) {
        let step = self.step;
        let Some(storage) = self.storages.get_mut(&found.storage) else {
            return (TensorName::Unknown, ValueContent::None);
        };
        // Each of these rules out one way in which a write would go unnoticed.
        let is_trusted = found.version.is_some() && !storage.is_loose && !found.is_shared;
        let same = storage.values.iter().find(|v| v.place == found.place);
        if let Some(known) = same {
            if !known.agrees(found.version) {
                let name = match known.name(step, found.object) {
                    Some(name) => TensorName::Changed(name),
                    None => TensorName::Unknown,
                };
                // Whoever wrote may have written anywhere in this memory.
                storage.values.clear();
                return (name, ValueContent::None);
            }
            let name = known.name(step, found.object);
            let content = if is_trusted {
                known.content.clone()
            } else {
                known.content.unseen()
            };
            return (storage.name(name, step, found), storage.seen(content));
        }
        // Elements in the same order are the same, whatever the extents.
        let dense = (storage.values.iter()).find(|v| is_trusted && v.is_dense_as(found));
        let content = dense.map_or(ValueContent::None, |known| known.content.clone());
        (storage.name(None, step, found), storage.seen(content))
    }

    /// Remembers a value.
    pub(super) fn record(
        &mut self,
        found: TensorSighting,
        pin: Pin,
        name: Arc<str>,
        content: ValueContent,
        is_count_pending: bool,
    ) {
        let step = self.step;
        let Some(storage) = self.entry(found.storage, pin) else {
            return;
        };
        let known = (storage.values.iter_mut()).find(|v| v.place == found.place);
        let Some(known) = known else {
            if storage.values.len() >= N_KNOWN_MAX {
                storage.values.remove(0);
            }
            storage.values.push(KnownValue {
                place: found.place,
                version: found.version,
                is_count_pending,
                step,
                names: vec![(found.object, name)],
                content,
            });
            return;
        };
        if known.step != step {
            // What an earlier step called it is not in the description of this one.
            known.names.clear();
            known.step = step;
        }
        known.version = found.version;
        known.is_count_pending = is_count_pending;
        known.names.retain(|(object, _)| *object != found.object);
        if known.names.len() >= N_OBJECTS_MAX {
            known.names.remove(0);
        }
        known.names.push((found.object, name));
        if !matches!(content, ValueContent::None) {
            known.content = content;
        }
    }

    /// Forgets what was in memory that an operator has written to.
    pub(super) fn write(&mut self, storage: usize, pin: Pin, value: Arc<str>, is_late: bool) {
        let step = self.step;
        if let Some(storage) = self.entry(storage, pin) {
            storage.values.clear();
            storage.writer = Some((step, value));
            storage.is_blank = false;
            storage.is_loose |= is_late;
        }
    }

    /// Forgets what was in memory that has another size now, and with it other elements.
    pub(super) fn blank(&mut self, storage: usize, pin: Pin) {
        if let Some(storage) = self.entry(storage, pin) {
            storage.values.clear();
            storage.is_blank = true;
        }
    }

    /// Forgets what elements in memory were that may have been written to.
    pub(super) fn distrust(&mut self, storage: usize) {
        let storage = self.storages.get_mut(&storage);
        for known in storage.into_iter().flat_map(|found| &mut found.values) {
            known.content = ValueContent::None;
        }
    }

    /// Names a value from outside.
    pub(super) fn give(&mut self, found: TensorSighting, pin: Pin, name: Arc<str>) {
        if let Some(storage) = self.entry(found.storage, pin) {
            storage.given.retain(|(place, _)| *place != found.place);
            storage.given.push((found.place, name));
        }
    }

    /// `None` for memory whose address nobody keeps.
    fn entry(&mut self, storage: usize, pin: Pin) -> Option<&mut StorageValues> {
        if self.storages.contains_key(&storage) {
            // Another thread was faster.
            self.spare.extend(pin);
        } else if pin.is_none() {
            return None;
        }
        Some(self.storages.entry(storage).or_default())
    }

    /// Whether it is time to look for memory that is gone.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.storages.len() > self.n_max
    }

    /// Takes the memory to ask about, the pins that were not needed, and torch's functions to ask
    /// and to free with.
    pub(super) fn take_suspects(
        &mut self,
        py: Python<'_>,
    ) -> (Vec<usize>, Vec<usize>, [Py<PyAny>; 2]) {
        let known = self.storages.keys().copied().collect();
        let functions = [self.expired.clone_ref(py), self.free.clone_ref(py)];
        (known, std::mem::take(&mut self.spare), functions)
    }

    /// Forgets memory.
    pub(super) fn forget(&mut self, gone: &[usize]) {
        for storage in gone {
            self.storages.remove(storage);
        }
        // Each sweep asks about everything, so the next waits until there is twice as much.
        self.n_max = (self.storages.len() * 2).max(N_SWEEP_MIN);
    }

    /// Forgets all of it.
    pub(super) fn free(&mut self, py: Python<'_>) {
        let known = std::mem::take(&mut self.storages).into_keys();
        for storage in known.chain(std::mem::take(&mut self.spare)) {
            // Nothing can be done about a failure.
            let _ = self.free.call1(py, (storage,));
        }
    }
}

impl StorageValues {
    /// The content, unless the memory has no meaning.
    fn seen(&self, content: ValueContent) -> ValueContent {
        if self.is_blank {
            ValueContent::Unseen(UnseenReason::uninitialised())
        } else {
            content
        }
    }

    fn name(&self, known: Option<Arc<str>>, step: u64, found: &TensorSighting) -> TensorName {
        if let Some(name) = known {
            return TensorName::Known(name);
        }
        if let Some((written, value)) = &self.writer
            && *written == step
        {
            return TensorName::Changed(value.clone());
        }
        let given = self.given.iter().find(|(place, _)| *place == found.place);
        given.map_or(TensorName::Unknown, |(_, name)| {
            TensorName::Given(name.clone())
        })
    }
}

impl KnownValue {
    fn agrees(&self, version: Option<u64>) -> bool {
        match (self.version, version) {
            (Some(known), Some(found)) => {
                found == known || (self.is_count_pending && found == known + 1)
            }
            _ => true,
        }
    }

    fn name(&self, step: u64, object: usize) -> Option<Arc<str>> {
        if self.step != step {
            return None;
        }
        let own = self.names.iter().find(|(known, _)| *known == object);
        own.or(self.names.last()).map(|(_, name)| name.clone())
    }

    fn is_dense_as(&self, found: &TensorSighting) -> bool {
        let (ours, theirs) = (&self.place, &found.place);
        ours.address == theirs.address
            && ours.dtype == theirs.dtype
            && ours.is_lazy == theirs.is_lazy
            && ours.strides.is_none()
            && theirs.strides.is_none()
            && ours.shape.n_elements() == theirs.shape.n_elements()
            && self.agrees(found.version)
    }
}

impl ValueContent {
    /// Returns the part that holds however memory may have changed.
    fn unseen(&self) -> ValueContent {
        match self {
            ValueContent::Unseen(reason) => ValueContent::Unseen(reason.clone()),
            _ => ValueContent::None,
        }
    }
}
