//! `opscope index`.

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::ComparedRuns;
use opscope_analysis::{Shard, default_jobs, run_names};
use opscope_store::remote;
use opscope_store::tree::own;
use opscope_tables::{
    COMPARE_TABLE, ComparePart, TABLES, TablesOptions, TablesReport, TablesShare, creator,
    tables_units, write_tables, write_views,
};
use serde_json::json;

use crate::arguments::ModeArguments;
use crate::commands::compare::sharing::PaceArguments;
use crate::commands::diff::quote;
use crate::commands::{compare, next_line};
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, USAGE, check_dump};
use crate::progress;
use crate::{format, passed_over};

/// Write a dump as Parquet tables, for DuckDB, pandas and others
///
/// The tables are tensors, operators, edges and events, with a file for each rank, model and step.
/// Files that are up to date stay, so a growing dump is indexed quickly. Reads every form of dump
/// that `opscope show` reads. With `--compare` the result of comparing two dumps is a table as
/// well.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope index dump
  opscope index sound faulty --out tables --stats
  opscope index faulty sound --out tables --compare
  duckdb -init tables/views.sql")]
pub(crate) struct IndexArguments {
    /// Dumps; several share common tables
    #[arg(value_name = "DUMP", required = true)]
    dumps: Vec<PathBuf>,
    /// Where to write [default: `.opscope/index` in the dump]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compute statistics and digests of tensors with elements but without statistics
    #[arg(long)]
    stats: bool,
    /// Compare the first dump with the second as `opscope compare` does, and add a table of the
    /// result
    #[arg(long)]
    compare: bool,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
    #[command(flatten)]
    sharing: TableSharingArguments,
}

/// How to share the work between processes and machines.
#[derive(clap::Args)]
#[command(next_help_heading = "Sharing")]
struct TableSharingArguments {
    /// Make only the parts of process I of N, counted from 0
    #[arg(long, value_name = "I/N", conflicts_with_all = ["unit", "merge", "compare"])]
    shard: Option<Shard>,
    /// Make the part of one unit, named as in `--list-units`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["merge", "compare"])]
    unit: Option<String>,
    /// List the units as JSON, one per line, with their sizes and states, without writing anything
    #[arg(long, conflicts_with_all = ["shard", "unit", "merge", "compare"])]
    list_units: bool,
    /// Build the common tables from existing parts only; without this option, missing parts are
    /// made
    #[arg(long)]
    merge: bool,
    #[command(flatten)]
    pace: PaceArguments,
}

impl IndexArguments {
    /// The cluster to run on.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.sharing.pace.on.as_deref()
    }
}

impl TableSharingArguments {
    /// The part of a dump's tables that this process makes; `None` if the unit belongs to another
    /// dump.
    fn share(&self, label: &str) -> Option<TablesShare> {
        if let Some(unit) = &self.unit {
            // Neither a dump's nor a part's name contains a slash.
            let (dump, part) = unit.split_once('/')?;
            return (dump == label).then(|| TablesShare::Part(part.to_owned()));
        }
        Some(match self.shard {
            Some(shard) => TablesShare::Shard(shard),
            None if self.merge => TablesShare::Merge,
            None => TablesShare::All,
        })
    }
}

pub(crate) fn run(arguments: &IndexArguments) -> CommandResult {
    for dump in &arguments.dumps {
        check_dump(dump)?;
    }
    // Checked first, because reading may take long.
    let out = place(arguments)?;
    if arguments.compare {
        check_compared(&arguments.dumps)?;
    }
    let sharing = &arguments.sharing;
    sharing.pace.keep()?;
    let options = TablesOptions {
        n_threads: arguments.jobs.unwrap_or_else(default_jobs).max(1),
        has_stats: arguments.stats,
        modes: arguments.modes.modes(),
        share: TablesShare::All,
    };
    if sharing.list_units {
        return list_units(arguments, &out, &options);
    }
    let reports = write_all(arguments, &out, &options)?;
    // Views and the comparison need all parts.
    let is_part = sharing.shard.is_some() || sharing.unit.is_some();
    // Checked before common tables are made: views over half of the tables would look complete.
    check_missing(&reports)?;
    if let ([target, golden], true) = (&reports[..], arguments.compare) {
        let dumps = [target, golden].map(|(dump, ..)| dump.as_path());
        let runs = ComparedRuns {
            target: &target.1,
            golden: &golden.1,
        };
        let part = ComparePart::new(&out, runs, [&target.2, &golden.2]);
        write_comparison(&part, dumps, &options)?;
    }
    if !is_part {
        // After the tables: DuckDB rejects views over no files.
        let creator = creator(&out, options.modes);
        write_views(&out, &creator)?;
    }
    print(arguments, &out, &reports)?;
    let n_parts: u64 = reports.iter().map(|(_, _, report)| report.n_parts()).sum();
    if reports
        .iter()
        .all(|(_, _, report)| report.errors.is_empty())
    {
        return Ok(());
    }
    let code = if n_parts == 0 { UNREADABLE } else { PARTIAL };
    Err(CommandFailure::silent(code))
}

/// Writes this process's part of each dump's tables.
fn write_all<'a>(
    arguments: &'a IndexArguments,
    out: &Path,
    options: &TablesOptions,
) -> CommandResult<Vec<(&'a PathBuf, String, TablesReport)>> {
    let mut reports = Vec::new();
    for (dump, label) in arguments.dumps.iter().zip(run_names(&arguments.dumps)) {
        let Some(share) = arguments.sharing.share(&label) else {
            continue;
        };
        // A share may be empty.
        let is_whole = share == TablesShare::All;
        let options = TablesOptions {
            share,
            ..options.clone()
        };
        let report =
            progress::with_spinner("indexing", || write_tables(dump, &label, out, &options))?;
        // Among several paths a wrong one would go unnoticed.
        if is_whole && report.n_parts() == 0 && report.errors.is_empty() {
            return Err(CommandFailure::nothing_at(dump, &report.passed_over));
        }
        reports.push((dump, label, report));
    }
    let n_parts: u64 = reports.iter().map(|(_, _, report)| report.n_parts()).sum();
    let has_errors = reports.iter().any(|(.., report)| !report.errors.is_empty());
    match &arguments.sharing.unit {
        Some(unit) if n_parts == 0 && !has_errors => {
            let message = format!("the dumps have no unit `{unit}`");
            Err(CommandFailure::message(USAGE, message))
        }
        _ => Ok(reports),
    }
}

/// Refuses tables with missing parts.
fn check_missing(reports: &[(&PathBuf, String, TablesReport)]) -> CommandResult {
    let missing: Vec<String> = reports
        .iter()
        .flat_map(|(_, label, report)| report.missing.iter().map(move |part| (label, part)))
        .map(|(label, part)| format!("{label}/{part}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let count = format::count(missing.len() as u64, "part");
    let message = format!("{count} missing: {}", missing.join(", "));
    Err(CommandFailure::message(PARTIAL, message)
        .with_hint("without `--merge` this process makes them"))
}

/// Prints the units of all dumps, one per line.
fn list_units(arguments: &IndexArguments, out: &Path, options: &TablesOptions) -> CommandResult {
    for (dump, label) in arguments.dumps.iter().zip(run_names(&arguments.dumps)) {
        for unit in tables_units(dump, &label, out, options)? {
            let state = if unit.is_current { "done" } else { "missing" };
            let line = json!({
                "unit": format!("{label}/{}", unit.name),
                "bytes": unit.n_bytes,
                "state": state,
            });
            writeln!(console::json_out(), "{line}")?;
        }
    }
    Ok(())
}

/// Refuses `--compare` unless there are two dumps.
pub(crate) fn check_compared(dumps: &[PathBuf]) -> CommandResult {
    if dumps.len() == 2 {
        return Ok(());
    }
    Err(CommandFailure::message(
        USAGE,
        "`--compare` takes two dumps: the one under test, and the reference",
    ))
}

/// Compares two dumps unless an up-to-date table exists.
pub(crate) fn write_comparison(
    part: &ComparePart<'_>,
    [target, golden]: [&Path; 2],
    options: &TablesOptions,
) -> CommandResult {
    if part.is_current() {
        return Ok(());
    }
    let comparison = compare::with_defaults(target, golden, options.n_threads)?;
    Ok(part.write(&comparison, options.modes)?)
}

/// The directory of the tables.
fn place(arguments: &IndexArguments) -> CommandResult<PathBuf> {
    if let Some(out) = &arguments.out {
        return Ok(out.clone());
    }
    match &arguments.dumps[..] {
        // Readers ignore this directory.
        [dump] if dump.is_dir() => Ok(own::index_dir(dump)),
        [dump] if remote::is_remote(dump) => Err(CommandFailure::message(
            USAGE,
            "`--out` is required: object storage is read-only",
        )),
        [_] => Err(CommandFailure::message(
            USAGE,
            "`--out` is required: tables cannot be stored in a single file",
        )),
        _ => Err(CommandFailure::message(
            USAGE,
            "`--out` is required for the common tables of several dumps",
        )),
    }
}

fn print(
    arguments: &IndexArguments,
    out: &Path,
    reports: &[(&PathBuf, String, TablesReport)],
) -> CommandResult {
    if arguments.json {
        let dumps: Vec<_> = reports
            .iter()
            .map(|(dump, label, report)| {
                json!({
                    "dump": dump,
                    "run": label,
                    "parts_written": report.n_written,
                    "parts_current": report.n_current,
                    "parts_removed": report.n_removed,
                    "tensors_written": report.n_rows,
                    "statistics_computed": report.n_computed,
                    "errors": report.errors,
                })
            })
            .collect();
        let compared = arguments.compare.then_some(COMPARE_TABLE);
        let tables: Vec<&str> = TABLES.into_iter().chain(compared).collect();
        let result = json!({ "out": out, "tables": tables, "dumps": dumps });
        return Ok(console::print_json(&result)?);
    }
    for (_, label, report) in reports {
        for error in &report.errors {
            report!("opscope: {error}");
        }
        let written = format::count(report.n_written, "part");
        let rows = format::count(report.n_rows, "tensor");
        line!(
            console::out(),
            "{label}: {written} written with {rows}, {} current, {} removed, statistics of {} computed",
            report.n_current,
            report.n_removed,
            format::count(report.n_computed, "tensor")
        )?;
        passed_over::print(&mut console::out(), &report.passed_over)?;
    }
    line!(console::out(), "tables in {}", out.display())?;
    let next = match (&arguments.dumps[..], &arguments.out) {
        ([dump], None) => next_line("sql 'select * from tensors limit 10'", &[dump]),
        // `sql` would make the tables of the dumps again.
        _ => format!(
            "next: duckdb -init {}",
            quote(&out.join("views.sql").to_string_lossy())
        ),
    };
    line!(console::out(), "{next}")?;
    Ok(())
}
