//! Names of the files of a listing.

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};

use opscope_analysis::names::fitting;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;
use opscope_store::regular_file;

use super::tensor_choice::TensorChoice;
use crate::compare::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;

/// Maximum size of a table.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// Maps shortened names to those that were too long for the file system.
const TABLE: &str = "simple_op_mapping.csv";
const NAME_LENGTH_MAX: usize = 255;

/// Creates names, and recognises those of earlier runs.
pub(super) struct DetailNames {
    prefix: String,
    /// The replacement of long names: the dump's name and the tensor.
    replacement: String,
    dir: PathBuf,
}

impl DetailNames {
    pub(super) fn new(choice: &TensorChoice, dump_name: &str, dir: &Path) -> DetailNames {
        DetailNames {
            prefix: choice.prefix(),
            replacement: dump_name.replace('.', "_") + &choice.slot(),
            dir: dir.to_owned(),
        }
    }

    /// My tensor.
    pub(super) fn npy(&self) -> Result<String, CompareStop> {
        self.fit("", ".npy", None)
    }

    /// The elements from `start` on.
    pub(super) fn lines(&self, start: usize) -> Result<String, CompareStop> {
        self.fit(&format!("_{start}"), ".csv", Some(start))
    }

    /// The worst elements.
    pub(super) fn top(&self, kind: &str) -> Result<String, CompareStop> {
        self.fit("", &format!("_{kind}_error_topn.csv"), None)
    }

    /// The summary of the errors.
    pub(super) fn summary(&self) -> Result<String, CompareStop> {
        self.fit("", "_summary.txt", None)
    }

    fn fit(&self, number: &str, suffix: &str, start: Option<usize>) -> Result<String, CompareStop> {
        let name = format!("{}{number}{suffix}", self.prefix);
        if name.len() < NAME_LENGTH_MAX {
            return Ok(name);
        }
        let number = start.map_or_else(String::new, |start| format!("_{start}"));
        let mut short = format!("{}{number}{suffix}", self.replacement);
        if short.len() >= NAME_LENGTH_MAX {
            let stem = name.strip_suffix(suffix).unwrap_or(&name);
            short = fitting(stem, suffix);
        }
        let line = mapping_csv::line(&short, &name);
        Creator::default()
            .append_line(&self.dir.join(TABLE), &line)
            .map_err(|error| CompareStop::coded(ErrorCode::WriteFile, error.to_string()))?;
        Ok(short)
    }

    /// Whether an earlier run for the same tensor wrote the file.
    fn is_own(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&self.prefix) else {
            return false;
        };
        let is_table = rest.ends_with(".csv") || rest.ends_with(".npy");
        rest == "_summary.txt" || (rest.starts_with('_') && is_table)
    }

    /// Deletes the files of earlier runs for the same tensor.
    pub(super) fn delete_old(&self) -> Result<(), CompareStop> {
        self.try_delete_old().map_err(|error| {
            log::error(&format!(
                "Failed to delete the old detail result file. {error}"
            ));
            CompareStop::bare(ErrorCode::DeleteFile)
        })
    }

    fn try_delete_old(&self) -> Result<(), Error> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if self.is_own(&name.to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        let table = self.dir.join(TABLE);
        let Ok(bytes) = regular_file::read_in_dump(&table, TABLE_BYTES_MAX) else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut kept = String::new();
        for (short, real) in mapping_csv::parse(&text) {
            let path = self.dir.join(short);
            // A table may contain any path, so only files in the directory are deleted.
            if !self.is_own(real) || short.contains('/') {
                kept.push_str(&mapping_csv::line(short, real));
            } else if path.exists() {
                fs::remove_file(path)?;
            }
        }
        fs::remove_file(&table)?;
        if !kept.is_empty() {
            Creator::default()
                .replace_file(&table, &[kept.as_bytes()])
                .map_err(Error::other)?;
        }
        Ok(())
    }
}
