//! Report that `opscope dump` ends with.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use opscope_analysis::{ElementValue, overflow_words};
use opscope_capture::{Counters, DeliberateInfinities, FirstNonFinite, NonFiniteOrigin};
use opscope_dump::{RangeReport, StatsRow, StatsRows, non_finite_finding};
use opscope_store::temporary::LeftOvers;
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

use super::dump_report::DumpReport;
use super::pieces::{print_in_pieces, unreadable};
use super::range::RangePrinter;
use super::{dry_run, policy};
use crate::commands::next_line;
use crate::console::{self, line};
use crate::exit::{CommandFailure, CommandResult, PARTIAL};
use crate::format;

/// The JSON member with the statistics rows.
const STATS: &str = "stats";
/// The JSON member with losses in narrower dtypes.
const RANGES: &str = "ranges";
/// Shortest step without a dump whose ratio is printed.
const RATIO_FROM: Duration = Duration::from_millis(1);

/// Prints the closing table.
pub(crate) fn print(report: &DumpReport) -> CommandResult {
    if let Some(forecast) = &report.forecast {
        return dry_run::print(forecast, report);
    }
    let mut out = console::out();
    if let Some(rows) = &report.stats {
        print_stats(&mut out, rows)?;
    }
    if let Some(ranges) = &report.ranges {
        RangePrinter(ranges).print_table(&mut out)?;
    }
    let c = &report.summary.counters;
    let steps = format::count(report.n_steps, "step");
    line!(
        out,
        "{:<18}{} ({}, {steps})",
        if report.model.load.is_some() {
            "model"
        } else {
            "operator"
        },
        report.title,
        report.engine.name()
    )?;
    if c.n_steps_active < c.n_steps {
        line!(out, "steps dumped      {}", c.n_steps_active)?;
    }
    line!(out, "operators seen    {}", c.n_operators_seen)?;
    line!(out, "operators dumped  {}", c.n_operators_written)?;
    line!(
        out,
        "tensors           {} offered, {} selected, {} written, {} dropped, {} failed",
        c.n_offered,
        c.n_selected,
        c.n_written,
        c.n_dropped,
        c.n_failed
    )?;
    policy::print_losses(&mut out, c)?;
    print_amount(&mut out, report)?;
    line!(out, "time per step     {}", times(report))?;
    let first = report.summary.first_non_finite.as_ref();
    line!(
        out,
        "first NaN or Inf  {}",
        first.map_or_else(|| none_found(report), non_finite)
    )?;
    let wanted = &report.summary.deliberate_infinities;
    if wanted.n_operators > 0 {
        writeln!(out, "intended Inf      {}", deliberate(wanted))?;
    }
    if let Some(ranges) = &report.ranges {
        RangePrinter(ranges).print_summary(&mut out)?;
    }
    report.print_findings(&mut out)?;
    report.print_ring(&mut out)?;
    for (reason, n) in &report.refused {
        let tensors = format::count(*n, "tensor");
        line!(out, "left out          {tensors}: {reason}")?;
    }
    print_place(&mut out, report)
}

/// Prints where the dump is.
fn print_place(out: &mut impl Write, report: &DumpReport) -> CommandResult {
    if let Some(dir) = place(report) {
        line!(out, "dump              {}", dir.display())?;
    }
    Ok(())
}

/// The directory of the dump.
pub(crate) fn place(report: &DumpReport) -> Option<&Path> {
    if let Some(dir) = &report.tree_dir {
        return Some(dir);
    }
    let (first, last) = (report.dump_dirs.first()?, report.dump_dirs.last()?);
    if first == last {
        return Some(first);
    }
    Some(first.parent().unwrap_or(first))
}

/// Prints the command that shows the dump.
pub(crate) fn print_next(report: &DumpReport) -> CommandResult {
    let has_dump = report.summary.counters.n_written > 0 && report.forecast.is_none();
    if let Some(dir) = place(report).filter(|_| has_dump) {
        line!(console::out(), "{}", next_line("view", &[dir]))?;
    }
    Ok(())
}

/// Prints how much was written.
fn print_amount(out: &mut impl Write, report: &DumpReport) -> CommandResult {
    let c = &report.summary.counters;
    if report.has_rules {
        let (n, n_written) = (c.n_whole, c.n_written);
        line!(out, "whole tensors     {n} of {n_written}")?;
    }
    // Statistics alone write no files unless a directory was requested as well. In any other dump,
    // a line with zero files shows that nothing was written.
    let writes_nothing = report.stats.is_some() || report.ranges.is_some();
    if c.n_files > 0 || !writes_nothing {
        let n_files = format::count(c.n_files, "file");
        let n_bytes = format::bytes(c.n_bytes_written);
        match c.n_linked {
            0 => line!(out, "bytes             {n_bytes} in {n_files}")?,
            n => line!(
                out,
                "bytes             asked {}, wrote {n_bytes}; {n} of {n_files} are links",
                format::bytes(c.n_bytes_asked())
            )?,
        }
    }
    Ok(())
}

/// Prints one JSON object.
pub(crate) fn print_json(result: &Value) -> CommandResult {
    console::print_json(result)?;
    Ok(())
}

/// Prints the JSON object of a report without holding all of it in memory.
pub(crate) fn print_report_json(report: &DumpReport) -> CommandResult {
    // Passes text to the console in few large pieces.
    let mut out = BufWriter::new(console::json_out());
    let Value::Object(members) = report.to_json_without_rows() else {
        return Err(CommandFailure::new(
            PARTIAL,
            anyhow!("the result is not an object"),
        ));
    };
    let whole = WithRows {
        members: console::versioned(members),
        stats: report.stats.as_ref(),
        ranges: report.ranges.as_ref(),
    };
    serde_json::to_writer_pretty(&mut out, &whole)
        .map_err(|error| CommandFailure::new(PARTIAL, anyhow!(error)))?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// An object whose members `stats` and `ranges` are written row by row.
struct WithRows<'a> {
    members: Map<String, Value>,
    stats: Option<&'a StatsRows>,
    ranges: Option<&'a RangeReport>,
}

impl Serialize for WithRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, member) in &self.members {
            match (name.as_str(), self.stats, self.ranges) {
                (STATS, Some(rows), _) => map.serialize_entry(name, &StatsList(rows))?,
                (RANGES, _, Some(ranges)) => map.serialize_entry(name, &RangePrinter(ranges))?,
                _ => map.serialize_entry(name, member)?,
            }
        }
        map.end()
    }
}

/// The list of rows.
struct StatsList<'a>(&'a StatsRows);

impl Serialize for StatsList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for row in self.0.iter().map_err(S::Error::custom)? {
            let row = row.map_err(S::Error::custom)?;
            list.serialize_element(&stats_json(&row))?;
        }
        list.end()
    }
}

impl DumpReport {
    /// The report as a JSON object.
    pub(crate) fn to_json(&self) -> CommandResult<Value> {
        let mut result = self.to_json_without_rows();
        if let Some(rows) = &self.stats {
            result[STATS] = serde_json::to_value(StatsList(rows)).map_err(unwritable)?;
        }
        if let (Some(ranges), Some(place)) = (&self.ranges, result.get_mut(RANGES)) {
            *place = serde_json::to_value(RangePrinter(ranges)).map_err(unwritable)?;
        }
        Ok(result)
    }

    /// The report with null for statistics and ranges.
    fn to_json_without_rows(&self) -> Value {
        if let Some(forecast) = &self.forecast {
            let mut result = dry_run::to_json(forecast, self);
            if let Some(object) = result.as_object_mut() {
                self.engine.add_to(object);
            }
            return result;
        }
        let c = &self.summary.counters;
        let mut result = json!({
            "model": {
                "name": self.title,
                "graph": self.model.graph_name,
                "id": self.model.load,
                "device": self.model.device,
            },
            "steps": self.n_steps,
            "steps_dumped": c.n_steps_active,
            "operators_seen": c.n_operators_seen,
            "operators_dumped": c.n_operators_written,
            "records": records_json(c),
            "operators_skipped": c.n_operators_skipped,
            "ended_by_failure": self.summary.is_ended_by_failure,
            "files": c.n_files,
            "bytes_selected": c.n_bytes_selected,
            "files_linked": c.n_linked,
            "bytes_asked": c.n_bytes_asked(),
            "bytes_written": c.n_bytes_written,
            "seconds": self.time.as_secs_f64(),
            "seconds_per_step_without_dump": self.baseline.map(|time| time.as_secs_f64()),
            "first_non_finite": self.summary.first_non_finite.as_ref().map(non_finite_finding),
            "deliberate_infinities": {
                "operators": self.summary.deliberate_infinities.n_operators,
                "first": self.summary.deliberate_infinities.first.as_ref().map(non_finite_finding),
            },
            "dump_dirs": self.dump_dirs,
        });
        if let Some(object) = result.as_object_mut() {
            self.engine.add_to(object);
            if let Some(dir) = &self.tree_dir {
                object.insert("tree_dir".into(), json!(dir));
            }
            if self.tree_dir.is_some() || !self.refused.is_empty() {
                let refused = self.refused.iter();
                let refused = refused.map(|(reason, n)| json!({"reason": reason, "tensors": n}));
                object.insert("left_out".into(), refused.collect());
                object.insert("refused".into(), c.n_refused.into());
            }
            if self.stats.is_some() {
                // Placeholders, which `WithRows` or `to_json` fill.
                object.insert(STATS.into(), Value::Null);
            }
            if self.ranges.is_some() {
                object.insert(RANGES.into(), Value::Null);
            }
            if self.left_overs != LeftOvers::default() {
                let left_overs = self.left_overs;
                let left_overs = json!({
                    "removed_files": left_overs.n_files,
                    "removed_bytes": left_overs.n_bytes,
                    "kept_files": left_overs.n_kept,
                });
                object.insert("left_overs".into(), left_overs);
            }
            object.extend(self.finding_json().into_iter().chain(self.failure_json()));
            object.extend(self.ring_json());
        }
        result
    }
}

/// Counts of tensors by outcome.
fn records_json(c: &Counters) -> Value {
    json!({
        "offered": c.n_offered,
        "selected": c.n_selected,
        "written": c.n_written,
        "whole": c.n_whole,
        "dropped": c.n_dropped,
        "dropped_by": policy::reasons_json(c),
        "failed": c.n_failed,
    })
}

fn times(report: &DumpReport) -> String {
    let n_steps = u32::try_from(report.n_steps).unwrap_or(u32::MAX).max(1);
    let with = report.time / n_steps;
    let Some(without) = report.baseline else {
        return format!("{} with the dump", format::duration(with));
    };
    // A step of microseconds says nothing of real models: the files alone take a thousand times it.
    let ratio = if without < RATIO_FROM {
        String::new()
    } else {
        format!(" ({:.1}×)", with.as_secs_f64() / without.as_secs_f64())
    };
    format!(
        "{} with the dump, {} without{ratio}",
        format::duration(with),
        format::duration(without)
    )
}

/// Says that no NaN or Inf was found among the checked tensors.
fn none_found(report: &DumpReport) -> String {
    let c = &report.summary.counters;
    // Refused tensors count, because writers check each one before the sink refuses it.
    if c.n_written + c.n_refused == 0 {
        "not checked, as no tensor was dumped".to_owned()
    } else if c.n_dropped + c.n_failed > 0 {
        "none in the dumped tensors".to_owned()
    } else {
        "none".to_owned()
    }
}

fn non_finite(first: &FirstNonFinite) -> String {
    let FirstNonFinite {
        step,
        graph,
        op_type,
        op_name,
        side,
        index,
        element,
        dtype,
        counts,
        origin,
        ..
    } = first;
    let mut text = format!("{op_type} `{op_name}` {}.{index}", side.name());
    if let Some(element) = element {
        text += &format!("[{element}] = {}", non_finite_finding(first).value);
    }
    if *origin == NonFiniteOrigin::Computed && counts.n_nan == 0 {
        text += &dtype
            .and_then(|dtype| overflow_words(dtype, op_type, first.needed))
            .unwrap_or_default();
    }
    text += &format!(", step {step}");
    if !graph.is_empty() {
        text += &format!(", graph `{graph}`");
    }
    text += &format!(
        ": {} NaN, {} +Inf, {} -Inf",
        counts.n_nan, counts.n_pos_inf, counts.n_neg_inf
    );
    for (what, place) in [
        ("in", &first.call_site.module),
        ("at", &first.call_site.source),
    ] {
        if !place.is_empty() {
            text += &format!(", {what} {place}");
        }
    }
    text + match origin {
        // The line already names the operator that computed it.
        NonFiniteOrigin::Computed => "",
        NonFiniteOrigin::Given => "; already in an input or a constant that it reads",
        NonFiniteOrigin::Constant => "; it is a constant, or filled in by the operator",
        NonFiniteOrigin::Unknown => "; the dump does not show whether it was computed here",
    }
}

fn deliberate(found: &DeliberateInfinities) -> String {
    let n = format::count(found.n_operators, "operator");
    let first = found.first.as_ref().map(|first| {
        let FirstNonFinite {
            op_type,
            op_name,
            step,
            ..
        } = first;
        format!(", first {op_type} `{op_name}`, step {step}")
    });
    format!("in {n} as masks or constants{}", first.unwrap_or_default())
}

/// Prints the table of statistics in batches, so that memory does not grow with the rows.
fn print_stats(out: &mut impl Write, rows: &StatsRows) -> CommandResult {
    const HEADER: [&str; 13] = [
        "step", "task", "type", "operator", "slot", "dtype", "shape", "min", "max", "mean", "l2",
        "nan", "inf",
    ];
    const RIGHT: [&str; 8] = ["step", "task", "min", "max", "mean", "l2", "nan", "inf"];
    print_in_pieces(out, (&HEADER, &RIGHT), || {
        let rows = rows.iter().map_err(unreadable)?;
        Ok(rows.map(|row| row.map(|row| cells(&row))))
    })
}

fn cells(row: &StatsRow) -> Vec<String> {
    let mut cells = vec![
        row.step.to_string(),
        row.operator.task_id.to_string(),
        row.operator.op_type.clone(),
        row.operator.op_name.clone(),
        format!("{}.{}", row.side.name(), row.index),
        row.dtype.to_string(),
        format::shape(row.shape.dims()),
    ];
    match &row.stats {
        Some(s) => {
            let floats = [s.min, s.max, s.mean, s.l2];
            cells.extend(floats.map(|value| ElementValue::Float(value).to_string()));
            cells.push(s.counts.n_nan.to_string());
            cells.push((s.counts.n_pos_inf + s.counts.n_neg_inf).to_string());
        }
        None => cells.extend(std::iter::repeat_n("-".to_owned(), 6)),
    }
    cells
}

fn stats_json(row: &StatsRow) -> Value {
    json!({
        "step": row.step,
        "task_id": row.operator.task_id,
        "op_type": row.operator.op_type,
        "op_name": row.operator.op_name,
        "slot": format!("{}.{}", row.side.name(), row.index),
        "dtype": row.dtype.name(),
        "shape": row.shape.dims(),
        "stats": row.stats.as_ref().map(|s| json!({
            "min": format::json_number(s.min),
            "max": format::json_number(s.max),
            "mean": format::json_number(s.mean),
            "l2": format::json_number(s.l2),
            "nan": s.counts.n_nan,
            "pos_inf": s.counts.n_pos_inf,
            "neg_inf": s.counts.n_neg_inf,
        })),
    })
}

fn unwritable(error: serde_json::Error) -> CommandFailure {
    CommandFailure::new(PARTIAL, error)
}
