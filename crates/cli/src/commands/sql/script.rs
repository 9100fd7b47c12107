//! The statements that DuckDB runs.
//!
//! A query is passed as text to the function `query`, which accepts a single read-only statement,
//! so the text cannot terminate the statement around it. A statement is one line.

use std::path::{Path, PathBuf};

use opscope_tables::{COMPARE_TABLE, FUNCTIONS, TABLES, VIEWS};

use super::parts::{QuestionParts, SourceParts};
use super::question::Question;
use super::quoting::{escaped, literal};
use crate::exit::{CommandFailure, CommandResult, UNREADABLE};

/// Standard output, the only file that statements can write to.
const OUTPUT: &str = "/dev/fd/1";
/// Limit of temporary files relative to memory.
const SPILL_FACTOR: u64 = 16;

/// Resource limits of DuckDB.
pub(super) struct Limits<'a> {
    /// Number of threads.
    pub(super) n_threads: usize,
    /// Bytes of memory.
    pub(super) n_bytes: u64,
    /// Directory of temporary files.
    pub(super) spill: &'a Path,
}

/// The rows of a query.
pub(super) fn query(question: &str) -> String {
    format!("query({})", literal(question))
}

/// The statement that writes the rows of a query to standard output.
pub(super) fn copied(query: &str, format: &str) -> String {
    format!("copy ({query}) to '{OUTPUT}' ({format})")
}

/// Limits DuckDB, creates the views that a query needs, and locks all settings.
///
/// # Errors
///
/// An input error if the path of a part is not UTF-8.
pub(super) fn set_up(
    parts: &QuestionParts,
    question: &Question,
    limits: &Limits<'_>,
) -> CommandResult<Vec<String>> {
    let spill = text(limits.spill)?;
    let mut allowed = vec![literal(OUTPUT)];
    for path in parts.paths() {
        let path = text(path)?;
        let pattern = escaped(path);
        if pattern != path {
            allowed.push(literal(&pattern));
        }
        allowed.push(literal(path));
    }
    let n_spilled = limits.n_bytes.saturating_mul(SPILL_FACTOR);
    let mut statements = vec![
        format!("set memory_limit = '{}B'", limits.n_bytes),
        format!("set threads = {}", limits.n_threads),
        format!("set temp_directory = {}", literal(spill)),
        format!("set max_temp_directory_size = '{n_spilled}B'"),
        format!("set allowed_paths = [{}]", allowed.join(", ")),
        "set allow_community_extensions = false".to_owned(),
        "set allow_persistent_secrets = false".to_owned(),
        "set autoinstall_known_extensions = false".to_owned(),
        "set autoload_known_extensions = false".to_owned(),
        "set enable_external_access = false".to_owned(),
    ];
    for table in TABLES.into_iter().chain([COMPARE_TABLE]) {
        if let Some(sources) = parts.of_table(table) {
            let rows = rows_of(table, sources)?;
            statements.push(format!("create view {table} as {rows}"));
        }
    }
    for view in VIEWS.iter().filter(|view| question.needs(view.name)) {
        statements.push(format!("create view {} as {}", view.name, view.query));
    }
    for function in FUNCTIONS
        .iter()
        .filter(|function| question.needs(function.name))
    {
        let (name, body) = (function.name, function.on_runs());
        statements.push(format!(
            "create macro {name}(first_run, second_run) as table {body}"
        ));
    }
    statements.push("set lock_configuration = true".to_owned());
    Ok(statements
        .into_iter()
        .map(|statement| statement.replace('\n', " "))
        .collect())
}

/// The rows of a table over all dumps.
fn rows_of(table: &str, sources: &[SourceParts]) -> CommandResult<String> {
    // Comparisons with a reference have more columns; in other tables one file shows all columns.
    let (option, union) = if table == COMPARE_TABLE {
        (", union_by_name = true", " union all by name ")
    } else {
        ("", " union all ")
    };
    // One list of files covers all dumps that keep their names.
    let (plain, renamed): (Vec<_>, Vec<_>) = sources
        .iter()
        .partition(|source| source.replaced.is_empty());
    let plain: Vec<&PathBuf> = plain.iter().flat_map(|source| &source.paths).collect();
    let mut selects = Vec::new();
    if !plain.is_empty() {
        let files = files(&plain)?;
        selects.push(format!("select * from read_parquet([{files}]{option})"));
    }
    for source in renamed.iter().filter(|source| !source.paths.is_empty()) {
        let files = files(&source.paths.iter().collect::<Vec<_>>())?;
        let replaced = source.replaced.join(", ");
        selects.push(format!(
            "select * replace ({replaced}) from read_parquet([{files}]{option})"
        ));
    }
    Ok(selects.join(union))
}

/// The number of tensors in some parts with elements but without statistics.
///
/// # Errors
///
/// As of [`set_up`].
pub(super) fn count_unmeasured(paths: &[PathBuf]) -> CommandResult<String> {
    let files = files(&paths.iter().collect::<Vec<_>>())?;
    let count = format!(
        "select count(*) as n from read_parquet([{files}]) where n_nan is null and file is not null"
    );
    Ok(copied(&count, "format json"))
}

fn files(paths: &[&PathBuf]) -> CommandResult<String> {
    let files = paths.iter().map(|path| Ok(literal(&escaped(text(path)?))));
    let files: Vec<String> = files.collect::<CommandResult<_>>()?;
    Ok(files.join(", "))
}

fn text(path: &Path) -> CommandResult<&str> {
    path.to_str().ok_or_else(|| {
        let message = format!("`{}` is not UTF-8, which DuckDB requires", path.display());
        CommandFailure::message(UNREADABLE, message)
    })
}
