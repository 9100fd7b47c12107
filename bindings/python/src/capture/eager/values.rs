//! The values in torch's memory.
//!
//! Memory is identified by torch's storage object, to which a weak reference is kept: this reserves
//! the object's address. A value is known until an observed operator writes to the memory, or until
//! torch's version counter shows another write.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use opscope_tensor::{DType, DeviceElements, Shape, Tensor, TensorMemo};
use pyo3::prelude::*;

use crate::capture::reason::UnseenReason;

/// Number of known storages from which freed ones are searched.
const N_SWEEP_MIN: usize = 1024;
/// Maximum number of known values per storage.
const N_KNOWN_MAX: usize = 64;
/// Maximum number of tensor objects distinguished per value.
const N_OBJECTS_MAX: usize = 8;

/// A tensor's elements in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ElementPlace {
    pub(super) address: usize,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// `None` if they are contiguous in row-major order.
    pub(super) strides: Option<Vec<isize>>,
    /// Whether they are stored negated or conjugated.
    pub(super) is_lazy: bool,
}

/// A located tensor.
#[derive(Clone)]
pub(super) struct TensorSighting {
    /// Torch's storage object.
    pub(super) storage: usize,
    /// Torch's version counter; `None` if there is none.
    pub(super) version: Option<u64>,
    pub(super) place: ElementPlace,
    /// The Python object.
    pub(super) object: usize,
    /// Whether code outside torch may write to the memory.
    pub(super) is_shared: bool,
}

/// Knowledge about the elements of a value.
#[derive(Clone)]
pub(super) enum ValueContent {
    /// Nothing: they were not read.
    None,
    /// They are meaningless.
    Unseen(UnseenReason),
    /// A tensor with statistics only.
    Numbers(Tensor),
    /// A copy, as long as a writer uses it.
    Copy(Weak<dyn AsRef<[u8]> + Send + Sync>, Arc<TensorMemo>),
    /// A device's copy, as long as a record waits for it.
    DeviceCopy(Weak<DeviceElements>, Arc<TensorMemo>),
}

/// Reserves the address of a storage object; `None` if already done.
pub(super) type Pin = Option<usize>;

#[derive(Default)]
struct StorageValues {
    values: Vec<KnownValue>,
    /// Names set from outside.
    given: Vec<(ElementPlace, Arc<str>)>,
    /// The step of the last write to the memory, and the written value.
    writer: Option<(u64, Arc<str>)>,
    /// Whether it may be written at any time.
    is_loose: bool,
    /// Whether it was resized and not written since.
    is_blank: bool,
}

struct KnownValue {
    place: ElementPlace,
    version: Option<u64>,
    /// Whether torch updates the version counter for its producer only later.
    is_count_pending: bool,
    /// The step in which it was named.
    step: u64,
    /// Names by Python object, the latest last.
    names: Vec<(usize, Arc<str>)>,
    content: ValueContent,
}

/// The name of a tensor, if known.
pub(super) enum TensorName {
    Known(Arc<str>),
    /// Set from outside.
    Given(Arc<str>),
    /// It had this name, or is a part of it, and was written since.
    Changed(Arc<str>),
    Unknown,
}

/// All storages in which tensors were seen.
pub(super) struct MemoryValues {
    storages: HashMap<usize, StorageValues>,
    /// Number of steps so far.
    step: u64,
    n_max: usize,
    /// Unused pins.
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

    /// Returns a tensor's name, and its contents if still valid.
    pub(super) fn find(&mut self, found: &TensorSighting) -> (TensorName, ValueContent) {
        let step = self.step;
        let Some(storage) = self.storages.get_mut(&found.storage) else {
            return (TensorName::Unknown, ValueContent::None);
        };
        // Each condition excludes a way in which a write would go unnoticed.
        let is_trusted = found.version.is_some() && !storage.is_loose && !found.is_shared;
        let same = storage.values.iter().find(|v| v.place == found.place);
        if let Some(known) = same {
            // Counters only grow: `data` of a tensor has one of its own, which shows no other write.
            if found.version < known.version {
                let name = known.name(step, found.object);
                return (storage.name(name, step, found), ValueContent::None);
            }
            if !known.agrees(found.version) {
                let name = match known.name(step, found.object) {
                    Some(name) => TensorName::Changed(name),
                    None => TensorName::Unknown,
                };
                // The write may have been anywhere in this memory.
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
        // Elements in the same order are the same, whatever the shape.
        let dense = (storage.values.iter()).find(|v| is_trusted && v.is_dense_as(found));
        let content = dense.map_or(ValueContent::None, |known| known.content.clone());
        (storage.name(None, step, found), storage.seen(content))
    }

    /// Records a value.
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
            // The description of this step does not contain names from an earlier step.
            known.names.clear();
            known.step = step;
        }
        known.version = found.version.max(known.version);
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

    /// Invalidates memory that an operator has written to.
    pub(super) fn write(&mut self, storage: usize, pin: Pin, value: Arc<str>, is_late: bool) {
        let step = self.step;
        if let Some(storage) = self.entry(storage, pin) {
            storage.values.clear();
            storage.writer = Some((step, value));
            storage.is_blank = false;
            storage.is_loose |= is_late;
        }
    }

    /// Invalidates memory that was resized.
    pub(super) fn blank(&mut self, storage: usize, pin: Pin) {
        if let Some(storage) = self.entry(storage, pin) {
            storage.values.clear();
            storage.is_blank = true;
        }
    }

    /// Invalidates the contents of memory that may have been written to.
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

    /// The name of this step's last value at the place of a tensor that has no name from outside
    /// there, whatever its version counter: `data` of another tensor has one of its own.
    pub(super) fn nameless(&self, found: &TensorSighting) -> Option<Arc<str>> {
        let storage = self.storages.get(&found.storage)?;
        let mut values = storage.values.iter();
        let known = values.find(|v| v.place == found.place && v.step == self.step)?;
        let name = known.names.last().map(|(_, name)| name.clone());
        name.filter(|_| storage.given_name(found).is_none())
    }

    /// The tensors that were named from outside and share elements with `found`, with their names.
    pub(super) fn named_within(&self, found: &TensorSighting) -> Vec<(ElementPlace, Arc<str>)> {
        let storage = self.storages.get(&found.storage).into_iter();
        let given = storage.flat_map(|storage| &storage.given);
        let within = given.filter(|(place, _)| place.overlaps(&found.place));
        within.cloned().collect()
    }

    /// `None` for memory whose address is not reserved.
    fn entry(&mut self, storage: usize, pin: Pin) -> Option<&mut StorageValues> {
        if self.storages.contains_key(&storage) {
            // Another thread was faster.
            self.spare.extend(pin);
        } else if pin.is_none() {
            return None;
        }
        Some(self.storages.entry(storage).or_default())
    }

    /// Whether it is time to search for freed memory.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.storages.len() > self.n_max
    }

    /// Takes the storages to query, the unused pins, and torch's functions to query and free them.
    pub(super) fn take_suspects(
        &mut self,
        py: Python<'_>,
    ) -> (Vec<usize>, Vec<usize>, [Py<PyAny>; 2]) {
        let known = self.storages.keys().copied().collect();
        let functions = [self.expired.clone_ref(py), self.free.clone_ref(py)];
        (known, std::mem::take(&mut self.spare), functions)
    }

    /// Forgets storages.
    pub(super) fn forget(&mut self, gone: &[usize]) {
        for storage in gone {
            self.storages.remove(storage);
        }
        // Each sweep queries everything, so the next waits until the number has doubled.
        self.n_max = (self.storages.len() * 2).max(N_SWEEP_MIN);
    }

    /// Releases everything.
    pub(super) fn free(&mut self, py: Python<'_>) {
        let known = std::mem::take(&mut self.storages).into_keys();
        for storage in known.chain(std::mem::take(&mut self.spare)) {
            // A failure cannot be handled.
            let _ = self.free.call1(py, (storage,));
        }
    }
}

impl ElementPlace {
    /// Whether both are the same elements in the same order, whatever the shape.
    pub(super) fn is_dense_as(&self, other: &ElementPlace) -> bool {
        self.address == other.address
            && self.dtype == other.dtype
            && self.is_lazy == other.is_lazy
            && self.strides.is_none()
            && other.strides.is_none()
            && self.shape.n_elements() == other.shape.n_elements()
    }

    /// The addresses from the first element to the last.
    fn span(&self) -> Range<usize> {
        let dims = self.shape.dims();
        if dims.contains(&0) {
            return self.address..self.address;
        }
        let n_elements = match &self.strides {
            None => self.shape.n_elements(),
            Some(strides) => {
                let reach = dims.iter().zip(strides);
                1 + reach
                    .map(|(dim, stride)| (dim - 1) * stride.unsigned_abs())
                    .sum::<usize>()
            }
        };
        self.address..self.address + n_elements * self.dtype.bytes().unwrap_or(1)
    }

    fn overlaps(&self, other: &ElementPlace) -> bool {
        let (ours, theirs) = (self.span(), other.span());
        ours.start < theirs.end && theirs.start < ours.end
    }
}

impl StorageValues {
    /// The contents, unless the memory is meaningless.
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
        (self.given_name(found)).map_or(TensorName::Unknown, TensorName::Given)
    }

    fn given_name(&self, found: &TensorSighting) -> Option<Arc<str>> {
        let given = self.given.iter().find(|(place, _)| *place == found.place);
        given.map(|(_, name)| name.clone())
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
        self.place.is_dense_as(&found.place) && self.agrees(found.version)
    }
}

impl ValueContent {
    /// Returns the part that is valid however memory may have changed.
    fn unseen(&self) -> ValueContent {
        match self {
            ValueContent::Unseen(reason) => ValueContent::Unseen(reason.clone()),
            _ => ValueContent::None,
        }
    }
}
