//! `opscope overflow`.

use std::io::Write;
use std::path::PathBuf;

use opscope_analysis::convert::{self, OutputKind};
use opscope_analysis::default_jobs;
use opscope_analysis::describe::{self, FileDescription};
use opscope_analysis::overflow::{self, Export, Overflow, Scan};
use serde_json::{Value, json};

use super::show::{finding_json, tensor_json, tensor_table, time};
use crate::arguments::ModeArguments;
use crate::console::{self, line, tell};
use crate::exit::{FOUND, Failure, PARTIAL, UNREADABLE, USAGE, chain};
use crate::format;

/// Digits of a timestamp in microseconds.
const MICROSECOND_DIGITS: usize = 16;

/// Show which operator overflowed first, and why
///
/// Finds the overflow records below a directory, puts them in order (by step, then by time), and joins
/// each with the dump of its operator. Ends with 1 if there was an overflow and with 0 if there was
/// none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope overflow -d dump/20240102030405
  opscope overflow -d dump/20240102030405 -out overflows -n 3")]
pub(crate) struct Arguments {
    /// A directory of dump files, or a file with overflow records
    #[arg(short = 'd', long = "dump", value_name = "PATH")]
    dump: PathBuf,
    /// Write records as JSON, their operators' tensors as .npy, and a summary (`-out` works too)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How many overflows to show and write
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
}

/// An overflow with what is in its operator's dump, or why that cannot be read.
struct Shown<'a> {
    overflow: &'a Overflow,
    operator: Option<Result<FileDescription, String>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Err(error) = std::fs::metadata(&arguments.dump) {
        let message = format!("cannot read `{}`: {error}", arguments.dump.display());
        return Err(Failure::message(UNREADABLE, message));
    }
    let scan = overflow::scan(&arguments.dump, default_jobs());
    let shown: Vec<Shown<'_>> = scan
        .overflows
        .iter()
        .take(arguments.top)
        .map(look)
        .collect();
    let export = match &arguments.out {
        Some(out) if !shown.is_empty() => Some(write(arguments, out, &shown)?),
        _ => None,
    };
    tell_errors(&scan, &shown, export.as_ref());
    if arguments.json {
        print_json(arguments, &scan, &shown, export.as_ref())?;
    } else {
        print(&scan, &shown, export.as_ref())?;
    }
    let has_failed = export.is_some_and(|export| !export.report.failures.is_empty());
    match (scan.overflows.is_empty(), scan.errors.is_empty()) {
        (false, _) if has_failed => Err(Failure::silent(PARTIAL)),
        (false, _) => Err(Failure::silent(FOUND)),
        (true, true) => Ok(()),
        (true, false) => Err(Failure::silent(UNREADABLE)),
    }
}

fn look(overflow: &Overflow) -> Shown<'_> {
    let operator = overflow.operator.as_ref();
    let operator =
        operator.map(|operator| describe::file(&operator.path).map_err(|error| chain(&error)));
    Shown { overflow, operator }
}

fn write(
    arguments: &Arguments,
    out: &std::path::Path,
    shown: &[Shown<'_>],
) -> Result<Export, Failure> {
    let options = convert::Options {
        out: out.to_owned(),
        kind: OutputKind::Npy,
        relayout: None,
        compression: None,
        pick: None,
        n_threads: default_jobs(),
        modes: arguments.modes.modes(),
        is_replacing: true,
    };
    let overflows: Vec<&Overflow> = shown.iter().map(|shown| shown.overflow).collect();
    overflow::export(&overflows, &options).map_err(|error| Failure::new(USAGE, error))
}

fn tell_errors(scan: &Scan, shown: &[Shown<'_>], export: Option<&Export>) {
    for error in &scan.errors {
        tell!("opscope: {}", chain(error));
    }
    for error in shown
        .iter()
        .filter_map(|shown| shown.operator.as_ref()?.as_ref().err())
    {
        tell!("opscope: {error}");
    }
    for failure in export.iter().flat_map(|export| &export.report.failures) {
        let path = failure.path.display();
        tell!("opscope: `{path}`: {}", chain(&failure.error));
    }
}

fn print(scan: &Scan, shown: &[Shown<'_>], export: Option<&Export>) -> Result<(), Failure> {
    let mut out = console::out();
    if scan.overflows.is_empty() {
        let files = format::count(scan.n_record_files, "file");
        line!(out, "no overflow ({files} with records)")?;
        return Ok(());
    }
    let header = [
        "#", "step", "time", "type", "operator", "task", "stream", "unit", "why",
    ];
    let right = ["#", "step", "task", "stream"];
    let rows = shown
        .iter()
        .enumerate()
        .flat_map(|(i, shown)| rows(i + 1, shown));
    let table = format::table(&header, &right, rows.collect());
    writeln!(out, "{}", table.trim_fmt())?;
    for (i, shown) in shown.iter().enumerate() {
        if let Some(Ok(file)) = &shown.operator {
            writeln!(out)?;
            line!(out, "#{} {}", i + 1, file.path.display())?;
            writeln!(out, "{}", tensor_table(&file.tensors).trim_fmt())?;
        }
    }
    let n = scan.overflows.len();
    writeln!(out, "\n{} in all", format::count(n as u64, "overflow"))?;
    if n > shown.len() {
        line!(
            out,
            "the first {} are shown; `-n {n}` shows all",
            shown.len()
        )?;
    }
    if let Some(export) = export {
        let report = &export.report;
        line!(
            out,
            "{} and {} written beside `{}`",
            format::count(report.n_records, "record"),
            format::count(report.n_arrays, "array"),
            export.summary.display()
        )?;
    }
    Ok(())
}

/// A row for each unit of a record.
fn rows(number: usize, shown: &Shown<'_>) -> Vec<Vec<String>> {
    let overflow = shown.overflow;
    let missing = || "-".to_owned();
    let op_type = overflow
        .operator
        .as_ref()
        .map(|operator| operator.op_type.clone());
    let op_name = match &shown.operator {
        Some(Ok(file)) if !file.op_name.is_empty() => file.op_name.clone(),
        Some(Ok(file)) => file.path.display().to_string(),
        Some(Err(_)) => "its dump is unreadable".to_owned(),
        None => "no dump of this task".to_owned(),
    };
    let findings = overflow.findings.iter();
    findings
        .map(|finding| {
            vec![
                number.to_string(),
                overflow.step.map_or_else(missing, |step| step.to_string()),
                time_text(&overflow.timestamp),
                op_type.clone().unwrap_or_else(missing),
                op_name.clone(),
                finding.task_id.to_string(),
                finding.stream_id.to_string(),
                finding.unit.to_owned(),
                finding.explanation(),
            ]
        })
        .collect()
}

/// Microseconds as a time; other digits as they are.
fn time_text(digits: &str) -> String {
    match digits.parse() {
        Ok(us) if digits.len() == MICROSECOND_DIGITS => time(us),
        _ => digits.to_owned(),
    }
}

fn print_json(
    arguments: &Arguments,
    scan: &Scan,
    shown: &[Shown<'_>],
    export: Option<&Export>,
) -> Result<(), Failure> {
    let result = json!({
        "path": arguments.dump,
        "record_files": scan.n_record_files,
        "overflows": scan.overflows.len(),
        "shown": shown.iter().map(shown_json).collect::<Vec<_>>(),
        "summary": export.map(|export| &export.summary),
        "errors": scan.errors.iter().map(|error| chain(error)).collect::<Vec<_>>(),
    });
    console::print_json(&result)?;
    Ok(())
}

fn shown_json(shown: &Shown<'_>) -> Value {
    let overflow = shown.overflow;
    let operator = overflow.operator.as_ref().map(|operator| {
        let file = shown.operator.as_ref().and_then(|file| file.as_ref().ok());
        let tensors = file.map(|file| file.tensors.iter().map(tensor_json).collect::<Vec<_>>());
        let problem = shown.operator.as_ref().and_then(|file| file.as_ref().err());
        json!({
            "path": operator.path,
            "op_type": operator.op_type,
            "op_name": file.map(|file| &file.op_name),
            "tensors": tensors,
            "problem": problem,
        })
    });
    json!({
        "path": overflow.path,
        "step": overflow.step,
        "timestamp": overflow.timestamp,
        "units": overflow.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "record": overflow.record.to_json(),
        "operator": operator,
    })
}
