//! Prints the findings of `opscope dump --as`.

use std::io::Write;

use clap::ValueEnum;
use opscope_analysis::ElementValue;
use opscope_dump::{RangeReport, RangeRow, RangeRows, RangeTotal};
use opscope_tensor::DType;
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use super::pieces::{print_in_pieces, unreadable};
use crate::exit::CommandResult;
use crate::format;

/// A narrow dtype that a model may be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NarrowFloat {
    /// IEEE 754 binary16, up to 65504
    Float16,
    /// The range of float32 with 8 bits of precision
    Bfloat16,
    /// The finite variant, up to 448
    #[value(name = "float8_e4m3", alias = "float8_e4m3fn")]
    Float8E4M3,
    /// Up to 57344
    #[value(name = "float8_e5m2")]
    Float8E5M2,
}

impl NarrowFloat {
    /// The dtypes of a list without duplicates.
    pub(crate) fn dtypes(list: &[NarrowFloat]) -> Vec<DType> {
        let distinct = list
            .iter()
            .enumerate()
            .filter(|&(i, narrow)| !list[..i].contains(narrow));
        distinct.map(|(_, narrow)| narrow.dtype()).collect()
    }

    fn dtype(self) -> DType {
        match self {
            NarrowFloat::Float16 => DType::F16,
            NarrowFloat::Bfloat16 => DType::BF16,
            NarrowFloat::Float8E4M3 => DType::F8E4M3FN,
            NarrowFloat::Float8E5M2 => DType::F8E5M2,
        }
    }
}

/// Prints the losses that the run would have in narrow dtypes.
pub(super) struct RangePrinter<'a>(pub(super) &'a RangeReport);

impl RangePrinter<'_> {
    /// The tensors that would overflow. Nearly every model has small values, whose loss is harmless;
    /// a row for each such tensor would bury the overflows.
    pub(super) fn print_table(&self, out: &mut impl Write) -> CommandResult {
        const HEADER: [&str; 13] = [
            "step",
            "task",
            "type",
            "operator",
            "slot",
            "dtype",
            "shape",
            "as",
            "overflow",
            "to zero",
            "subnormal",
            "largest",
            "at",
        ];
        const RIGHT: [&str; 6] = [
            "step",
            "task",
            "overflow",
            "to zero",
            "subnormal",
            "largest",
        ];
        if !self.0.has_overflow() {
            return Ok(());
        }
        print_in_pieces(out, (&HEADER, &RIGHT), || {
            let rows = self.0.rows.iter().map_err(unreadable)?;
            // Keeps unreadable rows, so that their error ends the table.
            let rows = rows.filter(|row| row.as_ref().map_or(true, |row| row.loss.n_overflow > 0));
            Ok(rows.map(|row| row.map(|row| cells(&row))))
        })
    }

    /// One line for each dtype.
    pub(super) fn print_summary(&self, out: &mut impl Write) -> CommandResult {
        for (target, total) in &self.0.totals {
            writeln!(out, "{:<18}{}", format!("as {target}"), summary(total))?;
        }
        Ok(())
    }
}

impl Serialize for RangePrinter<'_> {
    /// All rows and the first overflow of each dtype, row by row.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.totals.len()))?;
        for (target, total) in &self.0.totals {
            list.serialize_element(&OfTarget {
                target: *target,
                total,
                rows: &self.0.rows,
            })?;
        }
        list.end()
    }
}

/// Totals for one dtype, with its rows.
struct OfTarget<'a> {
    target: DType,
    total: &'a RangeTotal,
    rows: &'a RangeRows,
}

impl Serialize for OfTarget<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let total = self.total;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("as", self.target.name())?;
        map.serialize_entry("tensors", &total.n_tensors)?;
        map.serialize_entry("tensors_overflow", &total.n_overflow)?;
        map.serialize_entry("tensors_underflow", &total.n_underflow)?;
        map.serialize_entry("tensors_subnormal", &total.n_subnormal)?;
        map.serialize_entry(
            "first_overflow",
            &total.first_overflow.as_ref().map(row_json),
        )?;
        map.serialize_entry("rows", &RowsOfTarget(self.target, self.rows))?;
        map.end()
    }
}

struct RowsOfTarget<'a>(DType, &'a RangeRows);

impl Serialize for RowsOfTarget<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for row in self.1.iter().map_err(S::Error::custom)? {
            let row = row.map_err(S::Error::custom)?;
            // The rows of all dtypes are in one file in execution order, which is re-read for each
            // dtype: sorting them would take memory that grows with the run.
            if row.target == self.0 {
                list.serialize_element(&row_json(&row))?;
            }
        }
        list.end()
    }
}

fn summary(total: &RangeTotal) -> String {
    if total.n_tensors == 0 {
        return "no tensor has a wider dtype".to_owned();
    }
    let tensors = format::count(total.n_tensors, "tensor");
    let small = small_losses(total);
    let Some(first) = &total.first_overflow else {
        return format!("nothing overflows in {tensors}{small}");
    };
    let RangeRow {
        step,
        operator,
        loss,
        ..
    } = first;
    format!(
        "{} of {tensors} overflow, the first is {} `{}` {}, step {step}: {} of {}{small}",
        total.n_overflow,
        operator.op_type,
        operator.op_name,
        slot(first),
        loss.n_overflow,
        format::count(loss.n_elements, "element"),
    )
}

/// The tensors that lose only small values, which the table does not list.
fn small_losses(total: &RangeTotal) -> String {
    let small = &total.of_small;
    if small.n_tensors == 0 {
        return String::new();
    }
    let others = if total.n_overflow > 0 { " more" } else { "" };
    let verb = if small.n_tensors == 1 {
        "loses"
    } else {
        "lose"
    };
    format!(
        "; {}{others} {verb} small values: {} to zero, {} to subnormal (`--json` lists them)",
        small.n_tensors,
        format::count(small.n_underflow, "element"),
        small.n_subnormal
    )
}

fn slot(row: &RangeRow) -> String {
    format!("{}.{}", row.side.name(), row.index)
}

fn cells(row: &RangeRow) -> Vec<String> {
    let loss = &row.loss;
    let largest = loss.largest.map_or_else(
        || ["-".to_owned(), "-".to_owned()],
        |largest| {
            let at = indices(row.shape.dims(), largest.index);
            let at: Vec<String> = at.iter().map(ToString::to_string).collect();
            let value = ElementValue::Float(largest.value).to_string();
            [value, format!("[{}]", at.join(","))]
        },
    );
    let mut cells = vec![
        row.step.to_string(),
        row.operator.task_id.to_string(),
        row.operator.op_type.clone(),
        row.operator.op_name.clone(),
        slot(row),
        row.dtype.to_string(),
        format::shape(row.shape.dims()),
        row.target.to_string(),
        loss.n_overflow.to_string(),
        loss.n_underflow.to_string(),
        loss.n_subnormal.to_string(),
    ];
    cells.extend(largest);
    cells
}

fn row_json(row: &RangeRow) -> Value {
    let loss = &row.loss;
    let dims = row.shape.dims();
    json!({
        "step": row.step,
        "task_id": row.operator.task_id,
        "op_type": row.operator.op_type,
        "op_name": row.operator.op_name,
        "slot": slot(row),
        "dtype": row.dtype.name(),
        "shape": dims,
        "elements": loss.n_elements,
        "overflow": loss.n_overflow,
        "underflow": loss.n_underflow,
        "subnormal": loss.n_subnormal,
        "non_finite": loss.n_non_finite,
        "largest": loss.largest.map(|largest| json!({
            "value": largest.value,
            "index": indices(dims, largest.index),
        })),
    })
}

/// The position of element `index` along each axis.
fn indices(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut found: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&dim| {
            // An empty tensor has no elements, and must not cause a division by zero.
            let dim = dim.max(1);
            let along = index % dim;
            index /= dim;
            along
        })
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_along_axes() {
        assert_eq!(indices(&[2, 3, 4], 23), [1, 2, 3]);
        assert_eq!(indices(&[2, 3, 4], 5), [0, 1, 1]);
        assert_eq!(indices(&[], 0), [] as [usize; 0]);
    }
}
