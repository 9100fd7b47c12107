//! Files that are written once and then linked.
//!
//! A table remembers the file of each written tensor, by the tensor's identity or by a digest of
//! the file's bytes. The first thread writes; the others wait for it and link, or write themselves
//! if it failed. Under [`FileSharing::Content`] an index on disk outlives the process.

mod index;

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use opscope_capture::{SinkError, WrittenFiles};
use opscope_store::StoreError;
use opscope_store::atomic_file::{
    Creator, FileIdentity, PermissionModes, SharingOutcome, file_holds,
};
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::{npy_zst, zstd};
use opscope_tensor::DType;
use opscope_tensor::digest::xxh3_128_parts;

use self::index::SourceIndex;

/// Number of entries that are kept before unused ones are removed.
const N_ENTRIES_MIN: usize = 1024;
/// Maximum number of files that are remembered by their content. The index on disk has the others.
const N_CONTENTS_MAX: usize = 1 << 18;

/// Which tensors share a file in sinks that write one file for each tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSharing {
    /// Every tensor has a separate file.
    Off,
    /// Tensors in the same memory of the engine: an operator's output and the inputs that read it,
    /// weights and constants in all steps.
    #[default]
    Identity,
    /// Tensors with equal bytes, in all steps, runs and ranks below the same directory.
    Content,
}

/// An identity that two tensors share only if they use the same memory.
pub(super) trait MemoryIdentity: Clone + Eq + Hash {
    /// Whether there can still be a tensor with this identity.
    fn is_alive(&self) -> bool;
}

/// The origin of a file: a tensor's memory, its interpretation, and the header before it. These
/// determine the bytes after the header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileSource<I> {
    pub(super) identity: I,
    pub(super) dtype: DType,
    pub(super) header: Box<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SourceKey<I> {
    Source(FileSource<I>),
    /// The digest of all bytes of a file.
    Content([u8; 16]),
}

/// A finished file that others can link to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OriginalFile {
    path: Arc<Path>,
    stamp: FileIdentity,
}

impl OriginalFile {
    /// `None` if it no longer exists.
    fn new(creator: &Creator, path: PathBuf) -> Option<OriginalFile> {
        let stamp = creator.stamp(&path).ok()?;
        let path = path.into();
        Some(OriginalFile { path, stamp })
    }

    /// Whether it still exists unchanged.
    fn is_intact(&self, creator: &Creator) -> bool {
        creator
            .stamp(&self.path)
            .is_ok_and(|stamp| stamp == self.stamp)
    }
}

enum SourceEntry {
    /// A thread is about to write the file.
    Pending,
    Written(OriginalFile),
}

/// The outcome of an attempt to create a file under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreateAttempt {
    Done,
    /// The name is taken; another one may be free.
    Taken,
    /// No name is possible.
    Refused,
}

/// Finds a name for a file: calls the function with one path after the other until it succeeds or
/// refuses with `None`.
pub(super) type NameFinder<'a> = dyn Fn(
        &mut dyn FnMut(&Path) -> Result<CreateAttempt, StoreError>,
    ) -> Result<Option<PathBuf>, SinkError>
    + 'a;

/// A file to be created.
#[derive(Clone, Copy)]
pub(super) struct WriteRequest<'a> {
    pub(super) creator: &'a Creator,
    pub(super) parts: &'a [&'a [u8]],
    pub(super) compression: Option<zstd::CompressionLevel>,
    pub(super) place: &'a NameFinder<'a>,
}

impl WriteRequest<'_> {
    /// The digest of the file's source. A compressed file has a different digest.
    fn digest(&self) -> [u8; 16] {
        match self.compression {
            None => xxh3_128_parts(self.parts),
            Some(level) => {
                let mark = format!("zstd {}", level.get());
                let parts: Vec<&[u8]> = std::iter::once(mark.as_bytes())
                    .chain(self.parts.iter().copied())
                    .collect();
                xxh3_128_parts(&parts)
            }
        }
    }

    /// Whether the file `path` has the same content.
    fn is_held_by(&self, path: &Path) -> bool {
        if self.compression.is_none() {
            return file_holds(path, self.parts).is_ok_and(|is_equal| is_equal);
        }
        // Decoding is cheaper than compressing again, and another version of zstd may produce other
        // bytes for the same content.
        let bytes = FileBytes::open(path).ok();
        let decoded = bytes.and_then(|bytes| npy_zst::decode(bytes.as_ref()).ok());
        decoded.is_some_and(|decoded| {
            let mut rest = &decoded[..];
            decoded.len() as u64 == n_bytes(self.parts)
                && self.parts.iter().all(|part| {
                    let is_equal = rest.starts_with(part);
                    rest = rest.get(part.len()..).unwrap_or_default();
                    is_equal
                })
        })
    }
}

/// The outcome of writing a file; further files can link to the original.
struct FileOutcome {
    written: WrittenFiles,
    original: Option<OriginalFile>,
}

/// Writes files, or links them to files that have been written.
pub(super) struct WriteOnce<I> {
    dedup: FileSharing,
    index: Option<SourceIndex>,
    table: Mutex<SourceTable<I>>,
    /// An entry is no longer pending.
    settled: Condvar,
}

struct SourceTable<I> {
    entries: HashMap<SourceKey<I>, SourceEntry>,
    /// Number of entries before the next sweep.
    n_entries_max: usize,
}

impl<I: MemoryIdentity> WriteOnce<I> {
    /// `root` is the directory below which files with equal bytes are linked under
    /// [`FileSharing::Content`].
    pub(super) fn new(dedup: FileSharing, root: &Path, modes: PermissionModes) -> WriteOnce<I> {
        WriteOnce {
            dedup,
            index: (dedup == FileSharing::Content).then(|| SourceIndex::new(root, modes)),
            table: Mutex::new(SourceTable {
                entries: HashMap::new(),
                n_entries_max: N_ENTRIES_MIN,
            }),
            settled: Condvar::new(),
        }
    }

    /// Whether tensors are looked up by their identity.
    pub(super) fn wants_identity(&self) -> bool {
        self.dedup != FileSharing::Off
    }

    /// Creates a file, as a link if its bytes already exist.
    pub(super) fn put(
        &self,
        source: Option<FileSource<I>>,
        request: &WriteRequest<'_>,
    ) -> Result<WrittenFiles, SinkError> {
        let put = match source.filter(|_| self.wants_identity()) {
            None => self.put_content(request)?,
            Some(source) => self.once(&SourceKey::Source(source), request, &|_| {
                self.put_content(request)
            })?,
        };
        Ok(put.written)
    }

    /// Creates a file that no other one links to.
    pub(super) fn put_alone(&self, request: &WriteRequest<'_>) -> Result<WrittenFiles, SinkError> {
        write(request).map(|put| put.written)
    }

    fn put_content(&self, request: &WriteRequest<'_>) -> Result<FileOutcome, SinkError> {
        let Some(index) = &self.index else {
            return write(request);
        };
        let digest = request.digest();
        self.once(&SourceKey::Content(digest), request, &|useless| match index
            .find(&digest, request, useless)
        {
            None => index.add(&digest, write(request)?, request.creator),
            Some(original) => match link(&original, request)? {
                Some(put) => Ok(put),
                None => index.add(&digest, write(request)?, request.creator),
            },
        })
    }

    /// Links to the entry of the table for `key`, or creates the file. `make` receives an existing
    /// original that cannot be linked to.
    fn once(
        &self,
        key: &SourceKey<I>,
        request: &WriteRequest<'_>,
        make: &dyn Fn(Option<FileIdentity>) -> Result<FileOutcome, SinkError>,
    ) -> Result<FileOutcome, SinkError> {
        let mut useless = None;
        // Repeated after a refused link: another thread may have replaced the useless original.
        while let Some(original) = self.wait_for(key, useless.as_ref()) {
            if let Some(put) = link(&original, request)? {
                return Ok(put);
            }
            useless = Some(original);
        }
        // From here on the entry is pending, and is settled in any case.
        let mut claim = Claim {
            once: self,
            key,
            original: None,
        };
        let put = make(useless.map(|original| original.stamp))?;
        claim.original.clone_from(&put.original);
        Ok(put)
    }

    /// The file for `key`. `None` if there is none, or only the useless one: then the caller must
    /// create it, and others wait for it.
    fn wait_for(&self, key: &SourceKey<I>, useless: Option<&OriginalFile>) -> Option<OriginalFile> {
        let mut table = self.lock();
        loop {
            match table.entries.get(key) {
                Some(SourceEntry::Pending) => {
                    table = self
                        .settled
                        .wait(table)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Some(SourceEntry::Written(original)) if Some(original) != useless => {
                    return Some(original.clone());
                }
                Some(SourceEntry::Written(_)) | None => {
                    // Removing dead entries takes a pass over the table, so it waits until the
                    // table may have doubled.
                    if table.entries.len() >= table.n_entries_max {
                        table.sweep();
                    }
                    table.entries.insert(key.clone(), SourceEntry::Pending);
                    return None;
                }
            }
        }
    }

    /// Forgets tensors that the engine has freed.
    pub(super) fn forget_dead(&self) {
        self.lock().sweep();
    }

    fn lock(&self) -> MutexGuard<'_, SourceTable<I>> {
        // Every change to the table is a single step, so a panic cannot leave it half-changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: MemoryIdentity> SourceTable<I> {
    fn sweep(&mut self) {
        let keys = self.entries.keys();
        let n_contents = keys
            .filter(|key| matches!(key, SourceKey::Content(_)))
            .count();
        self.entries.retain(|key, entry| match key {
            // Threads wait for it; without an entry they would write the same file again.
            _ if matches!(entry, SourceEntry::Pending) => true,
            SourceKey::Source(source) => source.identity.is_alive(),
            SourceKey::Content(_) => n_contents < N_CONTENTS_MAX,
        });
        self.n_entries_max = N_ENTRIES_MIN.max(2 * self.entries.len());
    }
}

/// The right and the duty to create a file; ends when dropped.
struct Claim<'a, I: MemoryIdentity> {
    once: &'a WriteOnce<I>,
    key: &'a SourceKey<I>,
    original: Option<OriginalFile>,
}

impl<I: MemoryIdentity> Drop for Claim<'_, I> {
    fn drop(&mut self) {
        let mut table = self.once.lock();
        match self.original.take() {
            Some(original) => {
                let entry = SourceEntry::Written(original);
                table.entries.insert(self.key.clone(), entry);
            }
            None => {
                table.entries.remove(self.key);
            }
        }
        // One condition serves all files, so a single wake-up could reach a thread that waits for
        // another.
        self.once.settled.notify_all();
    }
}

fn write(request: &WriteRequest<'_>) -> Result<FileOutcome, SinkError> {
    let mut n_bytes = n_bytes(request.parts);
    let attempt = &mut |path: &Path| {
        let is_new = match request.compression {
            None => request.creator.create_file(path, request.parts)?,
            Some(level) => request.creator.create_with(path, |file| {
                n_bytes = zstd::write(file, request.parts, level)?;
                Ok(())
            })?,
        };
        Ok(if is_new {
            CreateAttempt::Done
        } else {
            CreateAttempt::Taken
        })
    };
    let path = (request.place)(attempt)?;
    Ok(FileOutcome {
        written: WrittenFiles {
            n_files: 1,
            n_bytes,
            ..WrittenFiles::default()
        },
        original: path.and_then(|path| OriginalFile::new(request.creator, path)),
    })
}

/// `None` if no file can be linked to `original`.
fn link(
    original: &OriginalFile,
    request: &WriteRequest<'_>,
) -> Result<Option<FileOutcome>, SinkError> {
    // A file that was edited in place would pass the edit on to every new name.
    if !original.is_intact(request.creator) {
        return Ok(None);
    }
    let attempt = &mut |path: &Path| {
        let sharing = request.creator.share_file(&original.path, path)?;
        Ok(match sharing {
            SharingOutcome::Shared(_) => CreateAttempt::Done,
            SharingOutcome::Taken => CreateAttempt::Taken,
            SharingOutcome::Refused => CreateAttempt::Refused,
        })
    };
    let path = (request.place)(attempt)?;
    Ok(path.map(|_| FileOutcome {
        written: WrittenFiles {
            n_files: 1,
            n_linked: 1,
            n_bytes_linked: original.stamp.n_bytes(),
            ..WrittenFiles::default()
        },
        original: Some(original.clone()),
    }))
}

fn n_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

impl MemoryIdentity for opscope_tensor::TensorIdentity {
    fn is_alive(&self) -> bool {
        opscope_tensor::TensorIdentity::is_alive(self)
    }
}

#[cfg(test)]
mod tests;
