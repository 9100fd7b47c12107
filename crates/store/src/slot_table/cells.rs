//! Rows as columns in memory, for tables of other libraries.

use std::sync::Arc;

use super::SlotRow;
use super::columns::{ALL, CellKind};

/// A column with all its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    /// The name.
    pub name: &'static str,
    /// One cell for each row.
    pub cells: RowCells,
}

/// The cells of a column; any may be empty.
#[derive(Clone, Debug, PartialEq)]
pub enum RowCells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Other numbers.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<Arc<str>>>),
    /// Non-empty lists of whole numbers.
    Extents(Vec<Option<Arc<[i64]>>>),
}

/// All columns in the order of files. Texts and lists are moved out of the rows, which can be
/// dropped then. Without rows the columns still have their names and kinds.
pub fn take_columns(rows: &mut [SlotRow]) -> Vec<RowColumn> {
    let columns = ALL.iter().map(|column| {
        let cells = match column.cell {
            CellKind::Int(place) => RowCells::Int(rows.iter_mut().map(|row| *place(row)).collect()),
            CellKind::Count(nth) => {
                RowCells::Int(rows.iter().map(|row| row.statistics.counts[nth]).collect())
            }
            CellKind::Number(nth) => {
                RowCells::Number(rows.iter().map(|row| row.statistics.numbers[nth]).collect())
            }
            CellKind::Text(place) => {
                RowCells::Text(rows.iter_mut().map(|row| place(row).take()).collect())
            }
            CellKind::Shape => {
                RowCells::Extents(rows.iter_mut().map(|row| row.shape.take()).collect())
            }
        };
        RowColumn {
            name: column.name,
            cells,
        }
    });
    columns.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot_table::column_names;

    #[test]
    fn columns_have_the_cells_of_their_rows() {
        let row = SlotRow {
            step: Some(3),
            op_name: Some("relu".into()),
            shape: Some([2, 0].into()),
            ..SlotRow::default()
        };
        let mut rows = [row, SlotRow::default()];
        rows[1].statistics.counts[0] = Some(7);
        rows[1].statistics.numbers[1] = Some(-0.5);
        let columns = take_columns(&mut rows);
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        assert_eq!(names, column_names());
        let check = |name: &str, expected: RowCells| {
            let found = columns.iter().find(|column| column.name == name).unwrap();
            assert_eq!(found.cells, expected, "{name}");
        };
        check("step", RowCells::Int(vec![Some(3), None]));
        check("op_name", RowCells::Text(vec![Some("relu".into()), None]));
        check("shape", RowCells::Extents(vec![Some([2, 0].into()), None]));
        check("n_nan", RowCells::Int(vec![None, Some(7)]));
        check("max", RowCells::Number(vec![None, Some(-0.5)]));
        let kinds = take_columns(&mut []);
        assert_eq!(kinds.len(), columns.len());
    }
}
