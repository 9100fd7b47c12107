//! `opscope overflow`.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_analysis::convert::{self, ConvertedForm};
use opscope_analysis::default_jobs;
use opscope_analysis::describe::{self, TensorDescription};
use opscope_analysis::overflow::{self, ExportedFiles, OperatorDump, OverflowReport, OverflowScan};
use opscope_ranks::overflow_order::{OverflowOrder, order_overflows};
use opscope_ranks::run::RankedRun;
use serde_json::{Value, json};

use super::show::{finding_json, tensor_json, tensor_table, time};
use crate::arguments::ModeArguments;
use crate::commands::ranked_run::ranks_noun;
use crate::console::{self, Out, line, report};
use crate::exit::{
    CommandFailure, CommandResult, FOUND, PARTIAL, UNREADABLE, USAGE, chain, check_dump,
};
use crate::progress;
use crate::{format, passed_over};

/// Digits of a timestamp in microseconds.
const MICROSECOND_DIGITS: usize = 16;

/// Show which operator overflowed first, and why
///
/// Finds the overflow records below a directory, orders them (by step, then by time; across ranks
/// by the collectives between them), and joins each with the dump of its operator. Exit codes: 1 if
/// there was an overflow, 0 if there was none or there are no records, and 4 if none was found but
/// something could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope overflow dump/20240102030405
  opscope overflow -d dump/20240102030405 -out overflows -n 3")]
pub(crate) struct OverflowArguments {
    /// A directory of dump files, or a file with overflow records
    #[arg(value_name = "RUN", required_unless_present = "dump")]
    run: Option<PathBuf>,
    /// Same as RUN, in the vendor tool's spelling
    #[arg(
        short = 'd',
        long = "dump",
        value_name = "PATH",
        conflicts_with = "run"
    )]
    dump: Option<PathBuf>,
    /// Write records as JSON, their operators' tensors as .npy, and a summary (`-out` works too)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of overflows to show and write
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
}

/// An overflow with its operator's dump.
struct OverflowDetail<'a> {
    overflow: &'a OverflowReport,
    operator: Option<OperatorContent>,
}

/// The content of an operator's files.
#[derive(Default)]
struct OperatorContent {
    /// Empty if no file names it.
    op_name: String,
    tensors: Vec<TensorDescription>,
    /// Files that cannot be read, and why.
    problems: Vec<String>,
    is_readable: bool,
}

pub(crate) fn run(arguments: &OverflowArguments) -> CommandResult {
    let path = arguments.path();
    check_dump(path)?;
    let mut scan = progress::with_spinner("reading", || overflow::scan(path, default_jobs()));
    let order = order_of_ranks(path, &mut scan);
    let order = order.as_ref();
    let shown: Vec<OverflowDetail<'_>> = scan
        .overflows
        .iter()
        // Each operator's file is read whole, so those beyond the limit are left alone.
        .take(arguments.top)
        .map(look)
        .collect();
    let export = match &arguments.out {
        // Without an overflow there is nothing to write, and an empty directory would look like a
        // result.
        Some(out) if !shown.is_empty() => Some(write(arguments, out, &shown)?),
        _ => None,
    };
    report_errors(&scan, &shown, export.as_ref());
    if arguments.json {
        print_json(arguments, &scan, &shown, order, export.as_ref())?;
    } else {
        print(&scan, &shown, order, export.as_ref())?;
    }
    let has_failed = export.is_some_and(|export| !export.report.failures.is_empty());
    match (scan.overflows.is_empty(), scan.errors.is_empty()) {
        (false, _) if has_failed => Err(CommandFailure::silent(PARTIAL)),
        // A found overflow counts even if other files could not be read.
        (false, _) => Err(CommandFailure::silent(FOUND)),
        (true, true) => Ok(()),
        (true, false) if scan.n_read_files == 0 => Err(CommandFailure::silent(UNREADABLE)),
        (true, false) => Err(CommandFailure::silent(PARTIAL)),
    }
}

impl OverflowArguments {
    fn path(&self) -> &Path {
        // clap requires one of them.
        let path = self.run.as_deref().or(self.dump.as_deref());
        path.unwrap_or(Path::new("."))
    }
}

/// Orders the overflows across ranks; `None` for a single rank.
fn order_of_ranks(path: &Path, scan: &mut OverflowScan) -> Option<OverflowOrder> {
    let dirs = scan.overflows.iter().map(|overflow| overflow.path.parent());
    let dirs: HashSet<Option<&Path>> = dirs.collect();
    // Records of several ranks are in several directories; only then is the dump read again.
    if dirs.len() < 2 || !opscope_store::remote::is_dir(path) {
        return None;
    }
    // Read errors are already among the scan's, and several runs have no common order.
    let run = RankedRun::open(&[path.to_owned()], default_jobs()).ok()?;
    order_overflows(&run, scan)
}

fn look(overflow: &OverflowReport) -> OverflowDetail<'_> {
    let operator = overflow.operator.as_ref().map(content);
    OverflowDetail { overflow, operator }
}

fn content(operator: &OperatorDump) -> OperatorContent {
    let mut content = OperatorContent::default();
    for file in &operator.files {
        match describe::file(&file.path) {
            Ok(file) => {
                // MindSpore names an array's operator only in the file name.
                let named = file.array_name.map(|name| name.op_name);
                content.op_name = named.unwrap_or(file.facts.op_name);
                content.tensors.extend(file.tensors);
                content.is_readable = true;
            }
            Err(error) => content.problems.push(chain(&error)),
        }
    }
    content
}

fn write(
    arguments: &OverflowArguments,
    out: &Path,
    shown: &[OverflowDetail<'_>],
) -> CommandResult<ExportedFiles> {
    let options = convert::ConversionOptions {
        out: out.to_owned(),
        kind: ConvertedForm::Npy,
        relayout: None,
        compression: None,
        pick: None,
        n_threads: default_jobs(),
        modes: arguments.modes.modes(),
        is_replacing: true,
    };
    let overflows: Vec<&OverflowReport> = shown.iter().map(|shown| shown.overflow).collect();
    overflow::export(&overflows, &options).map_err(|error| CommandFailure::new(USAGE, error))
}

fn report_errors(
    scan: &OverflowScan,
    shown: &[OverflowDetail<'_>],
    export: Option<&ExportedFiles>,
) {
    for error in &scan.errors {
        report!("opscope: {}", chain(error));
    }
    for operator in shown.iter().filter_map(|shown| shown.operator.as_ref()) {
        for problem in &operator.problems {
            report!("opscope: {problem}");
        }
    }
    for failure in export.iter().flat_map(|export| &export.report.failures) {
        let path = failure.path.display();
        report!("opscope: `{path}`: {}", chain(&failure.error));
    }
}

fn print(
    scan: &OverflowScan,
    shown: &[OverflowDetail<'_>],
    order: Option<&OverflowOrder>,
    export: Option<&ExportedFiles>,
) -> CommandResult {
    let mut out = console::out();
    if scan.overflows.is_empty() {
        line!(out, "{}", nothing_found(scan))?;
        // A dump of values shows an overflow without any record of it.
        if scan.n_record_files == 0 && scan.n_files > 0 {
            line!(
                out,
                "  hint: `opscope nan` finds infinities in the values of a dump"
            )?;
        }
        return passed_over::print(&mut out, &scan.passed_over);
    }
    print_table(&mut out, shown, order)?;
    for (i, shown) in shown.iter().enumerate() {
        if let (Some(operator), Some(content)) = (&shown.overflow.operator, &shown.operator)
            && content.is_readable
        {
            let more = match operator.files.len() - 1 {
                0 => String::new(),
                n => format!(" and {}", format::count(n as u64, "more file")),
            };
            let path = operator.files[0].path.display();
            writeln!(out)?;
            line!(out, "#{} {path}{more}", i + 1)?;
            writeln!(out, "{}", tensor_table(&content.tensors).trim_fmt())?;
        }
    }
    if let Some(order) = order {
        print_order(&mut out, order)?;
    }
    let n = scan.overflows.len();
    writeln!(out, "\n{} in all", format::count(n as u64, "overflow"))?;
    // The order covers readable records only, so "first" is uncertain.
    if !scan.errors.is_empty() {
        let unread = unread(scan);
        writeln!(
            out,
            "{unread} could not be read: there may be more, including earlier ones"
        )?;
    }
    if n > shown.len() {
        line!(out, "showing the first {}; `-n {n}` shows all", shown.len())?;
    }
    if let Some(export) = export {
        let report = &export.report;
        line!(
            out,
            "{} and {} written next to `{}`",
            format::count(report.n_records, "record"),
            format::count(report.n_arrays, "array"),
            export.summary.display()
        )?;
    }
    passed_over::print(&mut out, &scan.passed_over)
}

/// The overflows as a table, with a column of ranks if there are several.
fn print_table(
    out: &mut Out,
    shown: &[OverflowDetail<'_>],
    order: Option<&OverflowOrder>,
) -> CommandResult {
    let header = [
        "#", "rank", "step", "time", "type", "operator", "task", "stream", "unit", "why",
    ];
    let right = ["#", "rank", "step", "task", "stream"];
    let mut all = Vec::new();
    for (i, shown) in shown.iter().enumerate() {
        for mut row in rows(i + 1, shown) {
            if let Some(order) = order {
                let rank = order.ranks.get(i).copied().flatten();
                row.insert(
                    1,
                    rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
                );
            }
            all.push(row);
        }
    }
    let header: Vec<&str> = header
        .into_iter()
        .filter(|name| order.is_some() || *name != "rank")
        .collect();
    let table = format::table(&header, &right, all);
    Ok(writeln!(out, "{}", table.trim_fmt())?)
}

/// Which rank overflowed first, as far as steps and collectives order them.
fn print_order(out: &mut Out, order: &OverflowOrder) -> CommandResult {
    let first = order.first.iter().map(|&nth| order.ranks.get(nth));
    let first: Vec<u32> = first.flatten().copied().flatten().collect();
    writeln!(out)?;
    for (step, name, ranks) in &order.together {
        let step = step.map_or_else(String::new, |step| format!(" of step {step}"));
        line!(out, "{name}{step} overflowed on {}", ranks_noun(ranks))?;
    }
    match &first[..] {
        [only] => line!(
            out,
            "first: rank {only}; collectives order the others after it"
        )?,
        ranks => line!(
            out,
            "not ordered: no collective in the dump shows which of {} was first",
            ranks_noun(ranks)
        )?,
    }
    Ok(())
}

/// The line if no overflow was found. It covers readable records only.
fn nothing_found(scan: &OverflowScan) -> String {
    if scan.errors.is_empty() {
        return match (scan.n_record_files, scan.n_files) {
            (0, 0) => "no overflow records: no dump files found".to_owned(),
            (0, n) => format!(
                "no overflow records in {}; a dump for overflow detection writes none if nothing overflows",
                format::count(n, "file")
            ),
            (n, _) => format!("no overflow ({} with records)", format::count(n, "file")),
        };
    }
    let unread = unread(scan);
    match scan.n_read_files {
        0 => {
            format!("overflows are unknown: {unread} could not be read, and no record was found")
        }
        n => format!(
            "no overflow in the {} with records that could be read; {unread} could not be",
            format::count(n, "file")
        ),
    }
}

fn unread(scan: &OverflowScan) -> String {
    format::count_as(
        scan.errors.len() as u64,
        ["file or directory", "files or directories"],
    )
}

/// A row for each unit of a record.
fn rows(number: usize, shown: &OverflowDetail<'_>) -> Vec<Vec<String>> {
    let overflow = shown.overflow;
    let op_type = overflow
        .operator
        .as_ref()
        .map(|operator| operator.op_type.clone());
    // The dump knows the full name. A path is the next best hint, and an unreadable dump is said to
    // be one rather than replaced by the name in its path.
    let op_name = match (&shown.operator, &overflow.operator) {
        (Some(content), _) if !content.is_readable => "its dump is unreadable".to_owned(),
        (Some(content), _) if !content.op_name.is_empty() => content.op_name.clone(),
        (Some(_), Some(operator)) => operator.files[0].path.display().to_string(),
        _ => "no dump of this task".to_owned(),
    };
    let findings = overflow.findings.iter();
    findings
        .map(|finding| {
            vec![
                number.to_string(),
                overflow
                    .step
                    .map_or_else(|| "-".to_owned(), |step| step.to_string()),
                time_text(&overflow.timestamp),
                op_type.clone().unwrap_or_else(|| "-".to_owned()),
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
        // Sixteen digits cover the years 2001 to 2286. Numbers of other lengths may not be times.
        Ok(us) if digits.len() == MICROSECOND_DIGITS => time(us),
        _ => digits.to_owned(),
    }
}

fn print_json(
    arguments: &OverflowArguments,
    scan: &OverflowScan,
    shown: &[OverflowDetail<'_>],
    order: Option<&OverflowOrder>,
    export: Option<&ExportedFiles>,
) -> CommandResult {
    let mut result = json!({
        "path": arguments.path(),
        "files": scan.n_files,
        "record_files": scan.n_record_files,
        "record_files_read": scan.n_read_files,
        "overflows": scan.overflows.len(),
        "shown": shown.iter().map(shown_json).collect::<Vec<_>>(),
        "summary": export.map(|export| &export.summary),
        "passed_over": passed_over::to_json(&scan.passed_over),
        "errors": scan.errors.iter().map(|error| chain(error)).collect::<Vec<_>>(),
    });
    if let Some(order) = order {
        for (i, rank) in order.ranks.iter().enumerate().take(shown.len()) {
            result["shown"][i]["rank"] = (*rank).into();
        }
        let is_known = order.first.len() == 1;
        result["order_of_ranks"] = if is_known { "known" } else { "not_ordered" }.into();
        result["first"] = order.first.clone().into();
    }
    console::print_json(&result)?;
    Ok(())
}

fn shown_json(shown: &OverflowDetail<'_>) -> Value {
    let overflow = shown.overflow;
    let operator = overflow.operator.as_ref().map(|operator| {
        let content = shown.operator.as_ref();
        let readable = content.filter(|content| content.is_readable);
        let tensors = readable.map(|content| content.tensors.iter().map(tensor_json));
        let problems = content.map(|content| content.problems.join("; "));
        json!({
            "path": operator.files[0].path,
            "paths": operator.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
            "op_type": operator.op_type,
            "op_name": readable.map(|content| &content.op_name),
            "tensors": tensors.map(Iterator::collect::<Vec<_>>),
            "problem": problems.filter(|problems| !problems.is_empty()),
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
