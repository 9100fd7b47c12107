//! The rows of a dump's tensors in memory, without writing files.

use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::slot_table::SlotRow;
use opscope_store::tree::own;

use super::parts::{DumpParts, TablePart};
use super::{TABLES, current_part, open_parts, part_file, problems_in, statistics};

/// A dump whose rows are built part by part: one per rank, model and step, as in
/// [`write_tables`](super::write_tables).
pub struct TensorRows {
    parts: DumpParts,
    index: PathBuf,
    problems: Vec<String>,
    n_threads: usize,
    has_stats: bool,
}

/// The rows of a part.
#[derive(Debug, Default)]
pub struct PartOfRows {
    /// The rows, in execution order.
    pub rows: Vec<SlotRow>,
    /// Problems while reading them.
    pub problems: Vec<String>,
}

impl TensorRows {
    /// Lists a dump. `label` is the name of its run in the rows; with `has_stats` missing
    /// statistics and digests are computed.
    ///
    /// # Errors
    /// [`StoreError`] if there is nothing at `path`. All other errors are among the problems.
    pub fn open(
        path: &Path,
        label: &str,
        n_threads: usize,
        has_stats: bool,
    ) -> Result<TensorRows, StoreError> {
        let parts = open_parts(path, label, n_threads)?;
        let mut problems = parts.problems.clone();
        problems.extend(parts.slot_problems());
        Ok(TensorRows {
            parts,
            index: own::index_dir(path),
            problems,
            n_threads,
            has_stats,
        })
    }

    /// Number of parts.
    pub fn n_parts(&self) -> usize {
        self.parts.parts.len()
    }

    /// Problems that occurred before any part was read.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Builds the rows of a part; empty for a part that does not exist. Statistics that would have
    /// to be computed are taken from the dump's index if that part of it is current.
    ///
    /// # Errors
    /// [`StoreError`] if its file cannot be read.
    pub fn part(&self, index: usize) -> Result<PartOfRows, StoreError> {
        let Some(part) = self.parts.parts.get(index) else {
            return Ok(PartOfRows::default());
        };
        if self.has_stats
            && let Some(indexed) = self.indexed_part(part)
        {
            return Ok(indexed);
        }
        let mut found = self.parts.rows(part)?;
        let mut problems = std::mem::take(&mut found.problems);
        // Problems of single tensors are in `self.problems` already.
        problems.retain(|problem| !self.problems.contains(problem));
        if self.has_stats {
            problems.extend(statistics::compute(&mut found, self.n_threads).1);
        }
        Ok(PartOfRows {
            rows: found.rows,
            problems,
        })
    }

    /// The rows of a part from the index, with statistics; `None` if they are missing or
    /// unreadable.
    fn indexed_part(&self, part: &TablePart) -> Option<PartOfRows> {
        let path = part_file(&self.index, TABLES[0], self.parts.label(), part);
        let table = current_part(&path, &self.parts.fingerprints(part), true)?;
        let groups = (0..table.n_groups()).map(|group| table.read_group(group));
        let rows = groups.collect::<Result<Vec<_>, _>>().ok()?.concat();
        let mut problems = problems_in(&table);
        problems.retain(|problem| !self.problems.contains(problem));
        Some(PartOfRows { rows, problems })
    }
}
