//! Tables as comma-separated text.

use super::stop::CompareStop;

/// Characters that start a formula in spreadsheets.
const FORMULA_STARTS: [char; 8] = ['＝', '＋', '－', '+', '-', '=', '%', '@'];

/// The text of a table, lines ended by CR and LF, cells quoted if necessary.
pub(super) fn text(
    header: &[String],
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
) -> Result<String, CompareStop> {
    check(header)?;
    let mut text = String::new();
    push_line(&mut text, header);
    for row in rows {
        push_line(&mut text, row.as_ref());
    }
    Ok(text)
}

fn push_line(text: &mut String, cells: &[String]) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        if cell.contains([',', '"', '\r', '\n']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push_str("\r\n");
}

/// Refuses cells that a spreadsheet would run as a formula.
pub(super) fn check(cells: &[String]) -> Result<(), CompareStop> {
    match cells.iter().find(|cell| is_formula(cell)) {
        None => Ok(()),
        Some(cell) => Err(CompareStop::Fatal(format!(
            "Malicious value is not allowed to be written to the csv: {cell}"
        ))),
    }
}

fn is_formula(cell: &str) -> bool {
    let has_start = starts_formula(cell)
        || cell
            .match_indices(';')
            .any(|(i, _)| starts_formula(&cell[i + 1..]));
    has_start && !is_number(cell)
}

/// Whether a text begins like a formula.
fn starts_formula(text: &str) -> bool {
    text.starts_with(FORMULA_STARTS)
}

/// Whether Python's `float` accepts a text.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    let digits = text.trim_start_matches(['+', '-']);
    let is_word = ["inf", "infinity", "nan"]
        .iter()
        .any(|word| digits.eq_ignore_ascii_case(word));
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.len() - digits.len() <= 1 && (is_word || (is_plain && text.parse::<f64>().is_ok()))
}

/// The local time for file names, `YYYYmmddHHMMSS`.
pub(super) fn time() -> String {
    opscope_store::clock::local()
        .strftime("%Y%m%d%H%M%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        let row = ["a,b", "say \"x\"", "", "plain"].map(str::to_owned);
        let text = text(&["h".to_owned()], [row]).unwrap();
        assert_eq!(text, "h\r\n\"a,b\",\"say \"\"x\"\"\",,plain\r\n");
    }

    #[test]
    fn formulas_are_refused() {
        for (cell, expected) in [
            ("-1.5", false),
            ("-inf", false),
            ("+nan", false),
            ("--1", true),
            ("-x", true),
            ("=1", true),
            ("a;-b", true),
            ("(0.1;2.0),(0.1;2.0)", false),
            ("(-0.1;2.0)", false),
            ("＋1", true),
            ("", false),
            ("%08", true),
        ] {
            assert_eq!(is_formula(cell), expected, "{cell}");
        }
    }
}
