//! Files of the trees: created whole, replaced, or appended to.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;
use opscope_store::tree::mindspore::Digits;

use crate::sink::ledger::{Ledger, Origin, StepKey};
use crate::sink::{Removed, SinkError, Written};

/// How many short names are tried.
const N_SHORT_NAMES_MAX: usize = 1000;

pub(super) struct Files {
    creator: Arc<Creator>,
    digits: Digits,
    /// Keeps lines whole and in order, and a header before them.
    appending: Mutex<()>,
    /// Each step has a directory of its own here, so the directory says which step a file is of.
    pub(super) ledger: Ledger,
}

impl Files {
    pub(super) fn new(creator: Arc<Creator>) -> Files {
        Files {
            creator,
            digits: Digits::default(),
            appending: Mutex::new(()),
            ledger: Ledger::default(),
        }
    }

    /// Removes what was written into the directory of a step.
    pub(super) fn remove_step(&self, key: &StepKey) -> Result<Removed, StoreError> {
        self.ledger.remove(key, &self.creator)
    }

    /// Removes directories above those of steps that hold nothing.
    pub(super) fn remove_upper_dirs(&self) -> Result<(), StoreError> {
        self.ledger.remove_upper_dirs(&self.creator)
    }

    fn note(&self, path: &Path, n_bytes: u64, origin: Origin) -> Result<(), StoreError> {
        let dir = path.parent().unwrap_or(path);
        self.ledger
            .note(&(dir.to_owned(), 0), path, n_bytes, origin)
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

    /// Creates a file or takes the place of the one that is there.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<Written, StoreError> {
        self.creator.replace_file(path, &[bytes])?;
        self.note(path, bytes.len() as u64, Origin::New)?;
        Ok(one_file(&[bytes]))
    }

    /// [`Files::replace`] of a file whose name may be too long for the file system.
    pub(super) fn replace_named(
        &self,
        dir: &Path,
        name: &str,
        bytes: &[u8],
    ) -> Result<Written, StoreError> {
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

    /// Creates a file in `dir` under the first of `names` that is free; where a name is too long,
    /// under digits, and `mapping.csv` says whose.
    pub(super) fn put(
        &self,
        dir: &Path,
        names: impl Iterator<Item = String>,
        parts: &[&[u8]],
    ) -> Result<Written, SinkError> {
        let mut last = String::new();
        for name in names.take(N_SHORT_NAMES_MAX) {
            let short = self.digits.short_name(&name);
            let path = dir.join(short.as_ref().unwrap_or(&name));
            if self.creator.create_file(&path, parts)? {
                if let Some(short) = short {
                    let line = mapping_csv::line(&short, &name);
                    self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
                }
                let written = one_file(parts);
                self.note(&path, written.n_bytes, Origin::New)?;
                return Ok(written);
            }
            last = name;
        }
        Err(SinkError::Other(format!("no free file name for `{last}`")))
    }

    /// Appends lines, after `header` if the file is new.
    pub(super) fn append(
        &self,
        path: &Path,
        header: &str,
        lines: &str,
    ) -> Result<Written, StoreError> {
        if let Some(dir) = path.parent() {
            self.creator.create_dir(dir)?;
        }
        let _guard = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_new = !self.creator.exists(path);
        let text = match is_new {
            true => format!("{header}{lines}"),
            false => lines.to_owned(),
        };
        self.creator.append_line(path, &text)?;
        // Nobody counts the lines of a list of names.
        let is_counted = !path.ends_with(mapping_csv::FILE_NAME);
        let origin = match (is_counted, is_new) {
            (true, true) => Origin::New,
            (true, false) => Origin::Appended,
            (false, _) => Origin::Uncounted,
        };
        self.note(path, text.len() as u64, origin)?;
        Ok(Written {
            n_files: is_new.into(),
            n_bytes: text.len() as u64,
            ..Written::default()
        })
    }
}

fn one_file(parts: &[&[u8]]) -> Written {
    Written {
        n_files: 1,
        n_bytes: parts.iter().map(|part| part.len() as u64).sum(),
        ..Written::default()
    }
}
