//! Report files of a comparison.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::{self, ReportError, ReportFormat, node_notes};
use opscope_analysis::compare::result::{Comparison, Party};
use opscope_engine::onnx::{AnnotatedModel, read_signature};
use opscope_store::atomic_file::Creator;
use opscope_view::ViewedRuns;
use serde_json::Value;

use crate::commands::view;
use crate::console::{self, report};
use crate::exit::{CommandFailure, CommandResult, USAGE};

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
    /// Write the model with the result as properties of it and its nodes, for viewers such as
    /// Netron
    #[arg(long, value_name = "FILE")]
    export_onnx: Option<PathBuf>,
    /// Write node data for Model Explorer; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_model_explorer: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// The content of a report file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportKind {
    Result(ReportFormat),
    /// The page, which reads the dumps again.
    Page,
    /// The model, with notes.
    Model,
    /// Numbers and colours for Model Explorer.
    NodeData,
}

/// The model whose file `--export-onnx` takes, and its side.
pub(crate) type NotedModel = (Party, PathBuf);

impl ReportArguments {
    fn all(&self) -> impl Iterator<Item = (&Path, ReportKind)> {
        let all = [
            (&self.json, ReportKind::Result(ReportFormat::Json)),
            (&self.jsonl, ReportKind::Result(ReportFormat::Jsonl)),
            (&self.csv, ReportKind::Result(ReportFormat::Csv)),
            (&self.xlsx, ReportKind::Result(ReportFormat::Xlsx)),
            (&self.html, ReportKind::Page),
            (&self.parquet, ReportKind::Result(ReportFormat::Parquet)),
            (&self.export_onnx, ReportKind::Model),
            (&self.export_model_explorer, ReportKind::NodeData),
        ];
        all.into_iter()
            .filter_map(|(path, kind)| Some((path.as_deref()?, kind)))
    }

    /// The file of `--json`, for commands that write no other report.
    pub(super) fn only_json(&self, option: &str) -> CommandResult<Option<&Path>> {
        let mut kinds = self.all().map(|(_, kind)| kind);
        if kinds.any(|kind| kind != ReportKind::Result(ReportFormat::Json)) {
            let message = format!("`{option}` supports only the report `--json`");
            return Err(CommandFailure::message(USAGE, message));
        }
        Ok(self.json.as_deref())
    }

    /// Writes JSON to a file, or to standard output.
    pub(super) fn write_json(&self, value: &Value, path: &Path) -> CommandResult {
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

    /// Whether `--export-onnx` is requested.
    pub(super) fn has_model(&self) -> bool {
        self.export_onnx.is_some()
    }

    /// Whether node data are requested, which go by the name of the model's graph.
    pub(super) fn has_node_data(&self) -> bool {
        self.export_model_explorer.is_some()
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
    pub(super) fn check(&self) -> CommandResult {
        let mut taken: Vec<&Path> = Vec::new();
        for (path, kind) in self.all() {
            let is_stdout = path == Path::new(STDOUT);
            let is_stream = matches!(
                kind,
                ReportKind::Result(ReportFormat::Json | ReportFormat::Jsonl) | ReportKind::NodeData
            );
            if is_stdout && !is_stream {
                let message = "only `--json`, `--jsonl` and `--export-model-explorer` can be \
                               written to standard output";
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

    /// Writes all requested reports except the page. `model` is the one of `--export-onnx`.
    pub(super) fn write(
        &self,
        comparison: &Comparison,
        model: Option<&NotedModel>,
    ) -> CommandResult {
        for (path, kind) in self.all() {
            let format = match (kind, model) {
                (ReportKind::Result(format), _) => format,
                (ReportKind::Model, Some((side, model))) => {
                    self.write_model(comparison, model, *side, path)?;
                    continue;
                }
                (ReportKind::NodeData, model) => {
                    let target = model.filter(|(side, _)| *side == Party::Target);
                    let signature = target.and_then(|(_, model)| read_signature(model).ok());
                    let graph = signature.as_ref().map(|known| known.graph_name.as_str());
                    self.write_json(&node_notes::model_explorer(comparison, graph), path)?;
                    continue;
                }
                (ReportKind::Model, None) | (ReportKind::Page, _) => continue,
            };
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

    fn write_model(
        &self,
        comparison: &Comparison,
        model: &Path,
        side: Party,
        path: &Path,
    ) -> CommandResult {
        let mut nodes = HashMap::new();
        // A file has one graph, whose name in dumps is not always that in the file.
        for ((_, name), note) in node_notes::node_notes(comparison, side) {
            let properties = node_notes::node_properties(comparison, &note, side);
            nodes.insert(name.to_owned(), properties);
        }
        let about = node_notes::model_properties(comparison);
        let noted = AnnotatedModel::new(model, &about, &nodes)?;
        if noted.n_nodes == 0 {
            let model = model.display();
            report!("opscope: `--export-onnx`: no node of `{model}` was compared");
        }
        Ok(report::save_with(
            path,
            &Creator::default(),
            self.force,
            |out| noted.write(out),
        )?)
    }

    /// Writes the page if requested.
    pub(super) fn write_page(&self, runs: &ViewedRuns) -> CommandResult {
        let Some(path) = &self.html else {
            return Ok(());
        };
        let page = opscope_view::report::write(runs).map_err(view::failure)?;
        save_text(&page, path, self.force)
    }
}

/// Writes a text file in the same way as reports.
pub(super) fn save_text(text: &str, path: &Path, is_replacing: bool) -> CommandResult {
    Ok(report::save_text(text, path, is_replacing)?)
}
