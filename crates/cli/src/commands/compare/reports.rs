//! Where results are written.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::{self, ReportError, ReportFormat};
use opscope_analysis::compare::result::Comparison;
use opscope_view::ViewedRuns;
use serde_json::Value;

use crate::commands::view;
use crate::console;
use crate::exit::{CommandFailure, USAGE};

/// Standard output, as a file's name.
const STDOUT: &str = "-";

/// Files of a result. Only their owner may read them; they appear whole or not at all.
#[derive(clap::Args)]
#[command(next_help_heading = "Reports")]
pub(super) struct ReportArguments {
    /// Write the whole result as one JSON document; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the whole result as typed records, one to a line; `-` is standard output
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Write a row for each slot
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a workbook
    #[arg(long, value_name = "FILE")]
    xlsx: Option<PathBuf>,
    /// Write the page of `opscope view` as one file that needs no server and no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a Parquet table with a row for each slot, for SQL and data frames
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

impl ReportArguments {
    /// The files with their formats; none is that of the page.
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

    /// The file of `--json`, where no other report can be written.
    pub(super) fn only_json(&self, option: &str) -> Result<Option<&Path>, CommandFailure> {
        let is_json = |format: &Option<ReportFormat>| matches!(format, Some(ReportFormat::Json));
        if self.all().any(|(_, format)| !is_json(&format)) {
            let message = format!("`{option}` has no report but `--json`");
            return Err(CommandFailure::message(USAGE, message));
        }
        Ok(self.json.as_deref())
    }

    /// Writes JSON to a file, or to standard output.
    pub(super) fn write_json(&self, value: &Value, path: &Path) -> Result<(), CommandFailure> {
        // One object for people and programs alike, with a line end as other tools expect it.
        let text = format!("{value:#}\n");
        if path == Path::new(STDOUT) {
            let mut out = BufWriter::new(console::json_out());
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        save_text(&text, path, self.force)
    }

    /// Whether any report is asked for.
    pub(super) fn is_any(&self) -> bool {
        self.all().next().is_some()
    }

    /// Whether the page is asked for, which needs the dumps once more.
    pub(super) fn has_page(&self) -> bool {
        self.html.is_some()
    }

    /// Whether files that exist are replaced.
    pub(super) fn is_replacing(&self) -> bool {
        self.force
    }

    /// Whether standard output belongs to a result.
    pub(super) fn is_stdout_taken(&self) -> bool {
        self.all().any(|(path, _)| path == Path::new(STDOUT))
    }

    /// Looks before the work whether its result could be written.
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
            // `exists` would follow a link and miss one that leads nowhere.
            if !self.force && path.symlink_metadata().is_ok() && !report::is_stream(path) {
                return Err(ReportError::Exists(path.to_owned()).into());
            }
            // A bare name has an empty parent, which stands for the current directory.
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            if let Some(dir) = dir.filter(|dir| dir.exists() && !dir.is_dir()) {
                let message = format!("`{}` is no directory", dir.display());
                return Err(CommandFailure::message(USAGE, message));
            }
        }
        Ok(())
    }

    /// Writes what was asked for, but for the page.
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

    /// Writes the page, if it was asked for.
    pub(super) fn write_page(&self, runs: &ViewedRuns) -> Result<(), CommandFailure> {
        let Some(path) = &self.html else {
            return Ok(());
        };
        let page = opscope_view::report::write(runs).map_err(view::failure)?;
        save_text(&page, path, self.force)
    }
}

/// Writes a text like a report.
pub(super) fn save_text(text: &str, path: &Path, is_replacing: bool) -> Result<(), CommandFailure> {
    Ok(report::save_text(text, path, is_replacing)?)
}
