//! Report files of a comparison.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::{self, ReportError, ReportFormat};
use opscope_analysis::compare::result::Comparison;
use opscope_view::ViewedRuns;
use serde_json::Value;

use crate::commands::view;
use crate::console;
use crate::exit::{CommandFailure, USAGE};

/// File name that means standard output.
const STDOUT: &str = "-";

/// Report files. They are private to their owner and written atomically.
#[derive(clap::Args)]
#[command(next_help_heading = "Reports")]
pub(super) struct ReportArguments {
    /// Write the whole result as one JSON document; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the whole result as typed records, one per line; `-` is standard output
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Write a CSV row for each slot
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write an Excel workbook
    #[arg(long, value_name = "FILE")]
    xlsx: Option<PathBuf>,
    /// Write the page of `opscope view` as one file that needs no server or network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a Parquet table with a row for each slot, for SQL and data frames
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl ReportArguments {
    /// The files with their formats; the page has `None`.
    fn all(&self) -> impl Iterator<Item = (&Path, Option<ReportFormat>)> {
        let all = [
            (&self.json, Some(ReportFormat::Json)),
            (&self.jsonl, Some(ReportFormat::Jsonl)),
            (&self.csv, Some(ReportFormat::Csv)),
            (&self.xlsx, Some(ReportFormat::Xlsx)),
            (&self.html, None),
            (&self.parquet, Some(ReportFormat::Parquet)),
        ];
        all.into_iter()
            .filter_map(|(path, format)| Some((path.as_deref()?, format)))
    }

    /// The file of `--json`, for commands that write no other report.
    pub(super) fn only_json(&self, option: &str) -> Result<Option<&Path>, CommandFailure> {
        let mut formats = self.all().map(|(_, format)| format);
        if formats.any(|format| !matches!(format, Some(ReportFormat::Json))) {
            let message = format!("`{option}` supports only the report `--json`");
            return Err(CommandFailure::message(USAGE, message));
        }
        Ok(self.json.as_deref())
    }

    /// Writes JSON to a file, or to standard output.
    pub(super) fn write_json(&self, value: &Value, path: &Path) -> Result<(), CommandFailure> {
        // Pretty-printed for people and programs alike, with the line end that other tools expect.
        let text = format!("{value:#}\n");
        if path == Path::new(STDOUT) {
            let mut out = BufWriter::new(console::json_out());
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        save_text(&text, path, self.force)
    }

    /// Whether any report is requested.
    pub(super) fn is_any(&self) -> bool {
        self.all().next().is_some()
    }

    /// Whether the page is requested, which reads the dumps again.
    pub(super) fn has_page(&self) -> bool {
        self.html.is_some()
    }

    /// Whether to replace existing files.
    pub(super) fn is_replacing(&self) -> bool {
        self.force
    }

    /// Whether a report occupies standard output.
    pub(super) fn is_stdout_taken(&self) -> bool {
        self.all().any(|(path, _)| path == Path::new(STDOUT))
    }

    /// Checks before the work that the reports can be written.
    pub(super) fn check(&self) -> Result<(), CommandFailure> {
        let mut taken: Vec<&Path> = Vec::new();
        for (path, format) in self.all() {
            let is_stdout = path == Path::new(STDOUT);
            let is_stream = matches!(format, Some(ReportFormat::Json | ReportFormat::Jsonl));
            if is_stdout && !is_stream {
                let message = "only `--json` and `--jsonl` can be written to standard output";
                return Err(CommandFailure::message(USAGE, message));
            }
            if taken.contains(&path) {
                let message = format!("`{}` cannot hold two reports", path.display());
                return Err(CommandFailure::message(USAGE, message));
            }
            taken.push(path);
            if is_stdout {
                continue;
            }
            // `exists` would follow links and miss broken ones.
            if !self.force && path.symlink_metadata().is_ok() && !report::is_stream(path) {
                return Err(ReportError::Exists(path.to_owned()).into());
            }
            // A bare name has an empty parent, which means the current directory.
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            if let Some(dir) = dir.filter(|dir| dir.exists() && !dir.is_dir()) {
                let message = format!("`{}` is not a directory", dir.display());
                return Err(CommandFailure::message(USAGE, message));
            }
        }
        Ok(())
    }

    /// Writes all requested reports except the page.
    pub(super) fn write(&self, comparison: &Comparison) -> Result<(), CommandFailure> {
        let files = self
            .all()
            .filter_map(|(path, format)| Some((path, format?)));
        for (path, format) in files {
            if path == Path::new(STDOUT) {
                let mut out = BufWriter::new(console::json_out());
                report::write(comparison, format, &mut out)?;
                out.flush()?;
                continue;
            }
            report::save(comparison, format, path, self.force)?;
        }
        Ok(())
    }

    /// Writes the page if requested.
    pub(super) fn write_page(&self, runs: &ViewedRuns) -> Result<(), CommandFailure> {
        let Some(path) = &self.html else {
            return Ok(());
        };
        let page = opscope_view::report::write(runs).map_err(view::failure)?;
        save_text(&page, path, self.force)
    }
}

/// Writes a text file in the same way as reports.
pub(super) fn save_text(text: &str, path: &Path, is_replacing: bool) -> Result<(), CommandFailure> {
    Ok(report::save_text(text, path, is_replacing)?)
}
