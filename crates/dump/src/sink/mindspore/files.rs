//! Files of the trees: created whole, replaced, or appended to.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::{SinkError, StepRemoval, WrittenFiles};
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::dump::read_mapping;
use opscope_store::file_format::{mapping_csv, zstd};
use opscope_store::temporary::LeftOvers;
use opscope_store::tree::mindspore::NameDigits;
use opscope_tensor::TensorIdentity;

use crate::sink::FileSharing;
use crate::sink::ledger::{FileOrigin, Ledger, StepKey};
use crate::sink::once::{CreateAttempt, FileSource, NameFinder, WriteOnce, WriteRequest};

/// How many short names are tried.
const N_SHORT_NAMES_MAX: usize = 1000;

pub(super) struct TensorFiles {
    creator: Arc<Creator>,
    once: WriteOnce<TensorIdentity>,
    digits: NameDigits,
    /// Keeps lines whole and in order, and a header before them.
    appending: Mutex<()>,
    /// Each step has a separate directory here, so the directory identifies the step of a file.
    pub(super) ledger: Ledger,
}

impl TensorFiles {
    /// `root` is the directory below which files are shared by their content.
    pub(super) fn new(creator: Arc<Creator>, dedup: FileSharing, root: &Path) -> TensorFiles {
        TensorFiles {
            once: WriteOnce::new(dedup, root, creator.modes()),
            creator,
            digits: NameDigits::default(),
            appending: Mutex::new(()),
            ledger: Ledger::default(),
        }
    }

    /// Removes what was written into the directory of a step.
    pub(super) fn remove_step(&self, key: &StepKey) -> Result<StepRemoval, StoreError> {
        self.ledger.remove(key, &self.creator)
    }

    /// Removes directories above those of steps that hold nothing.
    pub(super) fn remove_upper_dirs(&self) -> Result<(), StoreError> {
        self.ledger.remove_upper_dirs(&self.creator)
    }

    fn note(&self, path: &Path, n_bytes: u64, origin: FileOrigin) -> Result<(), StoreError> {
        let dir = path.parent().unwrap_or(path);
        self.ledger
            .note(&(dir.to_owned(), 0), path, n_bytes, origin)
    }

    /// Returns the counts of files that killed processes left: those removed and those kept.
    pub(super) fn left_overs(&self) -> LeftOvers {
        self.creator.left_overs()
    }

    pub(super) fn create_dir(&self, dir: &Path) -> Result<(), StoreError> {
        self.creator.create_dir(dir)
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.creator.exists(path)
    }

    /// Creates a file unless it is there.
    pub(super) fn create(&self, path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
        self.creator.create_file(path, &[bytes])
    }

    /// Creates a file or replaces the existing one.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<WrittenFiles, StoreError> {
        self.creator.replace_file(path, &[bytes])?;
        self.note(path, bytes.len() as u64, FileOrigin::New)?;
        Ok(one_file(n_bytes(&[bytes])))
    }

    /// [`TensorFiles::replace`] of a file whose name may be too long for the file system.
    pub(super) fn replace_named(
        &self,
        dir: &Path,
        name: &str,
        bytes: &[u8],
    ) -> Result<WrittenFiles, StoreError> {
        match self.digits.short_name(name) {
            None => self.replace(&dir.join(name), bytes),
            Some(short) => {
                self.append(
                    &dir.join(mapping_csv::FILE_NAME),
                    "",
                    &mapping_csv::line(&short, name),
                )?;
                self.replace(&dir.join(short), bytes)
            }
        }
    }

    /// Adds the real name of a directory to `mapping.csv` in `dir`, unless it is already there.
    pub(super) fn map_name(&self, dir: &Path, short: &str, long: &str) -> Result<(), StoreError> {
        // Every step asks, and an earlier run may have written the line.
        if read_mapping(dir)
            .get(short)
            .is_none_or(|known| known != long)
        {
            let line = mapping_csv::line(short, long);
            self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
        }
        Ok(())
    }

    /// Forgets tensors that are no longer there.
    pub(super) fn forget_dead(&self) {
        self.once.forget_dead();
    }

    /// Creates a file in `dir` under the first free one of `names`; if a name is too long, under
    /// digits, with the real name in `mapping.csv`. The file is compressed if there is a level.
    pub(super) fn put(
        &self,
        dir: &Path,
        names: &(impl Iterator<Item = String> + Clone),
        parts: &[&[u8]],
        compression: Option<zstd::CompressionLevel>,
    ) -> Result<WrittenFiles, SinkError> {
        self.with_request(dir, names, (parts, compression), |request| {
            self.once.put_alone(request)
        })
    }

    /// Like [`TensorFiles::put`], but links to an existing file with the same content. `source`
    /// identifies the content, if it has an identity.
    pub(super) fn put_once(
        &self,
        dir: &Path,
        names: &(impl Iterator<Item = String> + Clone),
        parts: &[&[u8]],
        compression: Option<zstd::CompressionLevel>,
        source: Option<FileSource<TensorIdentity>>,
    ) -> Result<WrittenFiles, SinkError> {
        self.with_request(dir, names, (parts, compression), |request| {
            self.once.put(source, request)
        })
    }

    fn with_request(
        &self,
        dir: &Path,
        names: &(impl Iterator<Item = String> + Clone),
        (parts, compression): (&[&[u8]], Option<zstd::CompressionLevel>),
        work: impl FnOnce(&WriteRequest<'_>) -> Result<WrittenFiles, SinkError>,
    ) -> Result<WrittenFiles, SinkError> {
        let placed = RefCell::new(None);
        let place: &NameFinder<'_> = &|attempt| {
            let path = self.place(dir, names.clone(), attempt)?;
            placed.replace(path.clone());
            Ok(path)
        };
        let creator = &self.creator;
        let written = work(&WriteRequest {
            creator,
            parts,
            compression,
            place,
        })?;
        if let Some(path) = placed.take() {
            self.note(&path, written.n_bytes, FileOrigin::New)?;
        }
        Ok(written)
    }

    fn place(
        &self,
        dir: &Path,
        names: impl Iterator<Item = String>,
        attempt: &mut dyn FnMut(&Path) -> Result<CreateAttempt, StoreError>,
    ) -> Result<Option<PathBuf>, SinkError> {
        let mut last = String::new();
        for name in names.take(N_SHORT_NAMES_MAX) {
            let short = self.digits.short_name(&name);
            let path = dir.join(short.as_ref().unwrap_or(&name));
            if let Some(short) = &short {
                // Looked up first: a line about a taken name would give the file that is there
                // another real name.
                if path.exists() {
                    last = name;
                    continue;
                }
                // The line is written first: a file without a name is lost.
                let line = mapping_csv::line(short, &name);
                self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
            }
            match attempt(&path)? {
                CreateAttempt::Refused => return Ok(None),
                CreateAttempt::Taken => last = name,
                CreateAttempt::Done => return Ok(Some(path)),
            }
        }
        Err(SinkError::Other(format!("no free file name for `{last}`")))
    }

    /// Appends lines, after `header` if the file is new.
    pub(super) fn append(
        &self,
        path: &Path,
        header: &str,
        lines: &str,
    ) -> Result<WrittenFiles, StoreError> {
        if let Some(dir) = path.parent() {
            self.creator.create_dir(dir)?;
        }
        let _guard = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_new = self.creator.append(path, header, lines)?;
        let n_header_bytes = if is_new { header.len() } else { 0 };
        // The lines of a list of names are not counted.
        let is_counted = !path.ends_with(mapping_csv::FILE_NAME);
        let origin = match (is_counted, is_new) {
            (true, true) => FileOrigin::New,
            (true, false) => FileOrigin::Appended,
            (false, _) => FileOrigin::Uncounted,
        };
        self.note(path, (n_header_bytes + lines.len()) as u64, origin)?;
        Ok(WrittenFiles {
            n_files: is_new.into(),
            n_bytes: (n_header_bytes + lines.len()) as u64,
            ..WrittenFiles::default()
        })
    }
}

fn n_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

fn one_file(n_bytes: u64) -> WrittenFiles {
    WrittenFiles {
        n_files: 1,
        n_bytes,
        ..WrittenFiles::default()
    }
}
