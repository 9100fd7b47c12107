//! Files of the trees: created whole, replaced, or appended to.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, Modes};
use opscope_store::file_format::mapping_csv;
use opscope_store::temporary::LeftOvers;
use opscope_store::tree::mindspore::Digits;

use crate::sink::{SinkError, Written};

/// How many short names are tried.
const N_SHORT_NAMES_MAX: usize = 1000;

pub(super) struct Files {
    creator: Creator,
    digits: Digits,
    /// Keeps lines whole and in order, and a header before them.
    appending: Mutex<()>,
}

impl Files {
    /// Of the dump below `root`, which other processes may write to as well.
    pub(super) fn new(root: &Path, modes: Modes) -> Files {
        Files {
            creator: Creator::in_shared_dump(root, modes),
            digits: Digits::default(),
            appending: Mutex::new(()),
        }
    }

    /// What was removed that killed processes had left.
    pub(super) fn left_overs(&self) -> LeftOvers {
        self.creator.left_overs()
    }

    pub(super) fn create_dir(&self, dir: &Path) -> Result<(), StoreError> {
        self.creator.create_dir(dir)
    }

    /// Creates a file unless it is there.
    pub(super) fn create(&self, path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
        self.creator.create_file(path, &[bytes])
    }

    /// Creates a file or takes the place of the one that is there.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<Written, StoreError> {
        self.creator.replace_file(path, &[bytes])?;
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
            let is_new = match self.digits.short_name(&name) {
                None => self.creator.create_file(&dir.join(&name), parts)?,
                // The line goes first: a file without a name is lost.
                Some(short) if !dir.join(&short).exists() => {
                    let line = mapping_csv::line(&short, &name);
                    self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
                    self.creator.create_file(&dir.join(&short), parts)?
                }
                Some(_) => false,
            };
            if is_new {
                return Ok(one_file(parts));
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
        let is_new = self.creator.append(path, header, lines)?;
        let n_header_bytes = if is_new { header.len() } else { 0 };
        Ok(Written {
            n_files: is_new.into(),
            n_bytes: (n_header_bytes + lines.len()) as u64,
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
