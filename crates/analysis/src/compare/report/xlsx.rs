//! A workbook: summary, operators, slots and what was skipped.

use std::io::{self, Write};

use rust_xlsxwriter::{
    Color, ConditionalFormatCell, ConditionalFormatCellRule, Format, Workbook, Worksheet, XlsxError,
};

use super::columns::{
    self, MetricColumns, N_OPERATOR_COLUMNS, OperatorRows, PATH_COLUMNS, ReportCell, SLOT_COLUMNS,
};
use super::words;
use crate::compare::result::Comparison;

/// Rows of a sheet below its header.
const N_ROWS_MAX: usize = 1_048_575;

/// Most UTF-16 units of a cell's text.
const N_UNITS_MAX: usize = 32_767;

/// Levels with their background and letters.
const COLOURS: [(&str, u32, u32); 4] = [
    // The first three are the colours of Excel's own styles for bad, neutral and good.
    ("fail", 0x00FF_C7CE, 0x009C_0006),
    ("warn", 0x00FF_EB9C, 0x009C_5700),
    ("pass", 0x00C6_EFCE, 0x0000_6100),
    ("skip", 0x00E4_E4E4, 0x0055_5555),
];

pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let bytes = workbook(comparison).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn workbook(comparison: &Comparison) -> Result<Vec<u8>, XlsxError> {
    let mut book = Workbook::new();
    summary(comparison, book.add_worksheet())?;
    let titles: Vec<String> = SLOT_COLUMNS.map(str::to_owned).to_vec();
    let rows = OperatorRows::for_comparison(comparison);
    let operators = words::fault_first(comparison).map(|operator| rows.of_operator(operator));
    table(
        &mut book,
        "Operators",
        &titles[..N_OPERATOR_COLUMNS],
        operators,
    )?;
    let metrics = MetricColumns::for_comparison(comparison);
    let paths = PATH_COLUMNS.map(str::to_owned);
    let titles: Vec<String> = titles
        .into_iter()
        .chain(metrics.titles())
        .chain(paths)
        .collect();
    let slots = words::fault_first(comparison).flat_map(|operator| {
        let metrics = &metrics;
        operator.slots.iter().map(move |slot| {
            let paths = [&slot.target.path, &slot.golden.path];
            let paths = paths.map(|path| columns::text(path.as_deref().unwrap_or_default()));
            let cells = rows.of_slot(operator, slot).into_iter();
            cells.chain(metrics.cells(slot)).chain(paths).collect()
        })
    });
    table(&mut book, "Slots", &titles, slots)?;
    let titles = [
        "side", "op_type", "op_name", "rank", "model", "step", "repeat", "slot", "reason",
        "message", "allowed", "path",
    ];
    let skips = comparison.skips.iter().map(|skip| {
        let name = skip.operator.clone().unwrap_or_default();
        let (cells, _) = columns::of_skip(skip);
        let mut row = vec![
            columns::text(skip.side.name()),
            columns::text(&name.op_type),
            columns::text(&name.op_name),
        ];
        row.extend_from_slice(&cells[5..9]);
        row.extend([
            skip.slot.map_or(ReportCell::Nothing, columns::slot_cell),
            columns::text(skip.reason.name()),
            columns::text(&skip.message),
            columns::text(if skip.is_allowed { "yes" } else { "no" }),
            columns::text(skip.path.as_deref().unwrap_or_default()),
        ]);
        row
    });
    table(&mut book, "Skipped", &titles.map(str::to_owned), skips)?;
    book.save_to_buffer()
}

fn summary(comparison: &Comparison, sheet: &mut Worksheet) -> Result<(), XlsxError> {
    sheet.set_name("Summary")?;
    sheet.set_column_width(0, 24)?.set_column_width(1, 100)?;
    let bold = Format::new().set_bold();
    for (row, (title, cell)) in (0..).zip(summary_rows(comparison)) {
        sheet.write_string_with_format(row, 0, title, &bold)?;
        put(sheet, row, 1, &cell)?;
    }
    colour(sheet, 1, (0, 0))
}

/// Titles and values of the first sheet.
fn summary_rows(comparison: &Comparison) -> Vec<(&str, ReportCell)> {
    let summary = &comparison.summary;
    let config = &comparison.config;
    let [operators, slots] = [summary.operators, summary.slots].map(|[pass, warn, fail, skip]| {
        ReportCell::Text(format!(
            "{pass} pass, {warn} warn, {fail} fail, {skip} skip"
        ))
    });
    let coverage = [summary.target_coverage, summary.golden_coverage];
    let [target_coverage, golden_coverage] = coverage
        .map(|[n, n_compared]| ReportCell::Text(format!("{n_compared} of {n} slots compared")));
    let at = |index: Option<usize>| {
        let operator = index.and_then(|index| comparison.operators.get(index));
        operator.map_or(ReportCell::Nothing, |operator| {
            ReportCell::Text(words::of_operator(operator))
        })
    };
    let mut rows = vec![
        ("level", columns::text(words::level(summary.level))),
        ("verdict", ReportCell::Text(words::verdict(comparison))),
        ("target", columns::text(&config.target)),
        ("golden", columns::text(&config.golden)),
        (
            "reference",
            columns::text(config.reference.as_deref().unwrap_or_default()),
        ),
        ("program", columns::text(&config.program)),
        ("operators", operators),
        ("slots", slots),
        ("target coverage", target_coverage),
        ("golden coverage", golden_coverage),
        ("bytes compared", ReportCell::Number(summary.n_bytes as f64)),
        ("skipped", ReportCell::Number(comparison.skips.len() as f64)),
        (
            "first warning",
            at(summary.first_divergence.as_ref().map(|d| d.operator)),
        ),
        (
            "first failure",
            at(summary.first_failure.as_ref().map(|d| d.operator)),
        ),
        ("first NaN or Inf", at(summary.first_non_finite)),
    ];
    for (name, value) in &config.options {
        rows.push((name, columns::text(value)));
    }
    rows
}

/// A sheet with a header that stays in sight; several, if it has more rows than fit one.
fn table(
    book: &mut Workbook,
    name: &str,
    titles: &[String],
    rows: impl Iterator<Item = Vec<ReportCell>>,
) -> Result<(), XlsxError> {
    let mut rows = rows.peekable();
    let mut number = 1;
    // A table without rows is a sheet all the same, so that every workbook has the same ones.
    loop {
        let sheet = book.add_worksheet();
        let name = if number == 1 {
            name.to_owned()
        } else {
            format!("{name} {number}")
        };
        sheet.set_name(name)?;
        sheet.set_freeze_panes(1, 0)?;
        let bold = Format::new().set_bold();
        for (column, title) in (0..).zip(titles) {
            sheet.write_string_with_format(0, column, title, &bold)?;
            let width = if title.ends_with("name") {
                32.0
            } else {
                title.len().clamp(8, 20) as f64
            };
            sheet.set_column_width(column, width)?;
        }
        let mut n_rows = 0;
        for cells in rows.by_ref().take(N_ROWS_MAX) {
            n_rows += 1;
            for (column, cell) in (0..).zip(&cells) {
                put(sheet, n_rows, column, cell)?;
            }
        }
        let last = u16::try_from(titles.len().saturating_sub(1)).unwrap_or(u16::MAX);
        sheet.autofilter(0, 0, n_rows, last)?;
        for (column, title) in (0..).zip(titles) {
            if title.ends_with("level") && n_rows > 0 {
                colour(sheet, column, (1, n_rows))?;
            }
        }
        if rows.peek().is_none() {
            return Ok(());
        }
        number += 1;
    }
}

/// Colours of levels in rows of a column.
fn colour(sheet: &mut Worksheet, column: u16, (first, last): (u32, u32)) -> Result<(), XlsxError> {
    for (level, background, letters) in COLOURS {
        let format = Format::new()
            .set_background_color(Color::RGB(background))
            .set_font_color(Color::RGB(letters));
        let rule = ConditionalFormatCell::new()
            .set_rule(ConditionalFormatCellRule::EqualTo(level))
            .set_format(format);
        sheet.add_conditional_format(first, column, last, column, &rule)?;
    }
    Ok(())
}

fn put(sheet: &mut Worksheet, row: u32, column: u16, cell: &ReportCell) -> Result<(), XlsxError> {
    match cell {
        ReportCell::Nothing => {}
        ReportCell::Text(text) => {
            sheet.write_string(row, column, fitting(text))?;
        }
        ReportCell::Number(value) if value.is_finite() => {
            sheet.write_number(row, column, *value)?;
        }
        // Sheets have no such numbers.
        ReportCell::Number(value) => {
            sheet.write_string(row, column, words::number(*value))?;
        }
    }
    Ok(())
}

/// A text that fits a cell; a longer one ends with an ellipsis.
fn fitting(text: &str) -> String {
    if text.encode_utf16().count() <= N_UNITS_MAX {
        return text.to_owned();
    }
    let mut n_units = 0;
    text.chars()
        .take_while(|c| {
            n_units += c.len_utf16();
            // One unit stays free for the ellipsis.
            n_units < N_UNITS_MAX
        })
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{N_UNITS_MAX, fitting};

    #[test]
    fn long_texts_are_cut_to_what_a_cell_holds() {
        for text in ["a".repeat(N_UNITS_MAX), String::new()] {
            assert_eq!(fitting(&text), text);
        }
        for letter in ["a", "😀"] {
            let cut = fitting(&letter.repeat(N_UNITS_MAX + 1));
            let n = cut.encode_utf16().count();
            assert!(
                cut.ends_with('…') && n <= N_UNITS_MAX && n > N_UNITS_MAX - 3,
                "{n}"
            );
        }
    }
}
