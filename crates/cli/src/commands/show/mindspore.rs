//! Prints dumps of MindSpore.

use std::io::Write;
use std::path::Path;

use opscope_analysis::mindspore::{MindSporeOverview, RecordOverview, TensorOverview};
use opscope_store::dump::mindspore::RunKind;
use opscope_store::run_file::FoundRun;
use opscope_store::tree::mindspore::TensorFileName;
use serde_json::{Value, json};

use super::{
    print_errors, print_json, print_record_files, runs, statistics, tensor_json, time, verdict,
};
use crate::console::{self, line};
use crate::exit::{Failure, chain};
use crate::{format, passed_over};

pub(super) fn show(
    path: &Path,
    overview: &MindSporeOverview,
    runs: &[FoundRun],
    is_json: bool,
) -> Result<(), Failure> {
    if is_json {
        let mut result = overview_json(path, overview);
        if !overview.tables.is_empty() {
            result["runtime_statistics"] = statistics::to_json(&overview.tables);
        }
        result["runs"] = runs::to_json(runs);
        print_json(&result)?;
    } else {
        print_errors(&overview.errors);
        print_overview(overview)?;
        if !overview.tables.is_empty() {
            writeln!(console::out())?;
            statistics::print(&overview.tables)?;
        }
        let mut out = console::out();
        print_record_files(&mut out, overview.n_record_files)?;
        passed_over::print(&mut out, &overview.passed_over)?;
        runs::print(&mut out, runs)?;
    }
    let n = overview.records.len() + overview.graphs.len() + overview.tables.len();
    verdict(path, n as u64, &overview.errors, &overview.passed_over)
}

/// Prints the facts that a file's name gives.
pub(super) fn print_name(out: &mut impl Write, name: &TensorFileName) -> Result<(), Failure> {
    let what = if name.is_parameter() {
        "parameter"
    } else {
        "operator "
    };
    line!(out, "{what} {}  ({})", name.op_name, name.op_type)?;
    line!(out, "task      {}, stream {}", name.task_id, name.stream_id)?;
    line!(out, "written   {}", time(name.timestamp))?;
    let dtype = name.dtype.as_deref().unwrap_or("not said");
    line!(out, "layout    {}, dtype {dtype}", name.layout)?;
    Ok(())
}

pub(super) fn name_json(name: &TensorFileName) -> Value {
    json!({
        "op_type": name.op_type,
        "op_name": name.op_name,
        "task_id": name.task_id,
        "stream_id": name.stream_id,
        "timestamp": name.timestamp,
        "side": name.side.name(),
        "slot": name.slot,
        "layout": name.layout,
        "dtype": name.dtype,
    })
}

fn print_overview(overview: &MindSporeOverview) -> Result<(), Failure> {
    let mut out = console::out();
    let mut header = vec![
        "step", "graph", "type", "operator", "slot", "dtype", "shape", "bytes",
    ];
    let has_ranks = overview.ranks.len() > 1;
    if has_ranks {
        header.insert(0, "rank");
    }
    let columns = statistics_columns(overview);
    header.extend(columns.iter().map(String::as_str));
    let mut rows = Vec::new();
    for record in &overview.records {
        for tensor in &record.tensors {
            let mut row = row(record, tensor);
            if has_ranks {
                row.insert(0, number(record.run.place.rank));
            }
            row.extend(columns.iter().map(|column| statistic(tensor, column)));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        let right = ["rank", "step", "graph", "bytes"];
        writeln!(out, "{}\n", format::table(&header, &right, rows).trim_fmt())?;
    }
    let count = |kind| {
        overview
            .records
            .iter()
            .filter(|r| r.run.kind == kind)
            .count() as u64
    };
    let mut counts = vec![format::count(
        count(RunKind::Operator),
        "operator execution",
    )];
    for (kind, noun) in [
        (RunKind::Parameter, "parameter"),
        (RunKind::Constant, "constant"),
    ] {
        let n = count(kind);
        counts.extend((n > 0).then(|| format::count(n, noun)));
    }
    if overview.n_rows > 0 {
        counts.push(format::count(overview.n_rows, "row") + " of statistics");
    }
    counts.push(format::count(overview.n_files, "file"));
    counts.push(format::bytes(overview.n_bytes));
    counts.push(format::count(overview.graphs.len() as u64, "graph"));
    line!(out, "{}", counts.join(", "))?;
    Ok(())
}

/// Titles of statistics, in the order in which they come first.
fn statistics_columns(overview: &MindSporeOverview) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let tensors = overview.records.iter().flat_map(|r| &r.tensors);
    for (column, _) in tensors.flat_map(|tensor| &tensor.statistics) {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}

fn statistic(tensor: &TensorOverview, column: &str) -> String {
    let known = tensor.statistics.iter().find(|(title, _)| title == column);
    let value = known.and_then(|(_, value)| value.clone());
    value.unwrap_or_else(|| "-".to_owned())
}

fn row(record: &RecordOverview, tensor: &TensorOverview) -> Vec<String> {
    let run = &record.run;
    let name = run.full_name.as_ref().unwrap_or(&run.op_name);
    let step = match (run.place.step, run.place.iteration) {
        (Some(step), Some(iteration)) => format!("{step}/{iteration}"),
        (None, iteration) => number(iteration),
        (step, None) => number(step),
    };
    let described = tensor.tensor.as_ref();
    let dtype = tensor.original_dtype.clone();
    let dtype = dtype.or_else(|| described.map(|d| d.dtype.clone()));
    vec![
        step,
        number(run.place.graph_id),
        run.op_type.clone(),
        name.clone(),
        tensor.slot.clone(),
        dtype.unwrap_or_else(|| "-".to_owned()),
        match described.is_some() || !tensor.statistics.is_empty() {
            true => format::shape(&tensor.shape),
            false => "unreadable".to_owned(),
        },
        described.map_or_else(|| "-".to_owned(), |d| format::bytes(d.n_bytes)),
    ]
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn overview_json(path: &Path, overview: &MindSporeOverview) -> Value {
    let graphs = overview.graphs.iter().map(|graph| {
        json!({
            "rank": graph.rank,
            "graph_id": graph.graph_id,
            "nodes": graph.n_nodes,
            "kernels": graph.n_kernels,
            "iterations": graph.iterations,
        })
    });
    let count = |kind| {
        overview
            .records
            .iter()
            .filter(|r| r.run.kind == kind)
            .count()
    };
    json!({
        "path": path,
        "dialect": "mindspore",
        "files": overview.n_files,
        "bytes": overview.n_bytes,
        "statistics_rows": overview.n_rows,
        "ranks": overview.ranks,
        "overflow_record_files": overview.n_record_files,
        "passed_over": passed_over::to_json(&overview.passed_over),
        "operator_executions": count(RunKind::Operator),
        "parameters": count(RunKind::Parameter),
        "constants": count(RunKind::Constant),
        "graphs": graphs.collect::<Vec<_>>(),
        "records": overview.records.iter().map(record_json).collect::<Vec<_>>(),
        "errors": overview.errors.iter().map(|error| chain(error)).collect::<Vec<_>>(),
    })
}

fn record_json(record: &RecordOverview) -> Value {
    let run = &record.run;
    let place = &run.place;
    json!({
        "kind": match run.kind {
            RunKind::Operator => "operator",
            RunKind::Parameter => "parameter",
            RunKind::Constant => "constant",
        },
        "op_type": run.op_type,
        "op_name": run.op_name,
        "full_name": run.full_name,
        "listed_name": run.listed_name,
        "rank": place.rank,
        "net_name": place.net_name,
        "graph_id": place.graph_id,
        "step": place.step,
        "time": place.time,
        "iteration": place.iteration,
        "run": run.run,
        "source": record.source,
        "tensors": record.tensors.iter().map(tensor_overview_json).collect::<Vec<_>>(),
    })
}

fn tensor_overview_json(tensor: &TensorOverview) -> Value {
    let statistics: serde_json::Map<_, _> = tensor
        .statistics
        .iter()
        .map(|(column, value)| (column.clone(), value.clone().into()))
        .collect();
    let mut object = match &tensor.tensor {
        Some(described) => tensor_json(described),
        None => json!({"slot": tensor.slot, "shape": tensor.shape}),
    };
    object["path"] = json!(tensor.path);
    object["timestamp"] = tensor.timestamp.into();
    object["named_layout"] = json!(tensor.layout);
    object["original_dtype"] = json!(tensor.original_dtype);
    object["statistics"] = match tensor.statistics.is_empty() {
        true => Value::Null,
        false => Value::Object(statistics),
    };
    object
}
