//! `opscope show`.

mod graph;
mod json;
mod mindspore;
mod runs;
mod statistics;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opscope_analysis::describe::{self, FileDescription, OverflowDescription, TensorDescription};
use opscope_analysis::overview::{OperatorOverview, Overview};
use opscope_analysis::{ElementValue, default_jobs, read_overview};
use opscope_store::dump::PassedOver;
use opscope_store::reader::{
    DEBUG_MODE_FORM, DumpIndex, FileKind, MINDSPORE_FORM, NATIVE_FORM, read_tables, reader_of,
    retain_places,
};
use opscope_store::record::parallel::Collective;
use opscope_store::tree::native::StepFile;
use opscope_store::{StoreError, dump, remote, run_file};
use serde_json::Value;

use json::{file_json, overview_json};
pub(crate) use json::{finding_json, tensor_json};

use crate::arguments::{NumberRanges, rank_ranges};
use crate::commands::verify::VerifyOption;
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, chain, refuse_model};
use crate::{format, passed_over};

/// Show the contents of a dump file or of a directory of them
///
/// Dump files, files of the nano runtime and numpy arrays: the header, and for every input and
/// output dtype, layout, shape, statistics and the first values. Overflow records: all fields, and
/// the cause of the overflow. MindSpore's graph files: the operators with inputs, outputs and
/// source; its statistics: the table. Directories: operators with the number and size of their
/// files; for a MindSpore dump, every tensor of every execution.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope show dump/20240102030405
  opscope show dump/20240102030405/0/net/1/0/Conv.conv1.0.0.1700000000000000 --json")]
pub(crate) struct ShowArguments {
    /// A dump file, or a directory of them
    path: PathBuf,
    /// Show the output of these ranks, and everything that belongs to no rank
    #[arg(long, value_name = "0-3,7", value_parser = rank_ranges)]
    ranks: Option<NumberRanges>,
    #[command(flatten)]
    verify: VerifyOption,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ShowArguments) -> CommandResult {
    refuse_model(&arguments.path)?;
    let dumps = [&*arguments.path];
    arguments.verify.before(&dumps, || show(arguments))
}

fn show(arguments: &ShowArguments) -> CommandResult {
    if !remote::is_dir(&arguments.path) && !is_dump_alone(&arguments.path) {
        return show_file(arguments);
    }
    // The listing skips `.opscope`, which has the records of runs, so these are searched
    // separately.
    let found = run_file::find(&arguments.path);
    let runs = found.runs;
    let mut listing = if remote::is_dir(&arguments.path) {
        dump::list(&arguments.path)
    } else {
        dump::list_file(&arguments.path)
    };
    listing.errors.extend(found.errors);
    // Its executions have many separately named tensors, so each is shown.
    if reader_of(&listing).form() == MINDSPORE_FORM {
        return mindspore::show(&arguments.path, listing, &runs, arguments.json);
    }
    if let Some(ranks) = &arguments.ranks {
        retain_places(&mut listing, |(rank, _)| {
            rank.is_none_or(|rank| ranks.contains(rank))
        });
    }
    let mut index = read_overview(listing, default_jobs());
    if let Some(ranks) = &arguments.ranks {
        index
            .tables
            .retain(|table| table.rank.is_none_or(|rank| ranks.contains(rank)));
        index
            .files
            .retain(|file| file.rank.is_none_or(|rank| ranks.contains(rank)));
    }
    let overview = Overview::new(&arguments.path, &index);
    let tables = &index.tables;
    if arguments.json {
        let mut result = overview_json(&arguments.path, &overview, &index);
        if !tables.is_empty() {
            result["statistics"] = statistics::to_json(tables);
        }
        result["unfinished_steps"] = n_unfinished_steps(&index).into();
        result["runs"] = runs::to_json(&runs);
        print_json(&result)?;
    } else {
        if !tables.is_empty() {
            statistics::print(tables)?;
        }
        if overview.n_files > 0 || !index.errors.is_empty() || tables.is_empty() {
            if !tables.is_empty() {
                writeln!(console::out())?;
            }
            print_errors(&index.errors);
            print_overview(&overview)?;
        }
        let n_unfinished = n_unfinished_steps(&index);
        if n_unfinished > 0 {
            let steps = format::count(n_unfinished, "step");
            line!(
                console::out(),
                "{steps} incomplete: a run was stopped there, or is still running"
            )?;
        }
        passed_over::print(&mut console::out(), &index.passed_over)?;
        runs::print(&mut console::out(), &runs)?;
    }
    // A directory with only a run's record is an empty dump, not a mistake.
    let n_shown = overview.n_files + (tables.len() + runs.len()) as u64;
    verdict(&arguments.path, n_shown, &index.errors, &index.passed_over)
}

/// Whether a single file contains operators, as a directory does.
fn is_dump_alone(path: &Path) -> bool {
    let is_step = remote::absolute(path).is_ok_and(|path| StepFile::parse(&path).is_some());
    is_step || reader_of(&dump::list_file(path)).form() == DEBUG_MODE_FORM
}

/// Rows of operators held in memory at once.
const N_ROWS_AT_ONCE: usize = 1 << 12;

/// Steps of a native dump that have no table yet.
fn n_unfinished_steps(index: &DumpIndex) -> u64 {
    let journals = index.files.iter().filter(|file| {
        index.form == NATIVE_FORM && file.path.extension().is_some_and(|end| end == "rows")
    });
    journals.count() as u64
}

fn show_file(arguments: &ShowArguments) -> CommandResult {
    // These files are recognised by name, so they come before those recognised by content.
    if let Some(beside) = opscope_analysis::graph::open(&arguments.path)? {
        return graph::show(&arguments.path, &beside, arguments.json);
    }
    let mut listing = dump::list_file(&arguments.path);
    if let Some(error) = listing.errors.pop() {
        return Err(error.into());
    }
    let is_step_table = !listing.step_tables.is_empty();
    let tables = read_tables(listing)?;
    // A step's table names an operator in each row and is shown as a directory. Another single
    // table belongs to the operator in its file name.
    if let ([table], false) = (&tables[..], is_step_table) {
        return statistics::show(&arguments.path, &table.table, arguments.json);
    }
    if !tables.is_empty() {
        let rows = serde_json::json!({ "path": arguments.path, "statistics": statistics::to_json(&tables) });
        return if arguments.json {
            print_json(&rows)
        } else {
            statistics::print(&tables)
        };
    }
    let file = describe::file(&arguments.path)?;
    if arguments.json {
        print_json(&file_json(&file))
    } else {
        print_file(&file)
    }
}

/// Returns the command's result for a directory of which `n` items and these errors were shown.
fn verdict(
    path: &Path,
    n: u64,
    errors: &[StoreError],
    passed_over: &[PassedOver],
) -> CommandResult {
    match (n, errors.is_empty()) {
        (0, true) => Err(CommandFailure::nothing_at(path, passed_over)),
        (_, true) => Ok(()),
        (0, false) => Err(CommandFailure::silent(UNREADABLE)),
        (_, false) => Err(CommandFailure::silent(PARTIAL)),
    }
}

fn print_file(file: &FileDescription) -> CommandResult {
    let mut out = console::out();
    print_header(&mut out, file)?;
    for record in &file.records {
        print_record(&mut out, record)?;
    }
    if file.records.is_empty() {
        writeln!(out, "\n{}", tensor_table(&file.tensors).trim_fmt())?;
    }
    Ok(())
}

fn print_header(out: &mut impl Write, file: &FileDescription) -> CommandResult {
    if file.kind != FileKind::DumpData {
        line!(out, "format    {}", file.kind.name())?;
    }
    let facts = &file.facts;
    if !facts.op_name.is_empty() || file.kind == FileKind::DumpData {
        line!(out, "operator  {}", facts.op_name)?;
    }
    if let Some(name) = &file.array_name {
        mindspore::print_name(out, name)?;
    }
    if file.kind == FileKind::DumpData {
        let time = time(facts.dump_time);
        line!(out, "made      {time} (version {})", facts.version)?;
    }
    // Header and payload are parts of the decompressed file; the compressed size has no such parts.
    let n_bytes = file.n_decompressed.unwrap_or(file.n_bytes);
    line!(
        out,
        "size      {}{} ({} header, {} payload)",
        format::bytes(file.n_bytes),
        file.n_decompressed
            .map(|n| format!(", {} decompressed", format::bytes(n)))
            .unwrap_or_default(),
        format::bytes(file.n_start),
        format::bytes(n_bytes.saturating_sub(file.n_start))
    )?;
    for (name, value) in &facts.attributes {
        line!(out, "attribute {name} = {value}")?;
    }
    if !facts.message.is_empty() {
        line!(out, "message   {}", facts.message)?;
    }
    for (name, sizes) in [("buffer", &file.buffer_sizes), ("space", &file.space_sizes)] {
        for (i, size) in sizes.iter().enumerate() {
            line!(out, "{name}.{i}  {}", format::bytes(*size))?;
        }
    }
    Ok(())
}

/// Prints every field in record order, then the meaning.
fn print_record(out: &mut impl Write, record: &OverflowDescription) -> CommandResult {
    writeln!(out)?;
    line!(out, "{}  overflow record", record.slot)?;
    print_fields(out, &record.record.to_json(), 1)?;
    if record.findings.is_empty() {
        writeln!(out, "no overflow: every status is 0")?;
    }
    for finding in &record.findings {
        line!(
            out,
            "overflow  {} in task {} of stream {}: {}",
            finding.unit,
            finding.task_id,
            finding.stream_id,
            finding.explanation()
        )?;
    }
    Ok(())
}

fn print_fields(out: &mut impl Write, value: &Value, depth: usize) -> CommandResult {
    let indent = "  ".repeat(depth);
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => {
                line!(out, "{indent}{key}")?;
                print_fields(out, value, depth + 1)?;
            }
            Value::String(text) => line!(out, "{indent}{key:<12} {text}")?,
            other => line!(out, "{indent}{key:<12} {other}")?,
        }
    }
    Ok(())
}

/// A table with a row for each tensor.
pub(crate) fn tensor_table(tensors: &[TensorDescription]) -> comfy_table::Table {
    let header = [
        "slot",
        "dtype",
        "layout",
        "shape",
        "bytes",
        "min",
        "max",
        "mean",
        "l2",
        "nan",
        "inf",
        "first values",
    ];
    let right = ["bytes", "min", "max", "mean", "l2", "nan", "inf"];
    let rows = tensors.iter().map(tensor_row).collect();
    format::table(&header, &right, rows)
}

fn tensor_row(tensor: &TensorDescription) -> Vec<String> {
    let [min, max, mean, l2] = match &tensor.stats {
        Some(stats) if stats.counts.n_elements > 0 => [stats.min, stats.max, stats.mean, stats.l2]
            .map(|value| ElementValue::Float(value).to_string()),
        _ => ["-"; 4].map(String::from),
    };
    let first = match &tensor.problem {
        Some(problem) => problem.clone(),
        None if !tensor.first_texts.is_empty() => {
            // Texts may be empty or contain blanks, and blanks separate elements.
            let quoted = tensor.first_texts.iter().map(|text| format!("\"{text}\""));
            quoted.collect::<Vec<_>>().join(" ")
        }
        None => tensor
            .first
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
    };
    vec![
        tensor.slot.clone(),
        tensor.stored.dtype.to_string(),
        tensor.stored.layout.to_string(),
        format::shape(tensor.dims()),
        format::bytes(tensor.stored.n_bytes),
        min,
        max,
        mean,
        l2,
        tensor.non_finite.n_nan.to_string(),
        (tensor.non_finite.n_pos_inf + tensor.non_finite.n_neg_inf).to_string(),
        first,
    ]
}

fn print_errors(errors: &[StoreError]) {
    for error in errors {
        report!("opscope: {}", chain(error));
    }
}

fn print_overview(overview: &Overview) -> CommandResult {
    if overview.n_files == 0 {
        return Ok(());
    }
    let mut header = vec![
        "task", "type", "operator", "files", "inputs", "outputs", "bytes", "",
    ];
    let right = ["task", "files", "inputs", "outputs", "bytes"];
    let has_ranks = overview.ranks.len() > 1;
    if has_ranks {
        header.insert(RANKS_COLUMN, "ranks");
    }
    let row = |operator: &OperatorOverview| {
        let mut cells = vec![
            operator
                .task_id
                .map_or_else(|| "-".into(), |id| id.to_string()),
            operator.op_type.to_string(),
            operator.op_name.to_string(),
            operator.n_files.to_string(),
            operator.n_inputs.to_string(),
            operator.n_outputs.to_string(),
            format::bytes(operator.n_bytes),
            if operator.is_record {
                "overflow record".into()
            } else {
                String::new()
            },
        ];
        if has_ranks {
            cells.insert(RANKS_COLUMN, ranks_text(&operator.ranks));
        }
        cells
    };
    let pieces = overview.operators.chunks(N_ROWS_AT_ONCE);
    let mut table = format::TableInPieces::new(&header, &right);
    pieces
        .clone()
        .for_each(|piece| table.widen(piece.iter().map(row).collect()));
    let mut out = console::out();
    for piece in pieces {
        writeln!(out, "{}", table.piece(piece.iter().map(row).collect()))?;
    }
    let n_ranks = match overview.ranks.len() {
        0 | 1 => String::new(),
        n => format!(" of {n} ranks"),
    };
    writeln!(
        out,
        "\n{}{n_ranks}, {}, {} in {}",
        format::count(overview.operators.len() as u64, "operator"),
        format::count(overview.n_files, "file"),
        format::bytes(overview.n_bytes),
        match overview.dirs.len() {
            1 => "1 directory".to_owned(),
            n => format!("{n} directories"),
        }
    )?;
    print_record_files(&mut out, overview.n_record_files)
}

/// Position of the column of ranks, if there are several.
const RANKS_COLUMN: usize = 3;

fn ranks_text(ranks: &BTreeSet<u32>) -> String {
    let ranks: Vec<u32> = ranks.iter().copied().collect();
    Collective::text_of(&ranks)
}

fn print_record_files(out: &mut impl Write, n_record_files: u64) -> CommandResult {
    if n_record_files > 0 {
        let files = format::count(n_record_files, "file");
        line!(out, "{files} with overflow records: see `opscope overflow`")?;
    }
    Ok(())
}

fn print_json(value: &Value) -> CommandResult {
    console::print_json(value)?;
    Ok(())
}

/// A time in readable form.
pub(crate) fn time(us: u64) -> String {
    let timestamp = i64::try_from(us)
        .ok()
        .and_then(|us| Timestamp::from_microsecond(us).ok());
    // The file may contain any number, even one beyond the calendar's last year.
    timestamp.map_or_else(|| format!("{us} µs"), |timestamp| timestamp.to_string())
}
