//! The tool `run`.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ToolFailure, ToolResult};
use super::model_run::ModelRun;
use super::{McpState, command_arguments};
use crate::commands::dump::dump_report::DumpReport;
use crate::commands::dump::{self, DumpArguments, report};

/// Arguments of `run`.
#[derive(Deserialize)]
pub(super) struct RunArguments {
    model: PathBuf,
    steps: Option<u64>,
    #[serde(flatten)]
    run: ModelRun,
}

pub(super) fn run(state: &mut McpState, given: &RunArguments) -> ToolResult {
    let place = state.new_place("run");
    let mut words = given.run.words()?;
    // JSON, because engines then print nothing.
    words.extend(["--json".to_owned(), format!("--out={}", place.display())]);
    words.extend(given.steps.map(|steps| format!("--steps={steps}")));
    words.extend(["--".to_owned(), given.model.display().to_string()]);
    let arguments: DumpArguments = command_arguments(words)?;
    let mut shown = None;
    let result = dump::run_with(&arguments, |report| {
        shown = Some(summary(given, report)?);
        Ok(())
    });
    match (shown, result) {
        (Some(mut summary), Err(failure)) => {
            // The report has the reasons of an incomplete dump.
            summary["complete"] = json!(false);
            summary["exit_code"] = json!(failure.code);
            Ok(summary)
        }
        (Some(summary), Ok(())) => Ok(summary),
        (None, result) => Err(result.err().map_or_else(
            || ToolFailure::new("the run has no report", "run it on the command line"),
            ToolFailure::from,
        )),
    }
}

/// The main facts of a dump, and the next step.
fn summary(
    given: &RunArguments,
    report: &DumpReport,
) -> Result<Value, crate::exit::CommandFailure> {
    let whole = report.to_json()?;
    let mut summary = json!({ "dump": report::place(report) });
    for name in [
        "steps",
        "operators_dumped",
        "bytes_written",
        "seconds",
        "engine",
        "engine_version",
        "first_non_finite",
        "first_error",
    ] {
        if let Some(value) = whole.get(name).filter(|value| !value.is_null()) {
            summary[name] = value.clone();
        }
    }
    given.run.note_inputs(&mut summary);
    summary["next"] = json!(
        "`verdict` compares this dump with another one or with a model; `look` shows a tensor: \
         dump, operator, slot"
    );
    Ok(summary)
}
