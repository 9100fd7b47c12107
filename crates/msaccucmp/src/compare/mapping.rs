//! The table of corresponding tensors, without a comparison.

use opscope_analysis::job;
use opscope_store::record::SlotSide;

use super::dump::ComparedFile;
use super::file_name::DumpFileKind;
use super::fused::{FusedComparison, compared_sides};
use super::metrics::NAN;
use super::rule::OriginRelation;
use super::stop::CompareStop;
use super::table;
use crate::log;
use crate::output::OutputFolder;

const HEADER: [&str; 7] = [
    "Index",
    "OpType",
    "NPUDump",
    "GroundTruth",
    "TensorIndex",
    "NPUDumpPath",
    "GroundTruthPath",
];
const SEQUENCE: &str = "OpSequence";

/// Writes the table for some groups.
pub(super) fn write(
    fused: &FusedComparison<'_>,
    groups: &[usize],
    output: &OutputFolder,
) -> Result<(), CompareStop> {
    let rows = job::map(groups, job::default_jobs(), |&group| {
        group_rows(fused, &fused.rule.groups[group].1)
    });
    let mut rows: Vec<(usize, Vec<String>)> = rows
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    rows.sort_by_key(|(index, _)| *index);
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    let mut header = HEADER.map(str::to_owned).to_vec();
    if fused.form.has_sequence {
        header.insert(1, SEQUENCE.to_owned());
    }
    let name = format!("mapping_{}.csv", table::time());
    if let Some(bad) = rows.iter().position(|row| table::check(row).is_err()) {
        output.text(&name, &table::text(&header, &rows[..bad])?)?;
        return table::check(&rows[bad]);
    }
    let path = output.text(&name, &table::text(&header, &rows)?)?;
    log::info(&format!(
        "The mapping table result have been written to {}.",
        log::quoted(&path)
    ));
    Ok(())
}

type Row = (usize, Vec<String>);

fn group_rows(fused: &FusedComparison<'_>, ops: &[usize]) -> Result<Vec<Row>, CompareStop> {
    let mut rows = Vec::new();
    for &op in ops {
        let rule = &fused.rule.ops[op];
        let row = |id: &str, mine: &str, golden: &str| row(fused, ops, op, [id, mine, golden]);
        let mine = &fused.network.mine;
        let index = (mine.kind == DumpFileKind::Quant).then_some(0);
        let path = match mine.files(&rule.name, index) {
            Ok((files, _)) => files.last().cloned().ok_or_else(CompareStop::index)?,
            Err(CompareStop::Fatal(message)) => return Err(CompareStop::Fatal(message)),
            Err(_) => {
                log::warning(&format!(
                    "[{0}] There is no left dump file for the op \"{0}\".",
                    rule.name
                ));
                rows.push(row(NAN, NAN, NAN));
                continue;
            }
        };
        let path_text = path.display().to_string();
        let dump = match ComparedFile::open(&path) {
            Ok(dump) => dump,
            Err(CompareStop::Fatal(message)) => return Err(CompareStop::Fatal(message)),
            Err(_) => {
                log::error(&format!("{path_text} file parse error"));
                rows.push(row(NAN, &path_text, NAN));
                continue;
            }
        };
        for side in compared_sides(rule) {
            for i in 0..dump.side(side).len() {
                let golden = golden_path(fused, op, side, i)?;
                let id = format!("{}:{}:{i}", rule.name, side.name());
                rows.push(row(&id, &path_text, &golden));
            }
        }
    }
    Ok(rows)
}

/// The path of the golden tensor.
fn golden_path(
    fused: &FusedComparison<'_>,
    op: usize,
    side: SlotSide,
    index: usize,
) -> Result<String, CompareStop> {
    let golden = &fused.network.golden;
    let found = fused.find_golden(op, side, index).and_then(|(origin, _)| {
        let index = (golden.kind != DumpFileKind::Offline).then_some(origin.index);
        let (files, _) = golden.files(&origin.name, index)?;
        let last = files.last().ok_or_else(CompareStop::index)?;
        Ok(last.display().to_string())
    });
    match found {
        Ok(path) => Ok(path),
        Err(CompareStop::Fatal(message)) => Err(CompareStop::Fatal(message)),
        Err(_) => {
            let name = &fused.rule.ops[op].name;
            log::warning(&format!(
                "[{name}] There is no right dump file for the op \"{name}\"."
            ));
            Ok(NAN.to_owned())
        }
    }
}

fn row(fused: &FusedComparison<'_>, ops: &[usize], op: usize, cells: [&str; 3]) -> Row {
    let rule = &fused.rule.ops[op];
    let (mine, golden) = match fused.rule.relation(ops) {
        OriginRelation::ToOne => {
            let originals = rule.originals.join(",");
            let golden = if originals.is_empty() {
                "*".to_owned()
            } else {
                originals
            };
            (rule.name.clone(), golden)
        }
        OriginRelation::ToMany | OriginRelation::L1 => fused.rule.joined_names(ops),
    };
    let mut row = vec![rule.index.to_string()];
    if fused.form.has_sequence {
        row.push(rule.sequence.to_string());
    }
    row.extend([rule.op_type.clone(), mine, golden]);
    row.extend(cells.map(str::to_owned));
    (rule.index, row)
}
