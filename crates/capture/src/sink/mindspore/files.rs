//! Files of the trees: created whole, replaced, or appended to.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, Modes, write_all_vectored};
use opscope_store::file_format::{mapping_csv, zstd};
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
    pub(super) fn new(modes: Modes) -> Files {
        Files {
            creator: Creator::new(modes),
            digits: Digits::default(),
            appending: Mutex::new(()),
        }
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
        Ok(one_file(n_bytes(&[bytes])))
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
    /// under digits, and `mapping.csv` says whose. The file is compressed if there is a level.
    pub(super) fn put(
        &self,
        dir: &Path,
        names: impl Iterator<Item = String>,
        parts: &[&[u8]],
        compression: Option<zstd::Level>,
    ) -> Result<Written, SinkError> {
        let mut last = String::new();
        for name in names.take(N_SHORT_NAMES_MAX) {
            let n_bytes = match self.digits.short_name(&name) {
                None => self.create_new(&dir.join(&name), parts, compression)?,
                Some(short) => {
                    let n_bytes = self.create_new(&dir.join(&short), parts, compression)?;
                    if n_bytes.is_some() {
                        let line = mapping_csv::line(&short, &name);
                        self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
                    }
                    n_bytes
                }
            };
            if let Some(n_bytes) = n_bytes {
                return Ok(one_file(n_bytes));
            }
            last = name;
        }
        Err(SinkError::Other(format!("no free file name for `{last}`")))
    }

    /// Creates a file and returns its size; `None` if the name is taken.
    fn create_new(
        &self,
        path: &Path,
        parts: &[&[u8]],
        compression: Option<zstd::Level>,
    ) -> Result<Option<u64>, StoreError> {
        let mut n_bytes = n_bytes(parts);
        let is_new = self.creator.create_with(path, |file| match compression {
            None => write_all_vectored(file, parts),
            Some(level) => {
                n_bytes = zstd::write(file, parts, level)?;
                Ok(())
            }
        })?;
        Ok(is_new.then_some(n_bytes))
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
        let is_new = !path.exists();
        let text = match is_new {
            true => format!("{header}{lines}"),
            false => lines.to_owned(),
        };
        self.creator.append_line(path, &text)?;
        Ok(Written {
            n_files: is_new.into(),
            n_bytes: text.len() as u64,
            ..Written::default()
        })
    }
}

fn n_bytes(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

fn one_file(n_bytes: u64) -> Written {
    Written {
        n_files: 1,
        n_bytes,
        ..Written::default()
    }
}
