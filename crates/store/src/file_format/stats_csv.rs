//! The statistics file of AscendCL data dump: one CSV for each operator execution.
//!
//! `docs/formats/stats_csv.md` gives the columns and the rule of every cell. Two tables exist. The
//! plain one has a fixed set of columns and leaves the cells of types it does not know empty; the
//! other has the columns that were asked for and says `NA` instead.

mod cells;
mod names;
mod number;
mod parse;
pub mod step_table;
mod subject;

use std::fmt::Write;

use opscope_tensor::{Tensor, TensorObserver};

use crate::record::{Record, Side};

use self::cells::{Cells, ElementOrder};
use self::number::general;

pub use self::parse::{FORMAT_NAME, Table, may_be_table, parse, read_file, read_if_table};
pub use self::subject::Subject;

/// Text that every header line begins with.
const DESCRIPTION: &str = "Input/Output,Index,Data Size,Data Type,Format,Shape";
/// Stands for seven cells that are empty.
const NO_CELLS: &str = ",,,,,,";
/// How a file's name ends.
pub const FILE_NAME_SUFFIX: &str = ".csv";

/// Which columns follow dtype, layout and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Maximum, minimum, average, count and the counts of what is not finite.
    Plain,
    /// The count and these, in the order of [`Column`]. Repetitions change nothing. The six of
    /// [`Columns::Plain`] together are written in its order.
    Chosen(Vec<Column>),
}

/// A column that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
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
const PLAIN: [Column; 6] = [
    Column::Max,
    Column::Min,
    Column::Average,
    Column::NanCount,
    Column::NegativeInfCount,
    Column::PositiveInfCount,
];

/// A cell after the description of the tensor.
#[derive(Clone, Copy)]
enum Cell {
    Count,
    Statistic(Column),
}

/// The whole text of the file of `record`: the header line, one line for each input, one for each
/// output. Positions are counted through the record, so that they agree with its tensor file.
pub fn encode(record: &Record, columns: &Columns) -> String {
    let cells = columns.cells();
    let mut text = DESCRIPTION.to_owned();
    for cell in &cells {
        text.push(',');
        text.push_str(cell.title());
    }
    text.push('\n');
    for (side, tensors) in [
        (Side::Input, &record.inputs),
        (Side::Output, &record.outputs),
    ] {
        for (index, (_, tensor)) in tensors.iter().enumerate() {
            row(&mut text, side, index, tensor, columns, &cells);
        }
    }
    text
}

/// Computes what a row of the table says about the elements of `tensor`, if one look at them tells it, and
/// leaves it in the tensor's memo; [`encode`] does without the elements then.
///
/// Returns `false` for a long tensor whose average can only be had element after element: that takes
/// many times as long as everything else, and [`encode`] does it where no model waits.
pub fn reduce(tensor: TensorObserver<'_>, columns: &Columns) -> bool {
    reduce_in(tensor, columns, ElementOrder::RowMajor)
}

/// [`reduce`] of elements that lie side by side in another order than row-major, the first one first.
/// Returns `false` where the row depends on their order; the memo is of no use then.
pub fn reduce_permuted(tensor: TensorObserver<'_>, columns: &Columns) -> bool {
    reduce_in(tensor, columns, ElementOrder::Permuted)
}

/// Computes, for tensors that [`reduce`] has left, what needs all of their elements one after the other,
/// and leaves it in their memos. For several tensors it takes hardly longer than for the longest of them.
pub fn reduce_together(tensors: &[TensorObserver<'_>], columns: &Columns) {
    cells::reduce_together(tensors, *columns != Columns::Plain);
}

fn reduce_in(tensor: TensorObserver<'_>, columns: &Columns, order: ElementOrder) -> bool {
    match columns {
        Columns::Plain => cells::reduce_plain(tensor, order),
        Columns::Chosen(_) => cells::reduce_any(tensor, order),
    }
}

fn row(
    text: &mut String,
    side: Side,
    index: usize,
    tensor: &Tensor,
    columns: &Columns,
    cells: &[Cell],
) {
    let is_plain = *columns == Columns::Plain;
    let side = match side {
        Side::Input => "Input",
        Side::Output => "Output",
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
        let n_elements = tensor.shape().n_elements() as u64;
        push_cells(text, cells, n_elements, computed.as_ref());
    }
    text.push('\n');
}

fn push_cells(text: &mut String, cells: &[Cell], n_elements: u64, computed: Option<&Cells>) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        match (cell, computed) {
            (Cell::Count, _) => text.push_str(&n_elements.to_string()),
            (Cell::Statistic(_), None) => text.push_str("NA"),
            (Cell::Statistic(column), Some(computed)) => text.push_str(&computed.text(*column)),
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

impl Columns {
    /// The cells that follow the description, in order.
    fn cells(&self) -> Vec<Cell> {
        let mut chosen = match self {
            Columns::Plain => PLAIN.to_vec(),
            Columns::Chosen(columns) => columns.clone(),
        };
        chosen.sort_unstable();
        chosen.dedup();
        let count_at = if chosen == PLAIN { 3 } else { 0 };
        let mut cells: Vec<Cell> = chosen.into_iter().map(Cell::Statistic).collect();
        cells.insert(count_at, Cell::Count);
        cells
    }
}

impl Cell {
    fn title(self) -> &'static str {
        match self {
            Cell::Count => "Count",
            Cell::Statistic(Column::Max) => "Max Value",
            Cell::Statistic(Column::Min) => "Min Value",
            Cell::Statistic(Column::Average) => "Avg Value",
            Cell::Statistic(Column::NanCount) => "Nan Count",
            Cell::Statistic(Column::NegativeInfCount) => "Negative Inf Count",
            Cell::Statistic(Column::PositiveInfCount) => "Positive Inf Count",
            Cell::Statistic(Column::L2Norm) => "l2norm",
        }
    }
}

impl Cells {
    fn text(&self, column: Column) -> String {
        match column {
            Column::Max => self.max.to_string(),
            Column::Min => self.min.to_string(),
            Column::Average => general(self.average),
            Column::NanCount => self.n_nan.to_string(),
            Column::NegativeInfCount => self.n_neg_inf.to_string(),
            Column::PositiveInfCount => self.n_pos_inf.to_string(),
            Column::L2Norm => general(self.l2),
        }
    }
}

#[cfg(test)]
mod tests;
