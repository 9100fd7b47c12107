//! Files of the trees: created whole, replaced, or appended to.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;
use opscope_store::tree::mindspore::Digits;

use crate::sink::{SinkError, Written};

/// How many short names are tried.
const N_SHORT_NAMES_MAX: usize = 1000;

pub(super) struct Files {
    creator: Arc<Creator>,
    digits: Digits,
    /// Keeps lines whole and in order, and a header before them.
    appending: Mutex<()>,
}

impl Files {
    pub(super) fn new(creator: Arc<Creator>) -> Files {
        Files {
            creator,
            digits: Digits::default(),
            appending: Mutex::new(()),
        }
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
                Some(short) => {
                    let is_new = self.creator.create_file(&dir.join(&short), parts)?;
                    if is_new {
                        let line = mapping_csv::line(&short, &name);
                        self.append(&dir.join(mapping_csv::FILE_NAME), "", &line)?;
                    }
                    is_new
                }
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
        let is_new = !self.creator.exists(path);
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

fn one_file(parts: &[&[u8]]) -> Written {
    Written {
        n_files: 1,
        n_bytes: parts.iter().map(|part| part.len() as u64).sum(),
        ..Written::default()
    }
}
