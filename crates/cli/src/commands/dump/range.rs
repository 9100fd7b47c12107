//! What `opscope dump --as` tells.

use std::io::Write;

use clap::ValueEnum;
use opscope_analysis::Element;
use opscope_capture::sink::RangeRow;
use opscope_tensor::DType;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::format;

/// A dtype that a model may be brought to.
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
    /// The dtypes of a list, each once.
    pub(crate) fn dtypes(list: &[NarrowFloat]) -> Vec<DType> {
        let is_first = |&(i, narrow): &(usize, &NarrowFloat)| !list[..i].contains(narrow);
        let distinct = list.iter().enumerate().filter(is_first);
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

/// What the run would lose in other dtypes.
pub(crate) struct Ranges {
    /// The dtypes asked for.
    pub(crate) targets: Vec<DType>,
    /// Every tensor that is wider than one of them, in order of execution.
    pub(crate) rows: Vec<RangeRow>,
}

impl Ranges {
    /// Whether anything would overflow.
    pub(crate) fn has_overflow(&self) -> bool {
        self.rows.iter().any(|row| row.loss.n_overflow > 0)
    }

    fn of(&self, target: DType) -> impl Iterator<Item = &RangeRow> {
        self.rows.iter().filter(move |row| row.target == target)
    }

    fn first_overflow(&self, target: DType) -> Option<&RangeRow> {
        self.of(target).find(|row| row.loss.n_overflow > 0)
    }

    /// The tensors that would lose something.
    pub(super) fn print_table(&self, out: &mut impl Write) -> Result<(), Failure> {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .filter(|row| loses(row))
            .map(cells)
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let header = [
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
        let right = [
            "step",
            "task",
            "overflow",
            "to zero",
            "subnormal",
            "largest",
        ];
        let table = format::table(&header, &right, rows).trim_fmt();
        writeln!(out, "{table}\n")?;
        Ok(())
    }

    /// One line for each dtype.
    pub(super) fn print_summary(&self, out: &mut impl Write) -> Result<(), Failure> {
        for &target in &self.targets {
            writeln!(
                out,
                "{:<18}{}",
                format!("as {target}"),
                self.summary(target)
            )?;
        }
        Ok(())
    }

    fn summary(&self, target: DType) -> String {
        let n_tensors = self.of(target).count() as u64;
        if n_tensors == 0 {
            return "no tensor is wider".to_owned();
        }
        let n_over = self
            .of(target)
            .filter(|row| row.loss.n_overflow > 0)
            .count();
        let Some(first) = self.first_overflow(target) else {
            let tensors = format::count(n_tensors, "tensor");
            return format!("nothing overflows in {tensors}");
        };
        let RangeRow {
            step,
            operator,
            loss,
            ..
        } = first;
        format!(
            "{n_over} of {} overflow, the first is {} `{}` {}, step {step}: {} of {}",
            format::count(n_tensors, "tensor"),
            operator.op_type,
            operator.op_name,
            slot(first),
            loss.n_overflow,
            format::count(loss.n_elements, "element"),
        )
    }

    /// All rows and the first overflow of each dtype.
    pub(super) fn to_json(&self) -> Value {
        let of_target = |&target: &DType| {
            let count = |is_counted: fn(&RangeRow) -> bool| {
                self.of(target).filter(|row| is_counted(row)).count()
            };
            json!({
                "as": target.name(),
                "tensors": count(|_| true),
                "tensors_overflow": count(|row| row.loss.n_overflow > 0),
                "tensors_underflow": count(|row| row.loss.n_underflow > 0),
                "tensors_subnormal": count(|row| row.loss.n_subnormal > 0),
                "first_overflow": self.first_overflow(target).map(row_json),
                "rows": self.of(target).map(row_json).collect::<Vec<_>>(),
            })
        };
        self.targets.iter().map(of_target).collect()
    }
}

fn loses(row: &RangeRow) -> bool {
    row.loss.n_overflow + row.loss.n_underflow + row.loss.n_subnormal > 0
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
            let value = Element::Float(largest.value).to_string();
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
