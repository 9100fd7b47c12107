//! Asking, with the engine.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use opscope_analysis::compare::report::ComparedRuns;
use opscope_analysis::default_jobs;
use opscope_analysis::tables::{
    ComparePart, TablesOptions, TablesReport, TablesShare, labels_in, run_names, write_tables,
};
use opscope_sql::{SqlAnswer, SqlDatabase, SqlError, SqlOptions, TableSource};
use opscope_store::atomic_file::Creator;
use opscope_store::tree::own;
use tempfile::TempDir;

use super::{AnswerFormat, SqlArguments};
use crate::commands::index;
use crate::console::{self, line, tell};
use crate::exit::{CommandFailure, PARTIAL, UNREADABLE, USAGE, check_path};
use crate::format;

/// A missing value in a table for people.
const MISSING: &str = "NULL";

pub(super) fn run(arguments: &SqlArguments) -> Result<(), CommandFailure> {
    let answer_format = answer_format(arguments)?;
    for dump in &arguments.dumps {
        check_path(dump)?;
    }
    if arguments.compare {
        index::check_compared(&arguments.dumps)?;
    }
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    let tables = PreparedTables::new(arguments, n_threads)?;
    let options = SqlOptions {
        n_threads,
        n_bytes: usize::try_from(arguments.memory).unwrap_or(usize::MAX),
    };
    let database =
        SqlDatabase::open(&tables.sources, tables.compared.as_deref(), options).map_err(failure)?;
    let answer = database.ask(&arguments.query).map_err(failure)?;
    let needs_statistics = answer.needs_statistics();
    match &arguments.out {
        Some(out) => to_file(answer, answer_format, out, arguments)?,
        None => to_console(answer, answer_format, arguments.rows)?,
    }
    // An answer without a NaN must not look like one about tensors without a NaN.
    if needs_statistics {
        let n = database.n_without_statistics().map_err(failure)?;
        if n > 0 {
            let tensors = format::count(n, "tensor");
            tell!("opscope: warning: {tensors} without statistics: `--stats` computes them");
        }
    }
    if tables.n_errors > 0 {
        return Err(CommandFailure::silent(PARTIAL));
    }
    Ok(())
}

/// The form that was asked for, or goes with the file's name.
fn answer_format(arguments: &SqlArguments) -> Result<AnswerFormat, CommandFailure> {
    let extension = arguments.out.as_deref().and_then(Path::extension);
    let by_name = match extension.and_then(|extension| extension.to_str()) {
        Some("csv") => Some(AnswerFormat::Csv),
        Some("jsonl" | "ndjson") => Some(AnswerFormat::Jsonl),
        Some("parquet") => Some(AnswerFormat::Parquet),
        _ => None,
    };
    match (arguments.format.or(by_name), &arguments.out) {
        (Some(AnswerFormat::Parquet), None) => Err(CommandFailure::message(
            USAGE,
            "`--out` is needed: Parquet is nothing for a terminal",
        )),
        (None, Some(out)) => Err(CommandFailure::message(
            USAGE,
            format!(
                "the name `{}` tells no form of the answer: give `--format`, or a name that ends in \
                 .csv, .jsonl or .parquet",
                out.display()
            ),
        )),
        (format, _) => Ok(format.unwrap_or(AnswerFormat::Table)),
    }
}

/// Tables that are there and current.
struct PreparedTables {
    sources: Vec<TableSource>,
    /// The comparison that was asked for.
    compared: Option<PathBuf>,
    /// Files that could not be read.
    n_errors: usize,
    /// Tables of dumps that cannot be written to, which go when the answer is there.
    _temporary: Vec<TempDir>,
}

impl PreparedTables {
    fn new(arguments: &SqlArguments, n_threads: usize) -> Result<PreparedTables, CommandFailure> {
        let mut tables = PreparedTables {
            sources: Vec::new(),
            compared: None,
            n_errors: 0,
            _temporary: Vec::new(),
        };
        let options = TablesOptions {
            n_threads,
            has_stats: arguments.stats,
            modes: arguments.modes.modes(),
            share: TablesShare::All,
        };
        let labels = run_names(&arguments.dumps);
        let mut reports = Vec::new();
        for (dump, label) in arguments.dumps.iter().zip(&labels) {
            let known = labels_in(dump);
            if known.is_empty() {
                reports.push(tables.add_dump(dump, label, &options)?);
                continue;
            }
            if arguments.compare {
                let message = format!("`{}` has tables and no tensors to compare", dump.display());
                return Err(CommandFailure::message(USAGE, message));
            }
            let sources = known.into_iter().map(|label| TableSource {
                index: dump.clone(),
                label,
                run: None,
            });
            tables.sources.extend(sources);
        }
        if let ([target, golden], true) = (&reports[..], arguments.compare) {
            // Beside the tables of the target, under the names that both have in the answer.
            let runs = ComparedRuns {
                target: &labels[0],
                golden: &labels[1],
            };
            let part = ComparePart::new(&tables.sources[0].index, runs, [target, golden]);
            let dumps = [0, 1].map(|i| arguments.dumps[i].as_path());
            index::write_comparison(&part, dumps, &options)?;
            tables.compared = Some(part.file());
        }
        tables.tell_apart();
        Ok(tables)
    }

    /// Makes, or completes, the tables of a dump.
    fn add_dump(
        &mut self,
        dump: &Path,
        label: &str,
        options: &TablesOptions,
    ) -> Result<TablesReport, CommandFailure> {
        // In its own tables a dump has its own name, whoever it is asked together with.
        let own_label = run_names(&[dump]).remove(0);
        let index = match own_index(dump, options) {
            Some(index) => index,
            None => {
                let place = private_dir().map_err(|error| {
                    let error = anyhow!(error).context("no place for tables");
                    CommandFailure::new(PARTIAL, error)
                })?;
                let path = place.path().to_owned();
                self._temporary.push(place);
                path
            }
        };
        let report = write_tables(dump, &own_label, &index, options)?;
        if report.n_parts() == 0 && report.errors.is_empty() {
            return Err(CommandFailure::nothing_at(dump, &report.passed_over));
        }
        for error in &report.errors {
            tell!("opscope: {error}");
        }
        self.n_errors += report.errors.len();
        if report.n_parts() == 0 {
            return Err(CommandFailure::silent(UNREADABLE));
        }
        let run = (label != own_label).then(|| label.to_owned());
        self.sources.push(TableSource {
            index,
            label: own_label,
            run,
        });
        Ok(report)
    }

    /// Gives runs of one name other names.
    fn tell_apart(&mut self) {
        let mut taken = HashSet::new();
        for source in &mut self.sources {
            let name = source.run.clone().unwrap_or_else(|| source.label.clone());
            let mut free = name.clone();
            let mut n = 1;
            while !taken.insert(free.clone()) {
                n += 1;
                free = format!("{name}-{n}");
            }
            if free != source.label {
                source.run = Some(free);
            }
        }
    }
}

/// The place of tables in a dump; none if nothing can be written there.
fn own_index(dump: &Path, options: &TablesOptions) -> Option<PathBuf> {
    if !dump.is_dir() {
        return None;
    }
    let index = own::index_dir(dump);
    let creator = Creator::in_dump(dump, options.modes);
    creator.create_dir(&index).ok()?;
    // A file tells whether the directory takes files, which permissions alone do not.
    let probe = tempfile::tempfile_in(&index);
    probe.is_ok().then_some(index)
}

fn to_file(
    answer: SqlAnswer<'_>,
    answer_format: AnswerFormat,
    out: &Path,
    arguments: &SqlArguments,
) -> Result<(), CommandFailure> {
    let mut outcome = Ok(());
    let written = Creator::new(arguments.modes.modes()).replace_with(out, |file| {
        let mut file = BufWriter::new(file);
        outcome = match answer_format {
            AnswerFormat::Table => write_table(answer, usize::MAX, &mut file),
            AnswerFormat::Csv => answer.write_csv(&mut file),
            AnswerFormat::Jsonl => answer.write_json_lines(&mut file),
            AnswerFormat::Parquet => answer.write_parquet(&mut file),
        };
        file.flush()?;
        // A part of an answer must not stand where a whole one is expected.
        match &outcome {
            Ok(()) => Ok(()),
            Err(_) => Err(std::io::Error::other("the answer is not whole")),
        }
    });
    outcome.map_err(failure)?;
    Ok(written?)
}

fn to_console(
    answer: SqlAnswer<'_>,
    answer_format: AnswerFormat,
    n_rows_max: usize,
) -> Result<(), CommandFailure> {
    let outcome = match answer_format {
        AnswerFormat::Csv => answer.write_csv(&mut console::out()),
        AnswerFormat::Jsonl => answer.write_json_lines(&mut console::json_out()),
        AnswerFormat::Table | AnswerFormat::Parquet => {
            write_table(answer, n_rows_max, &mut console::out())
        }
    };
    outcome.map_err(failure)
}

/// Prints a table, or as much of it as is asked for.
fn write_table(
    mut answer: SqlAnswer<'_>,
    n_rows_max: usize,
    out: &mut dyn Write,
) -> Result<(), SqlError> {
    let names = answer.names();
    let header: Vec<&str> = names.iter().map(String::as_str).collect();
    let numbers = answer.numbers();
    let right: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    let mut is_cut = false;
    while let Some(batch) = answer.next_texts()? {
        let room = n_rows_max - rows.len();
        is_cut = batch.len() > room;
        let texts = batch.into_iter().take(room);
        rows.extend(texts.map(|row| {
            let cells = row.into_iter();
            cells
                .map(|cell| cell.unwrap_or_else(|| MISSING.to_owned()))
                .collect()
        }));
        // The rest is not even made.
        if is_cut {
            break;
        }
    }
    let n_rows = rows.len();
    writeln!(out, "{}", format::table(&header, &right, rows).trim_fmt())?;
    if is_cut {
        line!(
            out,
            "{} shown and others not: `--rows`, or another `--format`, has more",
            format::count(n_rows as u64, "row")
        )?;
    }
    Ok(())
}

/// The exit code is that of what failed: the question, the tables or the output.
fn failure(error: SqlError) -> CommandFailure {
    match error {
        SqlError::Question(_) => CommandFailure::new(USAGE, error),
        SqlError::Answer(_) if error.is_out_of_memory() => {
            let hint = "`--memory` allows for more; fewer columns, or a condition on `run` or `rank`, need less";
            CommandFailure::new(UNREADABLE, error).with_hint(hint)
        }
        SqlError::Answer(_) => CommandFailure::new(UNREADABLE, error),
        SqlError::Output(source) => CommandFailure::new(PARTIAL, source),
    }
}

/// A temporary directory that nobody else can list.
fn private_dir() -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}
