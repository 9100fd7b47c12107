//! `opscope config explain`.

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_config::dialect::Explanation;
use opscope_config::{ConfigEnvironment, ConfigIssue};
use serde_json::{Value, json};

use super::{ConfigVerdict, MindSporeTarget, ReadingMode};
use crate::commands::environment;
use crate::console::{self, line};
use crate::exit::{CommandFailure, CommandResult};

/// Explain in plain words what a configuration dumps, and where
///
/// The models and operators, their inputs or outputs, the executions, and the form and names of the
/// files; then everything that has no effect. The configuration is read as `opscope dump` reads it:
/// it expands `$HOME` and `~` and follows ASCEND_DUMP_SCENE and NPU_COLLECT_PATH.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 explained, 2 the file is refused, 3 it cannot be read.

Examples:
  opscope config explain acl.json
  opscope config explain --target ascend-o0 data_dump.json"
)]
pub(super) struct ExplainArguments {
    /// The configuration file
    file: PathBuf,
    /// For a MindSpore file: the backend [default: cpu, or ge if ENABLE_MS_GE_DUMP is 1]
    #[arg(long, value_enum)]
    target: Option<MindSporeTarget>,
    /// For a MindSpore file: the device number
    #[arg(long, value_name = "N", default_value = "0")]
    device: u32,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &ExplainArguments) -> CommandResult {
    let path = &arguments.file;
    let reading = ReadingMode {
        env: ConfigEnvironment {
            device_id: arguments.device,
            ..environment()?
        },
        target: arguments.target,
        is_for_run: true,
    };
    let verdict = ConfigVerdict::read(path, &reading);
    let explanation = match &verdict {
        ConfigVerdict::Accepted(config) => Some(config.explain(&reading.env)),
        ConfigVerdict::Refused(..) | ConfigVerdict::Unreadable(_) => None,
    };
    if arguments.json {
        let value = explained_json(verdict.json(path), explanation.as_ref());
        console::print_json(&value)?;
    } else if let Some(explanation) = &explanation {
        print(path, explanation, verdict.issues())?;
    } else {
        verdict.print(path)?;
    }
    let code = verdict.exit_code();
    code.map_or(Ok(()), |code| Err(CommandFailure::silent(code)))
}

fn explained_json(mut value: Value, explanation: Option<&Explanation>) -> Value {
    let rows = explanation.map(|explanation| {
        explanation
            .rows
            .iter()
            .map(|(subject, text)| json!({"subject": subject, "text": text}))
            .collect::<Vec<_>>()
    });
    value["summary"] = json!(explanation.map(|explanation| &explanation.summary));
    value["rows"] = json!(rows);
    value
}

fn print(path: &Path, explanation: &Explanation, issues: &[ConfigIssue]) -> CommandResult {
    let mut out = console::out();
    line!(out, "{}", explanation.summary)?;
    let rows = &explanation.rows;
    if !rows.is_empty() {
        writeln!(out)?;
    }
    let width = rows.iter().map(|(subject, _)| subject.len()).max();
    let width = width.unwrap_or(0);
    let mut last = "";
    for (subject, text) in rows {
        // A subject with several lines is named once.
        let shown = if *subject == last { "" } else { subject };
        line!(out, "{shown:width$}  {text}")?;
        last = subject;
    }
    if !issues.is_empty() {
        writeln!(out, "\nNotes:")?;
    }
    for issue in issues {
        line!(out, "  {}:{issue}", path.display())?;
    }
    Ok(())
}
