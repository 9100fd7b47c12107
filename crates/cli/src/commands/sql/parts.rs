//! The files that a query needs: of `tensors`, only those whose ranges may match.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use opscope_analysis::job;
use opscope_store::slot_table::SlotTable;
use opscope_tables::{COMPARE_TABLE, PartRanges, TABLES, has_comparisons};

use super::question::Question;
use super::quoting::literal;
use super::tables::{PreparedTables, TableSource};
use crate::exit::{CommandFailure, CommandResult, UNREADABLE};

/// Extension of the files of tables.
const EXTENSION: &str = "parquet";
/// Columns in a table of comparisons that name runs.
const COMPARED_RUNS: [&str; 2] = ["run", "golden_run"];

/// The files of a query.
pub(super) struct QuestionParts {
    /// By the table.
    tables: BTreeMap<&'static str, Vec<SourceParts>>,
    /// Files of `tensors` whose tensors may lack statistics that the query needs.
    pub(super) unmeasured: Vec<PathBuf>,
}

/// One dump's files of a table.
pub(super) struct SourceParts {
    pub(super) paths: Vec<PathBuf>,
    /// Columns whose value in answers differs from the files, as `{expression} as {name}`.
    pub(super) replaced: Vec<String>,
}

impl QuestionParts {
    /// Finds the files and checks the parts that the query reads, because DuckDB ignores checksums.
    ///
    /// # Errors
    ///
    /// An input error if a file is missing or damaged.
    pub(super) fn new(
        tables: &PreparedTables,
        question: &Question,
        n_threads: usize,
    ) -> CommandResult<QuestionParts> {
        let mut parts = QuestionParts {
            tables: BTreeMap::new(),
            unmeasured: Vec::new(),
        };
        for table in TABLES.into_iter().filter(|table| question.needs(table)) {
            let sources = tables.sources.iter();
            let sources = sources.map(|source| {
                Ok(SourceParts {
                    paths: files_in(&source.index.join(table).join(&source.label))?,
                    replaced: source.shown_run().into_iter().collect(),
                })
            });
            let sources = sources.collect::<CommandResult<Vec<_>>>()?;
            parts.tables.insert(table, sources);
        }
        if question.needs(COMPARE_TABLE) {
            let compared = compared(tables)?;
            if !compared.is_empty() {
                parts.tables.insert(COMPARE_TABLE, compared);
            }
        }
        parts.leave_out(tables, question);
        if question.needs_statistics() {
            parts.unmeasured = unmeasured(&tables.sources)?;
        }
        parts.check(question, n_threads)?;
        Ok(parts)
    }

    /// The files of a table, by dump; `None` if the query does not need it.
    pub(super) fn of_table(&self, table: &str) -> Option<&[SourceParts]> {
        self.tables.get(table).map(Vec::as_slice)
    }

    /// All files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let sources = self.tables.values().flatten();
        sources
            .flat_map(|source| &source.paths)
            .chain(&self.unmeasured)
    }

    /// Drops the files whose ranges exclude every row of the answer.
    fn leave_out(&mut self, tables: &PreparedTables, question: &Question) {
        let conditions = question.conditions();
        let Some(sources) = self.tables.get_mut(TABLES[0]) else {
            return;
        };
        if conditions.is_empty() {
            return;
        }
        // Without any file there would be no columns.
        let first = sources.iter().position(|source| !source.paths.is_empty());
        let first = first.map(|i| (i, sources[i].paths[0].clone()));
        for (parts, source) in sources.iter_mut().zip(&tables.sources) {
            let ranges = PartRanges::read(&source.index, TABLES[0], &source.label);
            parts.paths.retain(|path| {
                ranges.current_part(path).is_none_or(|range| {
                    conditions.iter().all(|condition| range.may_meet(condition))
                })
            });
        }
        if let (Some((i, path)), true) =
            (first, sources.iter().all(|source| source.paths.is_empty()))
        {
            sources[i].paths.push(path);
        }
    }

    /// Checks the pages that the query reads.
    fn check(&self, question: &Question, n_threads: usize) -> CommandResult {
        let paths: Vec<&PathBuf> = self.paths().collect();
        let checked = job::map(&paths, n_threads, |path| {
            SlotTable::check_pages(path, |column| question.reads_column(column))
        });
        for outcome in checked {
            outcome.map_err(|error| CommandFailure::new(UNREADABLE, error))?;
        }
        Ok(())
    }
}

impl TableSource {
    /// The column `run` with the dump's name in answers, if that is different.
    fn shown_run(&self) -> Option<String> {
        // The name may be followed by a run's time.
        let behind = self.label.chars().count() + 1;
        let run = literal(self.run.as_ref()?);
        Some(format!("concat({run}, substr(run, {behind})) as run"))
    }
}

/// The requested comparison, or those in the indexes.
fn compared(tables: &PreparedTables) -> CommandResult<Vec<SourceParts>> {
    if let Some(file) = &tables.compared {
        return Ok(vec![SourceParts {
            paths: vec![file.clone()],
            replaced: Vec::new(),
        }]);
    }
    let mut compared = Vec::new();
    for source in &tables.sources {
        if has_comparisons(&source.index, Some(&source.label)) {
            compared.push(SourceParts {
                paths: files_in(&source.index.join(COMPARE_TABLE).join(&source.label))?,
                replaced: shown_runs(&tables.sources, &source.index),
            });
        }
    }
    Ok(compared)
}

/// The columns of runs with their names in answers, if several indexes use the same name: a table
/// names runs as its index does.
fn shown_runs(sources: &[TableSource], index: &Path) -> Vec<String> {
    let of_index = sources.iter().filter(|source| source.index == index);
    let names = of_index.filter_map(|source| {
        let (label, run) = (literal(&source.label), literal(source.run.as_ref()?));
        Some(format!(" when {label} then {run}"))
    });
    let names: String = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let columns = COMPARED_RUNS.iter();
    columns
        .map(|column| format!("case {column}{names} else {column} end as {column}"))
        .collect()
}

/// Files of `tensors` with tensors that may lack statistics.
fn unmeasured(sources: &[TableSource]) -> CommandResult<Vec<PathBuf>> {
    let mut unmeasured = Vec::new();
    for source in sources {
        let ranges = PartRanges::read(&source.index, TABLES[0], &source.label);
        let files = files_in(&source.index.join(TABLES[0]).join(&source.label))?;
        unmeasured.extend(files.into_iter().filter(|path| {
            let range = ranges.current_part(path);
            range.is_none_or(|range| range.may_be_empty("n_nan"))
        }));
    }
    Ok(unmeasured)
}

/// The Parquet files of a directory, sorted by name.
fn files_in(dir: &Path) -> CommandResult<Vec<PathBuf>> {
    let absolute = std::path::absolute(dir).and_then(fs::read_dir);
    let entries = absolute.with_context(|| format!("cannot read `{}`", dir.display()));
    let entries = entries.map_err(|error| CommandFailure::new(UNREADABLE, error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| CommandFailure::new(UNREADABLE, error))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            files.push(path);
        }
    }
    if files.is_empty() {
        let error = anyhow!("there is no Parquet file in `{}`", dir.display());
        return Err(CommandFailure::new(UNREADABLE, error));
    }
    files.sort();
    Ok(files)
}
