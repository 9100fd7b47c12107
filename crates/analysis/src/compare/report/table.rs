//! The rows of the CSV report as columns in memory, for tables of other libraries.

use super::columns::{MetricColumns, PATH_COLUMNS, ReportCell, SLOT_COLUMNS};
use super::csv;
use crate::compare::result::Comparison;

/// Columns of slots that count something.
const COUNTED: [&str; 4] = ["index", "rank", "step", "repeat"];
/// Those that are other numbers.
const MEASURED: [&str; 4] = ["likeness", "inputs_error", "outputs_error", "added_error"];

/// A column with all its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportColumn {
    /// The title, as in the CSV report.
    pub name: String,
    /// One cell for each row.
    pub cells: ReportCells,
}

/// The cells of a column, any of which may be empty.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportCells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Other numbers, which need not be finite.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl ReportCells {
    fn add(&mut self, cell: ReportCell) {
        match (self, cell) {
            // Ranks, steps and positions are far below the numbers that a float has no place for.
            (ReportCells::Int(cells), ReportCell::Number(number)) => {
                cells.push(Some(number as i64))
            }
            (ReportCells::Number(cells), ReportCell::Number(number)) => cells.push(Some(number)),
            (ReportCells::Text(cells), ReportCell::Text(text)) => cells.push(Some(text)),
            (ReportCells::Int(cells), _) => cells.push(None),
            (ReportCells::Number(cells), _) => cells.push(None),
            (ReportCells::Text(cells), _) => cells.push(None),
        }
    }
}

/// The columns of a comparison: a row for each slot that was compared, then one for everything that was not.
pub fn columns(comparison: &Comparison) -> Vec<ReportColumn> {
    let metrics = MetricColumns::for_comparison(comparison);
    let of_slots = SLOT_COLUMNS.into_iter().map(|name| ReportColumn {
        name: name.to_owned(),
        cells: if COUNTED.contains(&name) {
            ReportCells::Int(Vec::new())
        } else if MEASURED.contains(&name) {
            ReportCells::Number(Vec::new())
        } else {
            ReportCells::Text(Vec::new())
        },
    });
    let measured = metrics.titles().map(|name| ReportColumn {
        name,
        cells: ReportCells::Number(Vec::new()),
    });
    let paths = PATH_COLUMNS.into_iter().map(|name| ReportColumn {
        name: name.to_owned(),
        cells: ReportCells::Text(Vec::new()),
    });
    let mut columns: Vec<ReportColumn> = of_slots.chain(measured).chain(paths).collect();
    for row in csv::rows(comparison, &metrics) {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.cells.add(cell);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_type_of_their_column() {
        let mut cells = ReportCells::Int(Vec::new());
        cells.add(ReportCell::Number(7.0));
        cells.add(ReportCell::Nothing);
        assert_eq!(cells, ReportCells::Int(vec![Some(7), None]));
        let mut cells = ReportCells::Text(Vec::new());
        cells.add(ReportCell::Text("=1".to_owned()));
        cells.add(ReportCell::Nothing);
        assert_eq!(cells, ReportCells::Text(vec![Some("=1".to_owned()), None]));
        let mut cells = ReportCells::Number(Vec::new());
        cells.add(ReportCell::Number(f64::INFINITY));
        assert_eq!(cells, ReportCells::Number(vec![Some(f64::INFINITY)]));
    }

    #[test]
    fn columns_without_rows_are_those_of_the_report() {
        let comparison = Comparison::default();
        let mut text = Vec::new();
        super::super::write(&comparison, super::super::ReportFormat::Csv, &mut text).unwrap();
        let titles: Vec<String> = columns(&comparison)
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(String::from_utf8(text).unwrap(), titles.join(",") + "\r\n");
    }
}
