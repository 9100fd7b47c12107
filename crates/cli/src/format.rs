//! Numbers and tables for people.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;

use crate::console;

/// Bytes in decimal units with three significant digits.
pub(crate) fn bytes(n: u64) -> String {
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    for unit in ["kB", "MB", "GB", "TB"] {
        value /= 1000.0;
        // 999.5 and more would round to four digits.
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
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let n_decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.n_decimals$} {unit}")
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// Extents as `2x3`, or `scalar`.
pub(crate) fn shape<T: ToString>(dims: &[T]) -> String {
    if dims.is_empty() {
        return "scalar".into();
    }
    dims.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("x")
}

/// A number for JSON, which has no NaN and no infinities: those become text.
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

/// A plain table; columns listed in `right` are aligned to the right.
pub(crate) fn table(header: &[&str], right: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(console::shown));
    let cells = |row: Vec<String>| row.into_iter().map(console::shown).collect::<Vec<_>>();
    table.add_rows(rows.into_iter().map(cells));
    for (i, name) in header.iter().enumerate() {
        if let Some(column) = table.column_mut(i) {
            column.set_padding((0, 2));
            if right.contains(name) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
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
}
