//! Statistics files of AscendCL data dump.

use std::io::Write;
use std::path::Path;

use opscope_analysis::statistics::OperatorStatistics;
use opscope_store::file_format::stats_csv::Table;
use serde_json::{Map, Value, json};

use crate::console::{self, line};
use crate::exit::Failure;
use crate::format;

/// One file.
pub(super) fn show(path: &Path, table: &Table, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return super::print_json(&json!({ "path": path, "rows": rows_json(table) }));
    }
    let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let text = format::table(&header, &numeric(&header), table.rows.clone()).trim_fmt();
    writeln!(console::out(), "{text}")?;
    Ok(())
}

/// All files of a directory, one table for each set of columns.
pub(super) fn print(all: &[OperatorStatistics]) -> Result<(), Failure> {
    let mut out = console::out();
    let mut rest = all;
    while let Some(first) = rest.first() {
        let n = rest
            .iter()
            .take_while(|one| one.table.columns == first.table.columns)
            .count();
        let (same, others) = rest.split_at(n);
        let columns = first.table.columns.iter().map(String::as_str);
        let header: Vec<&str> = ["step", "task", "type", "operator"]
            .into_iter()
            .chain(columns)
            .collect();
        let rows = same.iter().flat_map(rows);
        let text = format::table(&header, &numeric(&header), rows.collect()).trim_fmt();
        writeln!(out, "{text}\n")?;
        rest = others;
    }
    let n = format::count(all.len() as u64, "file");
    line!(out, "statistics of {n}")?;
    Ok(())
}

pub(super) fn to_json(all: &[OperatorStatistics]) -> Value {
    let one = |one: &OperatorStatistics| {
        json!({
            "step": one.step,
            "task_id": one.name.as_ref().map(|name| name.task_id),
            "op_type": one.name.as_ref().map(|name| &name.op_type),
            "op_name": one.name.as_ref().map_or(&one.file_name, |name| &name.op_name),
            "rows": rows_json(&one.table),
        })
    };
    all.iter().map(one).collect()
}

fn rows(one: &OperatorStatistics) -> impl Iterator<Item = Vec<String>> + '_ {
    let step = one
        .step
        .map_or_else(|| "-".to_owned(), |step| step.to_string());
    one.table.rows.iter().map(move |cells| {
        let start = match &one.name {
            Some(name) => [
                step.clone(),
                name.task_id.to_string(),
                name.op_type.clone(),
                name.op_name.clone(),
            ],
            None => [
                step.clone(),
                "-".to_owned(),
                String::new(),
                one.file_name.clone(),
            ],
        };
        start.into_iter().chain(cells.iter().cloned()).collect()
    })
}

fn rows_json(table: &Table) -> Vec<Value> {
    let object = |cells: &Vec<String>| {
        let members = table
            .columns
            .iter()
            .cloned()
            .zip(cells.iter().map(|cell| json!(cell)));
        Value::Object(members.collect::<Map<String, Value>>())
    };
    table.rows.iter().map(object).collect()
}

/// The columns that hold numbers.
fn numeric<'a>(header: &[&'a str]) -> Vec<&'a str> {
    let is_text = |name: &&str| {
        [
            "type",
            "operator",
            "Input/Output",
            "Data Type",
            "Format",
            "Shape",
        ]
        .contains(name)
    };
    header
        .iter()
        .filter(|name| !is_text(name))
        .copied()
        .collect()
}
