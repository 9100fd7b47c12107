//! `opscope sql`.

mod answer;
mod duckdb;
mod parts;
mod question;
mod quoting;
mod script;
mod tables;

use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use opscope_analysis::default_jobs;
use opscope_store::atomic_file::Creator;
use tempfile::TempDir;

use self::answer::AnswerColumns;
use self::duckdb::{DuckDb, Stage};
use self::parts::QuestionParts;
use self::question::Question;
use self::script::Limits;
use self::tables::PreparedTables;
use crate::arguments::{self, ModeArguments};
use crate::commands::index;
use crate::console::{self, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, USAGE, check_dump};
use crate::{format, remote, signals};

pub use self::duckdb::look_for_duckdb;

/// Query dumps in SQL, using DuckDB
///
/// The tables are those of `opscope index`: tensors, operators, edges and events. Tables of dumps
/// are created or updated in `.opscope/index` of each; directories of tables are used as they are.
/// Views answer common questions: first_nan, first_made_non_finite, pairs, changed, first_changed,
/// worst and unmatched; the last five are also functions of two runs.
/// `describe tensors` lists columns.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope sql \"select * from first_nan\" dump
  opscope sql \"select op_type, count(*), max(max) from tensors group by op_type\" dump
  opscope sql \"select * from first_changed('sound', 'faulty')\" sound faulty
  opscope sql \"select op_name, slot, rel_l2 from compare where level = 'fail'\" faulty sound --compare
  opscope sql \"select * from tensors\" dump --out tensors.csv")]
pub(crate) struct SqlArguments {
    /// The query: one read-only statement
    #[arg(value_name = "QUERY")]
    query: String,
    /// Dumps, or directories of tables
    #[arg(value_name = "DUMP", required = true)]
    dumps: Vec<PathBuf>,
    /// Format of the answer [default: that of the file's suffix, or a table]
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<AnswerFormat>,
    /// Where to write the answer [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Maximum number of rows of a printed table; the other formats have all rows
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// Compute statistics and digests of tensors with elements but without statistics
    #[arg(long)]
    stats: bool,
    /// Compare the first dump with the second as `opscope compare` does, into the table `compare`
    #[arg(long)]
    compare: bool,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Memory limit of DuckDB, which may spill to temporary files of at most 16 times this size
    #[arg(long, value_name = "SIZE", value_parser = arguments::size, default_value = "4GiB")]
    memory: u64,
    /// Time limit of the answer in seconds; 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[command(flatten)]
    modes: ModeArguments,
}

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnswerFormat {
    /// Aligned columns, for people
    Table,
    /// Comma-separated values with a line of names
    Csv,
    /// A JSON object a line
    Jsonl,
    /// A Parquet file, which needs `--out`
    Parquet,
}

pub(crate) fn run(arguments: &SqlArguments) -> CommandResult {
    let answer_format = answer_format(arguments)?;
    for dump in &arguments.dumps {
        check_dump(dump)?;
    }
    if arguments.compare {
        index::check_compared(&arguments.dumps)?;
    }
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs).max(1);
    let place = private_dir().map_err(|error| {
        let error = anyhow!(error).context("cannot create a directory for temporary files");
        CommandFailure::new(PARTIAL, error)
    })?;
    let Some(mut duckdb) = DuckDb::start()? else {
        let tables = PreparedTables::new(arguments, n_threads, place.path())?;
        return Err(without_duckdb(&tables, place.path()));
    };
    let (stop, path) = (duckdb.stop(), place.path().to_owned());
    signals::clean_before_the_end(move || {
        stop.stop_by_signal();
        // Leftovers stay in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&path);
        remote::clean();
    });
    let time = (arguments.timeout > 0).then(|| Duration::from_secs(arguments.timeout));
    // The limit starts before the tables are made, which may take longer than the answer.
    duckdb.limit(time);
    let question = match duckdb.tree(&arguments.query)? {
        Some(tree) => Question::from_tree(&tree)?,
        None => Question::unknown(),
    };
    duckdb.limit(None);
    let tables = PreparedTables::new(arguments, n_threads, place.path())?;
    let parts = QuestionParts::new(&tables, &question, n_threads)?;
    let limits = Limits {
        n_threads,
        n_bytes: arguments.memory,
        spill: &place.path().join("spill"),
    };
    for statement in script::set_up(&parts, &question, &limits)? {
        duckdb.send(&statement);
    }
    duckdb.limit(time);
    answer(arguments, answer_format, duckdb, &parts)?;
    if tables.n_errors > 0 {
        return Err(CommandFailure::silent(PARTIAL));
    }
    Ok(())
}

/// Answers a query with a DuckDB that has its tables.
fn answer(
    arguments: &SqlArguments,
    answer_format: AnswerFormat,
    mut duckdb: DuckDb,
    parts: &QuestionParts,
) -> CommandResult {
    let ready = script::copied("select 1 as ready", "format json");
    duckdb.send(&ready);
    duckdb.json(Stage::Tables)?;
    duckdb.send(&AnswerColumns::statement(&arguments.query));
    let columns = AnswerColumns::from_json(&duckdb.json(Stage::Question)?);
    let mut n_unmeasured = 0;
    if !parts.unmeasured.is_empty() {
        duckdb.send(&script::count_unmeasured(&parts.unmeasured)?);
        n_unmeasured = duckdb.json(Stage::Tables)?["n"].as_u64().unwrap_or(0);
    }
    // A file has all rows.
    let n_rows_max = arguments.out.is_none().then_some(arguments.rows);
    duckdb.send(&columns.answer_statement(&arguments.query, answer_format, n_rows_max));
    if let Some(out) = &arguments.out {
        let mut outcome = Ok(());
        let written = Creator::new(arguments.modes.modes()).replace_with(out, |file| {
            let mut file = BufWriter::new(file);
            columns.write(duckdb.answer(), answer_format, None, &mut file)?;
            outcome = duckdb.finish();
            // A partial answer must not appear under the final name.
            match &outcome {
                Ok(()) => Ok(()),
                Err(_) => Err(std::io::Error::other("the answer is incomplete")),
            }
        });
        outcome?;
        written?;
    } else if answer_format == AnswerFormat::Table {
        // An incomplete table is not printed.
        let mut table = Vec::new();
        columns.write(duckdb.answer(), answer_format, n_rows_max, &mut table)?;
        duckdb.finish()?;
        console::out().write_all(&table)?;
    } else {
        let out: &mut dyn Write = if answer_format == AnswerFormat::Jsonl {
            &mut console::json_out()
        } else {
            &mut console::out()
        };
        columns.write(duckdb.answer(), answer_format, n_rows_max, out)?;
        duckdb.finish()?;
    }
    // "No NaN" must be distinguishable from "no statistics".
    if n_unmeasured > 0 {
        let tensors = format::count(n_unmeasured, "tensor");
        report!("opscope: warning: {tensors} without statistics: `--stats` computes them");
    }
    Ok(())
}

/// The error if DuckDB is missing, with the location of the tables.
fn without_duckdb(tables: &PreparedTables, place: &Path) -> CommandFailure {
    let lasting = tables.sources.iter().map(|source| &source.index);
    let mut indexes: Vec<String> = lasting
        .filter(|index| !index.starts_with(place))
        .map(|index| format!("`{}`", index.display()))
        .collect();
    indexes.dedup();
    let message = "SQL queries need DuckDB, but the program `duckdb` was not found";
    let mut hint = duckdb::install_hint();
    if !indexes.is_empty() {
        hint = format!("{hint}; the tables are in {}", indexes.join(", "));
    }
    CommandFailure::message(USAGE, message).with_hint(hint)
}

/// The requested format, or that of the file's suffix.
fn answer_format(arguments: &SqlArguments) -> CommandResult<AnswerFormat> {
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
            "`--out` is required: Parquet cannot be printed",
        )),
        (None, Some(out)) => Err(CommandFailure::message(
            USAGE,
            format!(
                "the suffix of `{}` is not a known format: pass `--format`, or a name that ends in \
                 .csv, .jsonl or .parquet",
                out.display()
            ),
        )),
        (format, _) => Ok(format.unwrap_or(AnswerFormat::Table)),
    }
}

/// A private temporary directory.
fn private_dir() -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}
