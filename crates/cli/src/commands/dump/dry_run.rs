//! Prints the totals of a dry run.

use std::io::Write;

use opscope_dump::{DryRunForecast, FileAmount};
use serde_json::{Value, json};

use super::dump_report::DumpReport;
use crate::console::{self, line, report};
use crate::exit::{CommandResult, chain};
use crate::format;

/// Number of largest operators to list.
const N_LARGEST: usize = 10;
/// Maximum number of step ranges to list.
const N_STRETCHES_SHOWN: usize = 20;

/// Warns of anything that makes a forecast doubtful, and of insufficient space.
pub(super) fn warn(forecast: &DryRunForecast, has_random_inputs: bool) {
    if let Err(error) = &forecast.space {
        report!("opscope: warning: {}", chain(error));
    }
    // Rules by content, overflow and links depend on values, so random inputs may change the
    // totals.
    if has_random_inputs {
        report!("opscope: warning: no inputs given: using random ones, as with `--seed 0`");
    }
    // If the free space is unknown, a warning above says why.
    if forecast.fits() == Some(false) {
        report!(
            "opscope: warning: not enough space for the dump: it needs {} and {}, {}",
            format::bytes(forecast.n_bytes_needed),
            format::count(forecast.n_files_needed, "file"),
            free(forecast)
        );
    }
}

fn free(forecast: &DryRunForecast) -> String {
    let Ok(space) = &forecast.space else {
        return "the free space is unknown".to_owned();
    };
    let bytes = format::bytes(space.n_bytes_free);
    match space.n_files_free {
        Some(files) => format!("{bytes} and {} are free", format::count(files, "file")),
        None => format!("{bytes} are free"),
    }
}

/// Prints the table.
pub(super) fn print(forecast: &DryRunForecast, report: &DumpReport) -> CommandResult {
    let mut out = console::out();
    let steps = format::count(report.n_steps, "step");
    let (title, engine) = (&report.title, report.engine.name());
    line!(
        out,
        "dry run           {title} ({engine}, {steps}); nothing is written"
    )?;
    let volume = &forecast.volume;
    let (n, n_selected) = (volume.n_operators, volume.n_operators_selected);
    line!(out, "operators         {n_selected} of {n} selected")?;
    print_steps(forecast, &mut out)?;
    let (files, bytes) = forecast.beside_steps();
    line!(out, "beside            {}", size(files, bytes))?;
    let total = forecast.total;
    let dirs = match total.n_dirs {
        1 => "1 directory".to_owned(),
        n => format!("{n} directories"),
    };
    line!(
        out,
        "in total          {} in {dirs}",
        size(total.n_files, total.n_bytes)
    )?;
    if total.n_linked > 0 {
        let saved = format::bytes(total.n_bytes_linked);
        line!(
            out,
            "links             {} of the files, which saves {saved}",
            total.n_linked
        )?;
    }
    let whole = forecast.whole();
    line!(
        out,
        "whole tensors     {}, {}; {}, {}",
        format::count(whole.n_inputs, "input"),
        format::bytes(whole.n_input_bytes),
        format::count(whole.n_outputs, "output"),
        format::bytes(whole.n_output_bytes)
    )?;
    let needed = format::bytes(forecast.n_bytes_needed);
    line!(
        out,
        "room              {needed} on disk, {}",
        free(forecast)
    )?;
    line!(out, "place             {}", forecast.place.display())?;
    print_tables(forecast, &mut out)
}

fn print_tables(forecast: &DryRunForecast, out: &mut impl Write) -> CommandResult {
    if forecast.volume.operators.is_empty() {
        return Ok(());
    }
    let columns = [
        "executions",
        "files",
        "bytes",
        "whole inputs",
        "whole outputs",
    ];
    let rows = forecast.by_type().into_iter().map(|(op_type, amount)| {
        let mut row = vec![op_type.to_owned()];
        row.extend(cells(&amount));
        row
    });
    let header: Vec<&str> = ["type"].into_iter().chain(columns).collect();
    let table = format::table(&header, &columns, rows.collect()).trim_fmt();
    writeln!(out, "\n{table}")?;
    let rows = forecast.largest(N_LARGEST).into_iter().map(|volume| {
        let operator = &volume.operator;
        let mut row = vec![operator.op_type.clone(), operator.op_name.clone()];
        row.extend(cells(&volume.amount));
        row
    });
    let header: Vec<&str> = ["type", "largest operators"]
        .into_iter()
        .chain(columns)
        .collect();
    let table = format::table(&header, &columns, rows.collect()).trim_fmt();
    writeln!(out, "\n{table}")?;
    Ok(())
}

fn cells(amount: &FileAmount) -> [String; 5] {
    [
        amount.n_records.to_string(),
        amount.n_files.to_string(),
        format::bytes(amount.n_bytes),
        format::bytes(amount.whole.n_input_bytes),
        format::bytes(amount.whole.n_output_bytes),
    ]
}

/// An amount as a JSON object, with more members.
fn amount_json(amount: &FileAmount, members: Value) -> Value {
    let mut object = json!({
        "executions": amount.n_records,
        "files": amount.n_files,
        "bytes": amount.n_bytes,
        "input_bytes": amount.whole.n_input_bytes,
        "output_bytes": amount.whole.n_output_bytes,
    });
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

/// The forecast as a JSON object.
pub(super) fn to_json(forecast: &DryRunForecast, report: &DumpReport) -> Value {
    let steps = forecast.volume.steps.iter();
    let steps = steps.map(|(step, amount)| amount_json(amount, json!({ "step": step })));
    let types = forecast.by_type().into_iter();
    let types = types.map(|(op_type, amount)| amount_json(&amount, json!({ "op_type": op_type })));
    let largest = forecast.largest(N_LARGEST).into_iter().map(|volume| {
        let operator = &volume.operator;
        let name = json!({ "op_type": operator.op_type, "op_name": operator.op_name });
        amount_json(&volume.amount, name)
    });
    let (whole, (beside_files, beside_bytes)) = (forecast.whole(), forecast.beside_steps());
    let c = &report.summary.counters;
    let space = forecast.space.as_ref().ok();
    json!({
        "dry_run": true,
        "model": { "name": report.title, "graph": report.model.graph_name },
        "steps": report.n_steps,
        "random_inputs": report.has_random_inputs,
        "place": forecast.place,
        "operators": {
            "in_model": forecast.volume.n_operators,
            "selected": forecast.volume.n_operators_selected,
        },
        "records": { "offered": c.n_offered, "selected": c.n_selected, "whole": c.n_whole },
        "files": forecast.total.n_files,
        "bytes": forecast.total.n_bytes,
        "linked": forecast.total.n_linked,
        "bytes_linked": forecast.total.n_bytes_linked,
        "directories": forecast.total.n_dirs,
        "beside": { "files": beside_files, "bytes": beside_bytes },
        "by_side": {
            "input": { "tensors": whole.n_inputs, "bytes": whole.n_input_bytes },
            "output": { "tensors": whole.n_outputs, "bytes": whole.n_output_bytes },
        },
        "by_step": steps.collect::<Value>(),
        "by_type": types.collect::<Value>(),
        "largest": largest.collect::<Value>(),
        "room": {
            "needed_bytes": forecast.n_bytes_needed,
            "free_bytes": space.map(|space| space.n_bytes_free),
            "free_files": space.and_then(|space| space.n_files_free),
            "fits": forecast.fits(),
        },
    })
}

fn print_steps(forecast: &DryRunForecast, out: &mut impl Write) -> CommandResult {
    let stretches = forecast.stretches();
    for (first, last, amount) in stretches.iter().take(N_STRETCHES_SHOWN) {
        let (label, each) = if first == last {
            (format!("step {first}"), "")
        } else {
            (format!("steps {first}-{last}"), " each")
        };
        line!(
            out,
            "{label:<18}{}{each}",
            size(amount.n_files, amount.n_bytes)
        )?;
    }
    if stretches.len() > N_STRETCHES_SHOWN {
        writeln!(out, "                  and more; see `--json`")?;
    }
    Ok(())
}

/// Files and bytes.
fn size(n_files: u64, n_bytes: u64) -> String {
    format!(
        "{}, {}",
        format::count(n_files, "file"),
        format::bytes(n_bytes)
    )
}
