//! A row for each slot that was compared, those of the operator that the verdict names first, then
//! one for everything that was not.

use std::io::{self, Write};

use super::columns::{self, MetricColumns, OperatorRows, PATH_COLUMNS, ReportCell, SLOT_COLUMNS};
use super::words;
use crate::compare::result::{Comparison, Evidence};

pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let metrics = MetricColumns::for_comparison(comparison);
    let titles = SLOT_COLUMNS.map(str::to_owned).into_iter();
    let titles = titles
        .chain(metrics.titles())
        .chain(PATH_COLUMNS.map(str::to_owned));
    line(titles.map(ReportCell::Text), out)?;
    for row in rows(comparison, &metrics) {
        line(row.into_iter(), out)?;
    }
    Ok(())
}

/// The cells of each row.
pub(super) fn rows<'a>(
    comparison: &'a Comparison,
    metrics: &'a MetricColumns,
) -> impl Iterator<Item = Vec<ReportCell>> + 'a {
    let rows = OperatorRows::for_comparison(comparison);
    let of_slots = words::fault_first(comparison).flat_map(move |operator| {
        // The others have a separate skip, which is a row below.
        let compared = operator.slots.iter();
        let compared = compared.filter(|slot| slot.evidence != Evidence::None);
        compared.map(move |slot| {
            let paths = [&slot.target.path, &slot.golden.path];
            let paths = paths.map(|path| columns::text(path.as_deref().unwrap_or_default()));
            let cells = rows.of_slot(operator, slot).into_iter();
            cells.chain(metrics.cells(slot)).chain(paths).collect()
        })
    });
    let n_metrics = metrics.titles().count();
    let of_skips = comparison.skips.iter().map(move |skip| {
        let (cells, paths) = columns::of_skip(skip);
        let none = std::iter::repeat_n(ReportCell::Nothing, n_metrics);
        cells.into_iter().chain(none).chain(paths).collect()
    });
    of_slots.chain(of_skips)
}

fn line(cells: impl Iterator<Item = ReportCell>, out: &mut dyn Write) -> io::Result<()> {
    let mut is_first = true;
    for cell in cells {
        if !std::mem::take(&mut is_first) {
            out.write_all(b",")?;
        }
        match cell {
            ReportCell::Nothing => {}
            ReportCell::Text(text) => out.write_all(quoted(&text).as_bytes())?,
            // Rust writes the shortest digits that are read as the same number again.
            ReportCell::Number(value) if value.is_finite() => write!(out, "{value}")?,
            ReportCell::Number(value) => out.write_all(words::number(value).as_bytes())?,
        }
    }
    // RFC 4180 ends lines so.
    out.write_all(b"\r\n")
}

/// A text as a cell. One that a spreadsheet would take for a formula gets an apostrophe before it.
pub fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    let has_special = text.contains(['"', ',', '\n', '\r']);
    if has_special {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_are_no_formulas() {
        let cases = [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "'=1+1"),
            ("@a,\nb", "\"'@a,\nb\""),
        ];
        for (text, cell) in cases {
            assert_eq!(quoted(text), cell);
        }
    }

    #[test]
    fn numbers_are_whole() {
        let mut out = Vec::new();
        let cells = [0.1, 1e-7, f64::INFINITY, f64::NAN].map(ReportCell::Number);
        line(cells.into_iter().chain([ReportCell::Nothing]), &mut out).unwrap();
        assert_eq!(out, b"0.1,0.0000001,inf,nan,\r\n");
    }
}
