//! Formatting of numbers and tables.

use std::time::Duration;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::console;

/// Spaces after each column.
const PADDING: u16 = 2;

/// Bytes in decimal units with three significant digits.
pub(crate) fn bytes(n: u64) -> String {
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    for unit in ["kB", "MB", "GB", "TB"] {
        value /= 1000.0;
        // Values from 999.5 would round to four digits.
        if value < 999.5 || unit == "TB" {
            let n_decimals = if value < 9.995 {
                2
            } else {
                usize::from(value < 99.95)
            };
            return format!("{value:.n_decimals$} {unit}");
        }
    }
    unreachable!("the last unit always fits")
}

/// A duration with three significant digits.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    // Runs below a microsecond still print as fractions of one; the clock resolves no less.
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    // These limits are where rounding would add a digit: 9.995 prints as 10.0, and 99.95 as 100.
    let n_decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.n_decimals$} {unit}")
}

/// A number with a singular or plural noun.
pub(crate) fn count_as(n: u64, [one, several]: [&str; 2]) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {several}"),
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// A shape as `2x3`, or `scalar`.
pub(crate) fn shape<T: ToString>(dims: &[T]) -> String {
    if dims.is_empty() {
        return "scalar".into();
    }
    dims.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("x")
}

/// A number for JSON; NaN and infinities, which JSON lacks, become text.
pub(crate) fn json_number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(
        || {
            let text = if value.is_nan() {
                "nan"
            } else if value > 0.0 {
                "inf"
            } else {
                "-inf"
            };
            Value::from(text)
        },
        Value::Number,
    )
}

/// A plain table; columns listed in `right` are right-aligned.
pub(crate) fn table(header: &[&str], right: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    // Titles may come from a file too, as in a table of statistics.
    table.set_header(header.iter().map(console::escaped));
    table.add_rows(rows.into_iter().map(shown_cells));
    laid_out(table, header, right)
}

fn shown_cells(row: Vec<String>) -> Vec<String> {
    row.into_iter().map(console::escaped).collect()
}

fn laid_out(mut table: Table, names: &[&str], right: &[&str]) -> Table {
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    for (i, name) in names.iter().enumerate() {
        if let Some(column) = table.column_mut(i) {
            // Without left padding a line begins with its first cell; `trim_fmt` removes trailing
            // blanks.
            column.set_padding((0, PADDING));
            if right.contains(name) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
}

/// A table printed in batches, with columns wide enough for all of them.
pub(crate) struct TableInPieces<'a> {
    header: &'a [&'a str],
    right: &'a [&'a str],
    widths: Vec<usize>,
    is_begun: bool,
}

impl<'a> TableInPieces<'a> {
    /// A table with columns as wide as the header; those listed in `right` are right-aligned.
    pub(crate) fn new(header: &'a [&'a str], right: &'a [&'a str]) -> TableInPieces<'a> {
        TableInPieces {
            header,
            right,
            widths: header.iter().map(|name| width(name)).collect(),
            is_begun: false,
        }
    }

    /// Widens columns for rows. All rows must be passed before the first batch is printed.
    pub(crate) fn widen(&mut self, rows: Vec<Vec<String>>) {
        for row in rows {
            for (widest, cell) in self.widths.iter_mut().zip(shown_cells(row)) {
                *widest = width(&cell).max(*widest);
            }
        }
    }

    /// The next rows, after the header if they are the first.
    pub(crate) fn piece(&mut self, rows: Vec<Vec<String>>) -> String {
        let header = (!std::mem::replace(&mut self.is_begun, true))
            .then(|| self.header.iter().map(console::escaped).collect());
        let rows: Vec<Vec<String>> = rows.into_iter().map(shown_cells).collect();
        // Single-line rows, the bulk of a large dump, need no table layout.
        if !header
            .iter()
            .chain(&rows)
            .any(|cells| cells.iter().any(|cell| cell.contains(['\n', '\r'])))
        {
            let lines = header.iter().chain(&rows).map(|cells| self.line(cells));
            return lines.collect::<Vec<_>>().join("\n");
        }
        let mut table = Table::new();
        if let Some(header) = header {
            table.set_header(header);
        }
        table.add_rows(rows);
        let mut table = laid_out(table, self.header, self.right);
        for (i, width) in self.widths.iter().enumerate() {
            if let Some(column) = table.column_mut(i) {
                // The library includes padding in a column's width.
                let width = u16::try_from(*width).unwrap_or(u16::MAX);
                let width = Width::Fixed(width.saturating_add(PADDING));
                column.set_constraint(ColumnConstraint::Absolute(width));
            }
        }
        table.trim_fmt()
    }

    /// A line of single-line cells, laid out as the library does.
    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for ((cell, widest), name) in cells.iter().zip(&self.widths).zip(self.header) {
            let blanks = " ".repeat(widest.saturating_sub(width(cell)));
            let is_right = self.right.contains(name);
            let (before, behind) = if is_right {
                (&blanks[..], "")
            } else {
                ("", &blanks[..])
            };
            line.extend([before, cell, behind, "  "]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Terminal columns of a cell's widest line.
fn width(cell: &str) -> usize {
    let lines = cell.lines().map(UnicodeWidthStr::width);
    lines.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (5_000_000_000_000_000, "5000 TB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(duration(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(duration(Duration::from_secs(100)), "100 s");
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "file"), "0 files");
    }

    /// A table in batches equals one printed at once.
    #[test]
    fn a_table_in_pieces() {
        let (header, right) = (["n", "a name", "text"], ["n"]);
        let row = |n: usize| vec![n.to_string(), "ä界".repeat(n % 7), "x\ny".repeat(n % 3)];
        let rows: Vec<Vec<String>> = (0..50).map(|n| row(n * n)).collect();
        let whole = table(&header, &right, rows.clone()).trim_fmt();
        for n_at_once in [1, 7, 50, 100] {
            let mut table = TableInPieces::new(&header, &right);
            let pieces = || rows.chunks(n_at_once).map(<[_]>::to_vec);
            pieces().for_each(|piece| table.widen(piece));
            let pieces: Vec<String> = pieces().map(|piece| table.piece(piece)).collect();
            assert_eq!(pieces.join("\n"), whole, "{n_at_once}");
        }
    }
}
