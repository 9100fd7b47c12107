//! Answers, as DuckDB writes them and as they are printed.

use std::io::{self, BufRead, Write};

use serde_json::Value;

use super::AnswerFormat;
use super::quoting::identifier;
use super::script::{copied, query};
use crate::console::line;
use crate::format;

/// A missing value in a printed table.
const MISSING: &str = "NULL";
/// DuckDB's names of numeric types; decimals append their digits.
const NUMBERS: &[&str] = &[
    "BIGINT",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "HUGEINT",
    "INTEGER",
    "SMALLINT",
    "TINYINT",
    "UBIGINT",
    "UHUGEINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
];
/// Types that Parquet lacks: DuckDB would write the nearest `double`.
const BEYOND_PARQUET: &[&str] = &["HUGEINT", "UHUGEINT"];
/// Numbers that JSON lacks, as DuckDB writes them, with their replacement texts.
const NOT_FINITE: [(&str, &str); 3] = [("NaN", "nan"), ("-Infinity", "-inf"), ("Infinity", "inf")];

/// The columns of an answer with their types.
pub(super) struct AnswerColumns(Vec<(String, String)>);

impl AnswerColumns {
    /// The statement that lists the columns.
    pub(super) fn statement(question: &str) -> String {
        let list = "select list({'name': column_name, 'type': column_type}) as columns";
        let described = format!("{list} from (describe select * from {})", query(question));
        copied(&described, "format json")
    }

    /// Parses that statement's answer.
    pub(super) fn from_json(answer: &Value) -> AnswerColumns {
        let columns = answer["columns"].as_array().into_iter().flatten();
        AnswerColumns(
            columns
                .map(|column| {
                    ["name", "type"]
                        .map(|member| column[member].as_str().unwrap_or_default().to_owned())
                        .into()
                })
                .collect(),
        )
    }

    /// The statement that writes the answer in a form for [`write`](AnswerColumns::write); tables
    /// have one row more than is shown.
    pub(super) fn answer_statement(
        &self,
        question: &str,
        answer_format: AnswerFormat,
        n_rows_max: Option<usize>,
    ) -> String {
        let source = query(question);
        let (rows, format) = match answer_format {
            AnswerFormat::Table => {
                let limit = n_rows_max.map(|n| format!(" limit {}", n.saturating_add(1)));
                let limit = limit.unwrap_or_default();
                (
                    format!("select * from {source}{limit}"),
                    "format csv, header",
                )
            }
            AnswerFormat::Csv => (format!("select * from {source}"), "format csv, header"),
            AnswerFormat::Jsonl => (format!("select * from {source}"), "format json"),
            AnswerFormat::Parquet => (
                format!("select *{} from {source}", self.replaced()),
                "format parquet, compression zstd",
            ),
        };
        copied(&rows, format)
    }

    /// Casts 128-bit integers so that they stay exact, or fail.
    fn replaced(&self) -> String {
        let wide = self.0.iter();
        let wide = wide.filter(|(_, kind)| BEYOND_PARQUET.contains(&kind.as_str()));
        let replaced: Vec<String> = wide
            .map(|(name, _)| {
                let name = identifier(name);
                format!("cast({name} as decimal(38, 0)) as {name}")
            })
            .collect();
        if replaced.is_empty() {
            return String::new();
        }
        format!(" replace ({})", replaced.join(", "))
    }

    /// Writes DuckDB's answer in the requested format.
    pub(super) fn write(
        &self,
        answer: &mut dyn BufRead,
        answer_format: AnswerFormat,
        n_rows_max: Option<usize>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match answer_format {
            AnswerFormat::Table => self.write_table(answer, n_rows_max, out)?,
            AnswerFormat::Csv | AnswerFormat::Parquet => drop(io::copy(answer, out)?),
            AnswerFormat::Jsonl => write_json_lines(answer, out)?,
        }
        out.flush()
    }

    fn write_table(
        &self,
        answer: &mut dyn BufRead,
        n_rows_max: Option<usize>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut text = String::new();
        answer.read_to_string(&mut text)?;
        // An interrupted answer has no header.
        if text.is_empty() {
            return Ok(());
        }
        let records = csv_records(&text).into_iter().skip(1);
        let mut rows: Vec<Vec<String>> = records
            .map(|cells| {
                cells
                    .into_iter()
                    .map(|cell| cell.unwrap_or_else(|| MISSING.to_owned()))
                    .collect()
            })
            .collect();
        let is_cut = n_rows_max.is_some_and(|n| rows.len() > n);
        if let Some(n) = n_rows_max {
            rows.truncate(n);
        }
        let n_rows = rows.len() as u64;
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let numbers = self.0.iter().filter(|(_, kind)| {
            let kind = kind.split('(').next();
            kind.is_some_and(|kind| NUMBERS.contains(&kind))
        });
        let right: Vec<&str> = numbers.map(|(name, _)| name.as_str()).collect();
        writeln!(out, "{}", format::table(&names, &right, rows).trim_fmt())?;
        if is_cut {
            line!(
                out,
                "showing {}: a larger `--rows`, or another `--format`, has more",
                format::count(n_rows, "row")
            )?;
        }
        Ok(())
    }
}

/// The records of DuckDB's CSV. An empty cell is a missing value; quotes mean an empty text.
fn csv_records(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut is_open, mut has_quotes) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_open && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => {
                is_open = !is_open;
                has_quotes = true;
            }
            ',' | '\n' if !is_open => {
                let is_missing = cell.is_empty() && !has_quotes;
                let whole = std::mem::take(&mut cell);
                record.push((!is_missing).then_some(whole));
                has_quotes = false;
                if character == '\n' {
                    records.push(std::mem::take(&mut record));
                }
            }
            _ => cell.push(character),
        }
    }
    records
}

/// Writes DuckDB's JSON lines with texts for the numbers that JSON lacks.
fn write_json_lines(answer: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    while answer.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&finite(&line))?;
        line.clear();
    }
    Ok(())
}

/// Replaces numbers that JSON lacks by texts in a line of JSON.
fn finite(line: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(line.len());
    let (mut is_text, mut is_escaped) = (false, false);
    let mut rest = line;
    while let Some((&byte, behind)) = rest.split_first() {
        if !is_text {
            let number = NOT_FINITE
                .iter()
                .find(|(number, _)| rest.starts_with(number.as_bytes()));
            if let Some((number, text)) = number {
                written.extend(format!("\"{text}\"").bytes());
                rest = &rest[number.len()..];
                continue;
            }
        }
        if byte == b'"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = byte == b'\\' && !is_escaped;
        written.push(byte);
        rest = behind;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{csv_records, finite};

    #[test]
    fn missing_and_empty_cells_are_told_apart() {
        let cell = |text: &str| Some(text.to_owned());
        let records = csv_records("a,b,c\n,\"\",x\n\"1, \"\"2\"\"\n\",,\n\n");
        let expected = vec![
            vec![cell("a"), cell("b"), cell("c")],
            vec![None, cell(""), cell("x")],
            vec![cell("1, \"2\"\n"), None, None],
            vec![None],
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn numbers_that_json_lacks_are_texts_and_texts_stay() {
        let line = br#"{"NaN":NaN,"a":[-Infinity,Infinity,-1.5,null],"b":"NaN \" NaN \\","c":NaN}"#;
        let expected =
            r#"{"NaN":"nan","a":["-inf","inf",-1.5,null],"b":"NaN \" NaN \\","c":"nan"}"#;
        assert_eq!(String::from_utf8(finite(line)).unwrap(), expected);
    }
}
