//! Statistics files of AscendCL data dump.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use opscope_store::file_format::stats_csv::StatsTable;
use opscope_store::reader::IndexedTable;
use serde_json::{Map, Value, json};

use crate::console::{self, line};
use crate::exit::CommandResult;
use crate::format;

/// Shows one file.
pub(super) fn show(path: &Path, table: &StatsTable, is_json: bool) -> CommandResult {
    if is_json {
        return super::print_json(&json!({ "path": path, "rows": rows_json(table) }));
    }
    let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let text = format::table(&header, &numeric(&header), table.rows.clone()).trim_fmt();
    writeln!(console::out(), "{text}")?;
    Ok(())
}

/// Prints all files of a directory, with one table for each set of columns.
pub(super) fn print(all: &[IndexedTable]) -> CommandResult {
    let mut out = console::out();
    let ranks: BTreeSet<_> = all.iter().filter_map(|table| table.rank).collect();
    let has_ranks = ranks.len() > 1;
    let mut rest = all;
    while let Some(first) = rest.first() {
        let n = rest
            .iter()
            // Only neighbours share a table, so that all rows stay in step and task order.
            .take_while(|indexed| indexed.table.columns == first.table.columns)
            .count();
        let (same, others) = rest.split_at(n);
        let columns = first.table.columns.iter().map(String::as_str);
        let rank = has_ranks.then_some("rank");
        let header: Vec<&str> = rank
            .into_iter()
            .chain(["step", "task", "type", "operator"])
            .chain(columns)
            .collect();
        let rows = same.iter().flat_map(|indexed| rows(indexed, has_ranks));
        let text = format::table(&header, &numeric(&header), rows.collect()).trim_fmt();
        writeln!(out, "{text}\n")?;
        rest = others;
    }
    let n = format::count(all.len() as u64, "file");
    line!(out, "statistics of {n}")?;
    Ok(())
}

pub(super) fn to_json(all: &[IndexedTable]) -> Value {
    all.iter()
        .map(|indexed| {
            json!({
                "rank": indexed.rank,
                "step": indexed.step,
                "task_id": indexed.task_id,
                "op_type": indexed.op_type,
                "op_name": indexed.op_name,
                "rows": rows_json(&indexed.table),
            })
        })
        .collect()
}

fn rows(one: &IndexedTable, has_ranks: bool) -> impl Iterator<Item = Vec<String>> + '_ {
    let mut start = Vec::with_capacity(5);
    if has_ranks {
        start.push(number(one.rank));
    }
    start.extend([
        number(one.step),
        number(one.task_id),
        one.op_type.clone().unwrap_or_default(),
        one.op_name.clone(),
    ]);
    let rows = one.table.rows.iter();
    rows.map(move |cells| start.iter().chain(cells).cloned().collect())
}

fn number(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn rows_json(table: &StatsTable) -> Vec<Value> {
    let objects = table.rows.iter().map(|cells| {
        // Cells stay text: they may be empty, `NA` or `inf`, and a number would lose its spelling.
        let cells = cells.iter().map(|cell| json!(cell));
        let members = table.columns.iter().cloned().zip(cells);
        Value::Object(members.collect::<Map<String, Value>>())
    });
    objects.collect()
}

/// The columns that hold numbers.
fn numeric<'a>(header: &[&'a str]) -> Vec<&'a str> {
    const TEXTS: [&str; 6] = [
        "type",
        "operator",
        "Input/Output",
        "Data Type",
        "Format",
        "Shape",
    ];
    let header = header.iter().copied();
    header.filter(|name| !TEXTS.contains(name)).collect()
}
