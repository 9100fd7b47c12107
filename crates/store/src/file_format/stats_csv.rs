//! The statistics file of AscendCL data dump: one CSV for each operator execution.
//!
//! `docs/formats/stats_csv.md` defines the columns and the rule of every cell. Two tables exist.
//! The plain one has a fixed set of columns and leaves the cells of unsupported types empty; the
//! other has the requested columns and writes `NA` instead.

mod cells;
mod names;
mod number;
mod parse;
pub mod step_table;
mod subject;

use std::fmt::Write;

use opscope_tensor::{Tensor, TensorObserver};

use crate::record::{Record, SlotSide};

use self::cells::{ElementOrder, StatsCells};
use self::number::general;

pub use self::parse::{FORMAT_NAME, StatsTable, may_be_table, parse, read_file, read_if_table};
pub use self::subject::StatsSubject;

/// Text that every header line begins with.
const DESCRIPTION: &str = "Input/Output,Index,Data Size,Data Type,Format,Shape";
/// Seven empty cells.
const NO_CELLS: &str = ",,,,,,";
/// How a file's name ends.
pub const FILE_NAME_SUFFIX: &str = ".csv";

/// Which columns follow dtype, layout and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsColumns {
    /// Maximum, minimum, average, count and the counts of what is not finite.
    Plain,
    /// The count and these, in the order of [`StatsColumn`]. Repetitions change nothing. The six of
    /// [`StatsColumns::Plain`] together are written in its order.
    Chosen(Vec<StatsColumn>),
}

/// A column that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsColumn {
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The arithmetic mean.
    Average,
    /// Number of NaN elements.
    NanCount,
    /// Number of elements that are `-inf`.
    NegativeInfCount,
    /// Number of elements that are `+inf`.
    PositiveInfCount,
    /// The square root of the sum of squares.
    L2Norm,
}

/// The columns of the plain table, the count left out.
const PLAIN: [StatsColumn; 6] = [
    StatsColumn::Max,
    StatsColumn::Min,
    StatsColumn::Average,
    StatsColumn::NanCount,
    StatsColumn::NegativeInfCount,
    StatsColumn::PositiveInfCount,
];

/// A cell after the description of the tensor.
#[derive(Clone, Copy)]
enum StatsCell {
    Count,
    Statistic(StatsColumn),
}

/// The whole text of the file of `record`: the header line, one line for each input, one for each
/// output. Positions are those among the operator's inputs and outputs, left out or not.
pub fn encode(record: &Record, columns: &StatsColumns) -> String {
    let cells = columns.cells();
    let mut text = DESCRIPTION.to_owned();
    for cell in &cells {
        text.push(',');
        text.push_str(cell.title());
    }
    text.push('\n');
    for (side, tensors) in [
        (SlotSide::Input, &record.inputs),
        (SlotSide::Output, &record.outputs),
    ] {
        for (index, tensor) in tensors {
            row(&mut text, side, *index, tensor, columns, &cells);
        }
    }
    text
}

/// Computes a row's statistics of the elements of `tensor`, if one pass is enough, and leaves them
/// in the tensor's memo; [`encode`] then works without the elements.
///
/// Returns `false` for a long tensor whose average can only be had element after element: that
/// takes many times as long as everything else, and [`encode`] does it where no model waits.
pub fn reduce(tensor: TensorObserver<'_>, columns: &StatsColumns) -> bool {
    reduce_in(tensor, columns, ElementOrder::RowMajor)
}

/// [`reduce`] of elements that lie side by side in another order than row-major, the first one
/// first. Returns `false` where the row depends on their order; the memo is of no use then.
pub fn reduce_permuted(tensor: TensorObserver<'_>, columns: &StatsColumns) -> bool {
    reduce_in(tensor, columns, ElementOrder::Permuted)
}

/// Computes, for tensors that [`reduce`] has left, what needs all of their elements one after the
/// other, and leaves it in their memos. For several tensors it takes hardly longer than for the
/// longest of them.
pub fn reduce_together(tensors: &[TensorObserver<'_>], columns: &StatsColumns) {
    cells::reduce_together(tensors, *columns != StatsColumns::Plain);
}

fn reduce_in(tensor: TensorObserver<'_>, columns: &StatsColumns, order: ElementOrder) -> bool {
    match columns {
        StatsColumns::Plain => cells::reduce_plain(tensor, order),
        StatsColumns::Chosen(_) => cells::reduce_any(tensor, order),
    }
}

fn row(
    text: &mut String,
    side: SlotSide,
    index: usize,
    tensor: &Tensor,
    columns: &StatsColumns,
    cells: &[StatsCell],
) {
    let is_plain = *columns == StatsColumns::Plain;
    let side = match side {
        SlotSide::Input => "Input",
        SlotSide::Output => "Output",
    };
    let (dtype, layout) = if is_plain {
        (
            names::plain_dtype(tensor.dtype()),
            names::plain_layout(tensor.layout()),
        )
    } else {
        (names::dtype(tensor.dtype()), names::layout(tensor.layout()))
    };
    let n_bytes = tensor.n_bytes();
    let shape = shape_text(tensor.shape());
    // Writing to a string cannot fail.
    let _ = write!(text, "{side},{index},{n_bytes},{dtype},{layout},{shape},");
    if is_plain {
        match &*cells::plain(tensor.observed()) {
            Some(computed) => push_cells(text, cells, computed.n_elements, Some(computed)),
            None => text.push_str(NO_CELLS),
        }
    } else {
        let computed = &cells::any(tensor.observed()).0;
        // The vendor's table of choices counts by the shape, even where nothing can be computed.
        let n_elements = tensor.shape().n_elements() as u64;
        push_cells(text, cells, n_elements, computed.as_ref());
    }
    text.push('\n');
}

fn push_cells(
    text: &mut String,
    cells: &[StatsCell],
    n_elements: u64,
    computed: Option<&StatsCells>,
) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        match (cell, computed) {
            (StatsCell::Count, _) => text.push_str(&n_elements.to_string()),
            (StatsCell::Statistic(_), None) => text.push_str("NA"),
            (StatsCell::Statistic(column), Some(computed)) => {
                text.push_str(&computed.text(*column));
            }
        }
    }
}

fn shape_text(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "-".to_owned();
    }
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join("x")
}

impl StatsColumns {
    /// The cells that follow the description, in order.
    fn cells(&self) -> Vec<StatsCell> {
        let mut chosen = match self {
            StatsColumns::Plain => PLAIN.to_vec(),
            StatsColumns::Chosen(columns) => columns.clone(),
        };
        chosen.sort_unstable();
        chosen.dedup();
        // The vendor's table of choices begins with the count, unless the choice is its default
        // set.
        let count_at = if chosen == PLAIN { 3 } else { 0 };
        let mut cells: Vec<StatsCell> = chosen.into_iter().map(StatsCell::Statistic).collect();
        cells.insert(count_at, StatsCell::Count);
        cells
    }
}

impl StatsCell {
    fn title(self) -> &'static str {
        match self {
            StatsCell::Count => "Count",
            StatsCell::Statistic(StatsColumn::Max) => "Max Value",
            StatsCell::Statistic(StatsColumn::Min) => "Min Value",
            StatsCell::Statistic(StatsColumn::Average) => "Avg Value",
            StatsCell::Statistic(StatsColumn::NanCount) => "Nan Count",
            StatsCell::Statistic(StatsColumn::NegativeInfCount) => "Negative Inf Count",
            StatsCell::Statistic(StatsColumn::PositiveInfCount) => "Positive Inf Count",
            StatsCell::Statistic(StatsColumn::L2Norm) => "l2norm",
        }
    }
}

impl StatsCells {
    fn text(&self, column: StatsColumn) -> String {
        match column {
            StatsColumn::Max => self.max.to_string(),
            StatsColumn::Min => self.min.to_string(),
            StatsColumn::Average => general(self.average),
            StatsColumn::NanCount => self.n_nan.to_string(),
            StatsColumn::NegativeInfCount => self.n_neg_inf.to_string(),
            StatsColumn::PositiveInfCount => self.n_pos_inf.to_string(),
            StatsColumn::L2Norm => general(self.l2),
        }
    }
}

#[cfg(test)]
mod tests;
