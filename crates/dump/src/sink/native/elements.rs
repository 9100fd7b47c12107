//! Files of elements: every distinct content once, however many slots show it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opscope_capture::{SinkError, WrittenFiles};
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, GrowingFile};
use opscope_store::file_format::safetensors::GrowingHeader;
use opscope_store::record::{Record, SlotSide};
use opscope_store::tree::native::NativeTree;
use opscope_tensor::{Tensor, TensorIdentity};

use super::{FileSizes, lock, name_below};
use crate::sink::ledger::StepKey;

/// Room for the header of the first file; that of each further one has four times as much.
const N_HEADER_FIRST: usize = 64 << 10;
const N_HEADER_MAX: usize = 4 << 20;
/// A file with this many bytes takes no more tensors.
const N_FILE_BYTES: u64 = 2 << 30;
/// Contents that are remembered before all are forgotten.
const N_KNOWN_MAX: usize = 1 << 20;

/// Tensors that are remembered before those are looked for that the engine has freed.
const N_IDENTITIES_MIN: usize = 1024;

/// Where the elements of a tensor are.
#[derive(Clone, Debug)]
pub(super) struct ElementsPlace {
    /// The file, below the directory of the run.
    pub(super) file: Arc<str>,
    pub(super) offset: u64,
    pub(super) digest: [u8; 16],
}

/// Elements that are written, or are being written by a thread.
#[derive(Clone)]
enum KnownElements {
    Pending,
    Written(ElementsPlace),
}

impl KnownElements {
    fn is_pending(&self) -> bool {
        matches!(self, KnownElements::Pending)
    }
}

/// A digest and a number of bytes.
type ContentKey = ([u8; 16], u64);

/// Writes elements and remembers where they are.
pub(super) struct ElementsStore {
    creator: Arc<Creator>,
    tree: NativeTree,
    state: Mutex<ElementsState>,
    /// An entry is no longer pending.
    settled: Condvar,
    /// The first failure to complete a file that is full.
    failure: Arc<Mutex<Option<StoreError>>>,
}

#[derive(Default)]
struct ElementsState {
    /// By the step that they belong to alone; `None` of those of the whole run.
    groups: HashMap<Option<StepKey>, ElementsGroup>,
    n_files: u32,
}

/// Files of elements that may be shared.
#[derive(Default)]
struct ElementsGroup {
    identities: HashMap<TensorIdentity, KnownElements>,
    contents: HashMap<ContentKey, KnownElements>,
    /// How many identities there may be before the next sweep.
    n_identities_max: usize,
    file: Option<Arc<OpenFile>>,
    closed: FileSizes,
}

/// A file that takes tensors. Its header is written after the last write.
struct OpenFile {
    creator: Arc<Creator>,
    growing: GrowingFile,
    name: Arc<str>,
    header: Mutex<GrowingHeader>,
    failure: Arc<Mutex<Option<StoreError>>>,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // This is the last reference to the file, so the header is complete.
        let header = lock(&self.header);
        // Elements at the end that did not fit are not part of the file.
        let ended = self.creator.end_at(&self.growing, header.n_bytes());
        let bytes = header.finish();
        let written = self.creator.write_at(&self.growing, 0, &[&bytes]);
        if let Err(error) = ended.and(written) {
            lock(&self.failure).get_or_insert(error);
        }
    }
}

/// A tensor whose elements have to be written, with what others wait for.
struct Claim<'a> {
    store: &'a ElementsStore,
    group: Option<&'a StepKey>,
    identity: Option<TensorIdentity>,
    content: Option<ContentKey>,
    place: Option<ElementsPlace>,
}

impl Drop for Claim<'_> {
    /// Lets those that wait for the content go on, also after an error or a panic.
    fn drop(&mut self) {
        let mut state = self.store.lock();
        let group = state.groups.entry(self.group.cloned()).or_default();
        let known = self.place.take().map(KnownElements::Written);
        let (identity, content) = (self.identity.take(), self.content.take());
        match known {
            Some(known) => {
                group
                    .contents
                    .extend(content.map(|key| (key, known.clone())));
                group.identities.extend(identity.map(|key| (key, known)));
            }
            None => {
                content.map(|key| group.contents.remove(&key));
                identity.map(|key| group.identities.remove(&key));
            }
        }
        drop(state);
        self.store.settled.notify_all();
    }
}

impl ElementsStore {
    pub(super) fn new(creator: Arc<Creator>, tree: NativeTree) -> ElementsStore {
        ElementsStore {
            creator,
            tree,
            state: Mutex::default(),
            settled: Condvar::new(),
            failure: Arc::default(),
        }
    }

    /// Writes the elements of a record that are not stored yet. With a `step`, they are those of
    /// this step alone, which may be removed. Returns the place of each tensor.
    pub(super) fn put(
        &self,
        record: &Record,
        step: Option<&StepKey>,
    ) -> Result<(Vec<ElementsPlace>, WrittenFiles), SinkError> {
        let mut written = WrittenFiles::default();
        let mut places = Vec::new();
        for (side, index, tensor) in record.slots() {
            let (place, more) = self.put_tensor(record, (side, index, tensor), step)?;
            places.push(place);
            written = written + more;
        }
        Ok((places, written))
    }

    fn put_tensor(
        &self,
        record: &Record,
        (side, index, tensor): (SlotSide, usize, &Tensor),
        group: Option<&StepKey>,
    ) -> Result<(ElementsPlace, WrittenFiles), SinkError> {
        let mut claim = Claim {
            store: self,
            group,
            identity: None,
            content: None,
            place: None,
        };
        if let Some(identity) = tensor.identity() {
            if let Some(place) = self.wait_for(group, |group| &mut group.identities, identity) {
                return Ok((place, WrittenFiles::default()));
            }
            claim.identity = Some(identity.clone());
        }
        // No other thread hashes this memory meanwhile: they wait for the identity.
        let bytes = tensor.host_bytes()?;
        let digest = tensor.observed().digest()?;
        let key = (digest, bytes.len() as u64);
        if let Some(place) = self.wait_for(group, |group| &mut group.contents, &key) {
            // The identity leads to the place from now on, without a digest.
            claim.place = Some(place.clone());
            return Ok((place, WrittenFiles::default()));
        }
        // From here on others wait for this content, until the claim is dropped.
        claim.content = Some(key);
        let operator = &record.operator;
        let name = format!(
            "{}/{}/{}.{index}",
            record.step,
            operator.op_name,
            side.name()
        );
        let (file, offset, written) = self.reserve(group, &name, tensor, bytes.len() as u64)?;
        if let Err(error) = self.creator.write_at(&file.growing, offset, &[bytes]) {
            lock(&file.header).discard(offset);
            return Err(error.into());
        }
        let place = ElementsPlace {
            file: file.name.clone(),
            offset,
            digest,
        };
        claim.place = Some(place.clone());
        Ok((place, written))
    }

    /// The place of what `key` means; `None` if the caller has to write it, and others wait for
    /// that.
    fn wait_for<K: Clone + Eq + std::hash::Hash>(
        &self,
        group: Option<&StepKey>,
        map: fn(&mut ElementsGroup) -> &mut HashMap<K, KnownElements>,
        key: &K,
    ) -> Option<ElementsPlace> {
        let mut state = self.lock();
        loop {
            let group = state.groups.entry(group.cloned()).or_default();
            match map(group).get(key) {
                Some(KnownElements::Written(place)) => return Some(place.clone()),
                Some(KnownElements::Pending) => {
                    let waited = self.settled.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                None => {
                    group.forget_if_many();
                    map(group).insert(key.clone(), KnownElements::Pending);
                    return None;
                }
            }
        }
    }

    /// Finds space for a tensor; also returns how much longer the file becomes, and whether it is a
    /// new one.
    fn reserve(
        &self,
        group: Option<&StepKey>,
        name: &str,
        tensor: &Tensor,
        n_bytes: u64,
    ) -> Result<(Arc<OpenFile>, u64, WrittenFiles), SinkError> {
        let mut state = self.lock();
        let state = &mut *state;
        let group = state.groups.entry(group.cloned()).or_default();
        let dims = tensor.shape();
        let dims: Vec<usize> = dims.iter().copied().collect();
        let mut n_files = 0;
        loop {
            if let Some(file) = &group.file {
                let mut header = lock(&file.header);
                let n_before = header.n_bytes();
                let is_full = n_before >= N_FILE_BYTES;
                let offset = if is_full {
                    None
                } else {
                    header.add(name, tensor.dtype(), &dims, n_bytes)
                };
                if let Some(offset) = offset {
                    let n_before = if n_files > 0 { 0 } else { n_before };
                    let written = WrittenFiles {
                        n_files,
                        n_bytes: header.n_bytes() - n_before,
                        ..WrittenFiles::default()
                    };
                    return Ok((file.clone(), offset, written));
                }
            }
            if n_files > 0 {
                let text = format!("`{name}` has a name that no header of a file takes");
                return Err(SinkError::Other(text));
            }
            // Files of a single step begin with little space again.
            let file = self.begin_file(state.n_files, group.closed.len(), name.len())?;
            state.n_files = file.1 + 1;
            // Threads that still write to the old file hold it; its header is written when the last
            // one finishes.
            group.close();
            group.file = Some(Arc::new(file.0));
            n_files = 1;
        }
    }

    /// Begins a file with the first number from `nth` on that is free.
    fn begin_file(
        &self,
        nth: u32,
        n_before: usize,
        n_name: usize,
    ) -> Result<(OpenFile, u32), StoreError> {
        let n_header = N_HEADER_FIRST << (2 * n_before.min(16));
        // A single name of any length fits.
        let n_header = n_header.min(N_HEADER_MAX).max(N_HEADER_FIRST + 8 * n_name);
        let mut nth = nth;
        loop {
            let path = self.tree.elements_file(nth);
            let Some(growing) = self.creator.create_growing(&path)? else {
                nth += 1;
                continue;
            };
            let header = GrowingHeader::new(n_header);
            // The space is allocated now, so that a full disk cannot prevent writing the header.
            self.creator
                .write_at(&growing, 0, &[&vec![0; header.n_reserved()]])?;
            let file = OpenFile {
                creator: self.creator.clone(),
                name: name_below(self.tree.root(), &path).into(),
                growing,
                header: Mutex::new(header),
                failure: self.failure.clone(),
            };
            return Ok((file, nth));
        }
    }

    /// Ends and returns the files of a step with separate files.
    pub(super) fn close_step(&self, step: &StepKey) -> Result<FileSizes, StoreError> {
        let group = self.lock().groups.remove(&Some(step.clone()));
        let files = group.map_or_else(Vec::new, |mut group| {
            group.close();
            group.closed
        });
        self.check()?;
        Ok(files)
    }

    /// Ends all files.
    pub(super) fn finish(&self) -> Result<(), StoreError> {
        let groups = std::mem::take(&mut self.lock().groups);
        drop(groups);
        self.check()
    }

    fn check(&self) -> Result<(), StoreError> {
        lock(&self.failure).take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, ElementsState> {
        lock(&self.state)
    }
}

impl ElementsGroup {
    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            let n_bytes = lock(&file.header).n_bytes();
            let path: PathBuf = file.growing.path().to_owned();
            self.closed.push((path, n_bytes));
        }
    }

    /// Bounds the memory: forgotten content may be written once more.
    fn forget_if_many(&mut self) {
        // Looking for what is dead takes a pass over the table, so it waits until that may have
        // doubled.
        if self.identities.len() >= self.n_identities_max.max(N_IDENTITIES_MIN) {
            self.identities
                .retain(|identity, known| known.is_pending() || identity.is_alive());
            self.n_identities_max = 2 * self.identities.len();
        }
        if self.contents.len() >= N_KNOWN_MAX {
            self.contents.retain(|_, known| known.is_pending());
        }
    }
}
