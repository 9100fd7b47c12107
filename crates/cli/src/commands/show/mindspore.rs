//! Prints dumps of MindSpore.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use opscope_analysis::default_jobs;
use opscope_analysis::mindspore::{self, GraphNodes, MindSporeOverview, is_dump_file};
use opscope_store::dump::DumpListing;
use opscope_store::reader::{ExecutionKind, IndexedExecution, IndexedTensor, StatisticCell};
use opscope_store::run_file::FoundRun;
use opscope_store::tree::mindspore::TensorFileName;
use serde_json::{Value, json};

use super::{
    print_errors, print_json, print_record_files, runs, statistics, tensor_json, time, verdict,
};
use crate::console::{self, line};
use crate::exit::{CommandResult, chain};
use crate::{format, passed_over};

pub(super) fn show(
    path: &Path,
    listing: DumpListing,
    runs: &[FoundRun],
    is_json: bool,
) -> CommandResult {
    let overview = mindspore::overview(listing, default_jobs(), is_json);
    let index = &overview.index;
    let executions = overview.executions();
    if is_json {
        let mut result = overview_json(path, &overview, &executions);
        if !index.tables.is_empty() {
            result["runtime_statistics"] = statistics::to_json(&index.tables);
        }
        result["runs"] = runs::to_json(runs);
        print_json(&result)?;
    } else {
        print_errors(&index.errors);
        print_overview(&overview, &executions)?;
        if !index.tables.is_empty() {
            writeln!(console::out())?;
            statistics::print(&index.tables)?;
        }
        let mut out = console::out();
        print_record_files(&mut out, overview.n_record_files())?;
        passed_over::print(&mut out, &index.passed_over)?;
        runs::print(&mut out, runs)?;
    }
    let n = executions.len() + overview.graphs.len() + index.tables.len();
    verdict(path, n as u64, &index.errors, &index.passed_over)
}

/// An execution with its tensors.
type ExecutionTensors<'a> = (&'a IndexedExecution, Vec<&'a IndexedTensor>);

/// Prints the facts in a file's name.
pub(super) fn print_name(out: &mut impl Write, name: &TensorFileName) -> CommandResult {
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

fn print_overview(
    overview: &MindSporeOverview,
    executions: &[ExecutionTensors<'_>],
) -> CommandResult {
    let mut out = console::out();
    let mut header = vec![
        "step", "graph", "type", "operator", "slot", "dtype", "shape", "bytes",
    ];
    let has_ranks = overview.ranks.len() > 1;
    if has_ranks {
        header.insert(0, "rank");
    }
    let columns = statistics_columns(executions);
    header.extend(columns.iter().map(String::as_str));
    let mut rows = Vec::new();
    for (execution, tensors) in executions {
        for tensor in tensors {
            let mut row = row(overview, execution, tensor);
            if has_ranks {
                row.insert(0, number(execution.rank));
            }
            row.extend(columns.iter().map(|column| statistic(tensor, column)));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        let right = ["rank", "step", "graph", "bytes"];
        writeln!(out, "{}\n", format::table(&header, &right, rows).trim_fmt())?;
    }
    let n_operators = count(executions, ExecutionKind::Operator);
    let mut counts = vec![format::count(n_operators, "operator execution")];
    for (kind, noun) in [
        (ExecutionKind::Parameter, "parameter"),
        (ExecutionKind::Constant, "constant"),
    ] {
        let n = count(executions, kind);
        counts.extend((n > 0).then(|| format::count(n, noun)));
    }
    let index = &overview.index;
    if index.n_statistics_rows > 0 {
        counts.push(format::count(index.n_statistics_rows, "row") + " of statistics");
    }
    counts.push(format::count(index.files.len() as u64, "file"));
    counts.push(format::bytes(n_bytes(overview)));
    counts.push(format::count(overview.graphs.len() as u64, "graph"));
    line!(out, "{}", counts.join(", "))?;
    Ok(())
}

/// The kind of an execution. Overflow records are named by their file number.
fn shown_kind(execution: &IndexedExecution) -> ExecutionKind {
    match execution.kind {
        ExecutionKind::OverflowRecord => ExecutionKind::Operator,
        kind => kind,
    }
}

fn count(executions: &[ExecutionTensors<'_>], kind: ExecutionKind) -> u64 {
    let executions = executions.iter();
    executions
        .filter(|(execution, _)| shown_kind(execution) == kind)
        .count() as u64
}

fn n_bytes(overview: &MindSporeOverview) -> u64 {
    overview.index.files.iter().map(|file| file.n_bytes).sum()
}

/// The statistics of a tensor; the runtime's are in a separate table.
fn own_statistics(tensor: &IndexedTensor) -> impl Iterator<Item = StatisticCell<'_>> {
    let own = (!is_dump_file(tensor)).then(|| tensor.statistics.iter());
    own.into_iter().flatten()
}

/// Titles of statistics, in the order of first appearance.
fn statistics_columns(executions: &[ExecutionTensors<'_>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let tensors = executions.iter().flat_map(|(_, tensors)| tensors);
    for (column, _) in tensors.flat_map(|tensor| own_statistics(tensor)) {
        if !columns.iter().any(|known| column == known) {
            columns.push(column.to_string());
        }
    }
    columns
}

fn statistic(tensor: &IndexedTensor, column: &str) -> String {
    let mut statistics = own_statistics(tensor);
    let known = statistics.find(|(title, _)| *title == column);
    let value = known.and_then(|(_, value)| value);
    value.map_or_else(|| "-".to_owned(), Cow::into_owned)
}

fn slot_name(tensor: &IndexedTensor) -> String {
    let slot = tensor
        .slot
        .map(|(side, index)| format!("{}.{index}", side.name()));
    slot.unwrap_or_default()
}

fn row(
    overview: &MindSporeOverview,
    execution: &IndexedExecution,
    tensor: &IndexedTensor,
) -> Vec<String> {
    let step = match (execution.step, execution.iteration) {
        // Trees of whole graphs may have both: a directory for the step and one for the iteration
        // below it.
        (Some(step), Some(iteration)) => format!("{step}/{iteration}"),
        (None, iteration) => number(iteration),
        (step, None) => number(step),
    };
    let described = overview.description(tensor);
    // The name has the operator's dtype. The file may have a wider one, as npy lacks bfloat16.
    let dtype = tensor.dtype_in_name.clone();
    let dtype = dtype.or_else(|| described.map(|d| d.stored.dtype.to_string()));
    let names = &execution.other_names;
    // Names in files have lost their slashes, so the graph's name is shown if known.
    let name = names.full.as_ref().or(names.in_files.as_ref());
    vec![
        step,
        number(execution.model_id),
        execution.op_type.to_string(),
        name.cloned().unwrap_or_default(),
        slot_name(tensor),
        dtype.unwrap_or_else(|| "-".to_owned()),
        if described.is_some() || own_statistics(tensor).next().is_some() {
            format::shape(shape(overview, tensor))
        } else {
            "unreadable".to_owned()
        },
        described.map_or_else(|| "-".to_owned(), |d| format::bytes(d.stored.n_bytes)),
    ]
}

/// Shape from the file or the statistics.
fn shape<'a>(overview: &'a MindSporeOverview, tensor: &'a IndexedTensor) -> &'a [u64] {
    match overview.description(tensor) {
        Some(described) => described.dims(),
        None => tensor.shape.as_deref().unwrap_or_default(),
    }
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn overview_json(
    path: &Path,
    overview: &MindSporeOverview,
    executions: &[ExecutionTensors<'_>],
) -> Value {
    let graphs = overview.graphs.iter().map(|graph| {
        json!({
            "rank": graph.rank,
            "graph_id": graph.graph_id,
            "nodes": graph.n_nodes,
            "kernels": graph.n_kernels,
            "iterations": graph.iterations,
        })
    });
    let index = &overview.index;
    let nodes = overview.nodes();
    let records = executions.iter();
    let records = records.map(|execution| execution_json(overview, execution, &nodes));
    json!({
        "path": path,
        "dialect": "mindspore",
        "files": index.files.len(),
        "bytes": n_bytes(overview),
        "statistics_rows": index.n_statistics_rows,
        "ranks": overview.ranks,
        "overflow_record_files": overview.n_record_files(),
        "passed_over": passed_over::to_json(&index.passed_over),
        "operator_executions": count(executions, ExecutionKind::Operator),
        "parameters": count(executions, ExecutionKind::Parameter),
        "constants": count(executions, ExecutionKind::Constant),
        "graphs": graphs.collect::<Vec<_>>(),
        "records": records.collect::<Vec<_>>(),
        "errors": index.errors.iter().map(|error| chain(error)).collect::<Vec<_>>(),
    })
}

fn execution_json(
    overview: &MindSporeOverview,
    (execution, tensors): &ExecutionTensors<'_>,
    nodes: &GraphNodes<'_>,
) -> Value {
    let names = &execution.other_names;
    let tensors = tensors
        .iter()
        .map(|tensor| tensor_record_json(overview, tensor));
    json!({
        "kind": shown_kind(execution).name(),
        "op_type": execution.op_type,
        "op_name": names.in_files,
        "full_name": names.full,
        "listed_name": names.listed,
        "rank": execution.rank,
        "net_name": execution.model,
        "graph_id": execution.model_id,
        "step": execution.step,
        "time": execution.time,
        "iteration": execution.iteration,
        "run": execution.run,
        "source": nodes.source(execution),
        "tensors": tensors.collect::<Vec<_>>(),
    })
}

fn tensor_record_json(overview: &MindSporeOverview, tensor: &IndexedTensor) -> Value {
    let described = overview.description(tensor);
    let mut object = match described {
        Some(described) => tensor_json(described),
        None => json!({"slot": slot_name(tensor), "shape": shape(overview, tensor)}),
    };
    let layout = described.filter(|_| is_dump_file(tensor));
    let layout = layout.map(|described| described.stored.layout.to_string());
    object["path"] = json!(tensor.elements.as_ref().map(|_| tensor.path.as_path()));
    object["timestamp"] = tensor.timestamp.unwrap_or(0).into();
    object["named_layout"] = json!(layout.or_else(|| tensor.layout_in_name.clone()));
    object["original_dtype"] = json!(tensor.dtype_in_name);
    let statistics = own_statistics(tensor);
    let statistics: serde_json::Map<_, _> = statistics
        .map(|(column, value)| (column.to_string(), value.as_deref().into()))
        .collect();
    object["statistics"] = if statistics.is_empty() {
        Value::Null
    } else {
        Value::Object(statistics)
    };
    object
}
