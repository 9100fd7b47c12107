//! `opscope op`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use opscope_capture::Purpose;
use opscope_dump::{DumpRequest, model_file};
use opscope_engine::single_operator::{OperatorError, SingleOperator, read_json};
use opscope_engine::{GraphKind, LoadedModel, ModelSource};
use opscope_store::record::ModelId;
use serde_json::{Value, json};

use super::dump::control::RemoteControl;
use super::dump::dump_report::DumpReport;
use super::dump::run_model::{self, LoadedRun, dump_model};
use super::dump::{RunArguments, record, report};
use crate::console::report;
use crate::engine::EngineInUse;
use crate::exit::{CommandFailure, CommandResult, UNREADABLE, USAGE};
use crate::inputs::InputSource;

/// Run single operators, described in JSON, and dump their inputs and outputs
///
/// The description is one object or a list of them: `op`, `input_desc`, `output_desc` and `attr` as
/// the vendor's model converter takes them. Files are written to `{dump_path}/{time}/{device}`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope op add.json --seed 0 --out dump
  opscope op matmul.json --input x0=a.npy --input x1=b.npy --config acl.json
  opscope op softmax.json --seed 0 --stats")]
pub(crate) struct OpArguments {
    /// The description
    description: PathBuf,
    #[command(flatten)]
    run: RunArguments,
}

/// One operator, ready to run.
struct ReadyOperator {
    run: LoadedRun,
    inputs: InputSource,
}

pub(crate) fn run(arguments: &OpArguments) -> CommandResult {
    let request = arguments.run.request()?.for_single_operators();
    warn_if_nothing(&request);
    // A signal may come while the operators load, and its default action would end the process.
    let remote = RemoteControl::start(&arguments.run, &request, true)?;
    let text = opscope_config::read_text(&arguments.description)?;
    let path = arguments.description.display();
    let wrong = |error: OperatorError| {
        let code = if matches!(error, OperatorError::Syntax { .. }) {
            UNREADABLE
        } else {
            USAGE
        };
        CommandFailure::new(code, anyhow!(error).context(format!("`{path}`")))
    };
    let operators = read_json(&text).map_err(wrong)?;
    let engine = arguments.run.engine()?;
    let purpose = request.plan.purpose;
    // Loads and checks everything before creating any file.
    let prepared = operators
        .iter()
        .map(|operator| prepare(operator, &arguments.run, &engine, purpose, &wrong))
        .collect::<Result<Vec<_>, _>>()?;
    let dump = arguments.run.open(&request)?;
    let runs = prepared.iter().map(|operator| &operator.run);
    let models = runs.map(|run| model_file(&run.title, None, &run.model.signature().graph_name));
    let models = models.collect();
    let mut recorder = record::begin(("op", &engine), &arguments.run, &request, &dump, models);
    let mut failed = recorder.begun().err();
    let mut ends: Vec<End> = Vec::new();
    for ReadyOperator { mut run, inputs } in prepared {
        let failed = failed.take();
        let options = &arguments.run;
        let end = dump_model(options, &request, &dump, &mut run, &inputs, &remote, failed)?;
        recorder.add(end.0.n_steps, &end.0.summary);
        let has_failed = end.1.is_err();
        ends.push(end);
        if has_failed {
            break;
        }
    }
    // The loop stops at the first failing operator, so the last result is the run's.
    let last = ends.last().map_or(&Ok(()), |(_, result)| result);
    let recorded = record::finish(recorder, &dump, last);
    print_reports(&ends, arguments.run.json)?;
    ends.into_iter()
        .try_for_each(|(report, result)| run_model::finish(report, result))?;
    recorded
}

type End = (DumpReport, CommandResult);

fn prepare(
    operator: &SingleOperator,
    arguments: &RunArguments,
    engine: &Arc<EngineInUse>,
    purpose: Purpose,
    wrong: &impl Fn(OperatorError) -> CommandFailure,
) -> CommandResult<ReadyOperator> {
    let prepared = operator.for_engine().map_err(wrong)?;
    let source = ModelSource::Memory(prepared.bytes());
    let (model, engine) = engine.load(source, purpose)?;
    let model: Box<dyn LoadedModel> = match engine.graph() {
        GraphKind::Original => Box::new(prepared.around(model)),
        GraphKind::Executed if prepared.is_changed() => {
            let message = format!(
                "--graph executed shows operators with axes in the engine's order, and `{}` is described in \
                 another format",
                operator.op_name
            );
            return Err(CommandFailure::message(USAGE, message));
        }
        // The executed graph no longer consists of the one operator.
        GraphKind::Executed => model,
    };
    let inputs = arguments.input_source(model.signature())?;
    // Checked now: otherwise the operators before this one would already be dumped.
    inputs.step(0)?;
    let id = ModelId {
        // Without a model there is no model directory, so its name and number stay empty.
        device: arguments.device,
        ..ModelId::default()
    };
    let title = format!("{} `{}`", operator.op_type, operator.op_name);
    let run = LoadedRun {
        engine,
        model,
        id,
        title,
        output_files: None,
    };
    Ok(ReadyOperator { run, inputs })
}

fn print_reports(ends: &[End], is_json: bool) -> CommandResult {
    if !is_json {
        ends.iter()
            .try_for_each(|(report, _)| report::print(report))?;
        // All operators share a directory.
        return ends
            .last()
            .map_or(Ok(()), |(report, _)| report::print_next(report));
    }
    if let [(only, _)] = ends {
        return report::print_report_json(only);
    }
    let operators = ends.iter().map(|(report, _)| report.to_json());
    let operators: Vec<Value> = operators.collect::<Result<_, _>>()?;
    report::print_json(&json!({ "operators": operators }))
}

fn warn_if_nothing(request: &DumpRequest) {
    if request.is_nothing() {
        report!("opscope: warning: the configuration selects no operators outside models");
    }
}
