//! `opscope op`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use opscope_capture::Purpose;
use opscope_engine::single_operator::{OperatorError, SingleOperator, read_json};
use opscope_engine::{GraphKind, LoadedModel, ModelSource};
use opscope_store::record::ModelId;
use serde_json::{Value, json};

use super::dump::{
    self, InputSource, Outcome, Recording, Request, RunArguments, Sinks, Subject, model_file,
};
use crate::console::tell;
use crate::engine::EngineInUse;
use crate::exit::{Failure, UNREADABLE, USAGE};

/// Run single operators, described in JSON, and dump what they read and write
///
/// The description is one object or a list of them: `op`, `input_desc`, `output_desc` and `attr` as the
/// vendor's model converter takes them. Files appear under `{dump_path}/{time}/{device}`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope op add.json --seed 0 --out dump
  opscope op matmul.json --input x0=a.npy --input x1=b.npy --config acl.json
  opscope op softmax.json --seed 0 --stats")]
pub(crate) struct Arguments {
    /// The description
    description: PathBuf,
    #[command(flatten)]
    run: RunArguments,
}

/// One operator, ready to run.
struct Prepared {
    subject: Subject,
    inputs: InputSource,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request::new(&arguments.run)?.for_single_operators();
    warn_if_nothing(&request);
    let steering = dump::Steering::start(&arguments.run, &request, true)?;
    let text = opscope_config::read_text(&arguments.description)?;
    let path = arguments.description.display();
    let wrong = |error: OperatorError| {
        let code = if matches!(error, OperatorError::Syntax { .. }) {
            UNREADABLE
        } else {
            USAGE
        };
        Failure::new(code, anyhow!(error).context(format!("`{path}`")))
    };
    let operators = read_json(&text).map_err(wrong)?;
    let engine = arguments.run.engine()?;
    let purpose = request.purpose();
    // Everything is loaded and checked before anything is created.
    let prepared = operators
        .iter()
        .map(|operator| prepare(operator, &arguments.run, &engine, purpose, &wrong))
        .collect::<Result<Vec<_>, _>>()?;
    let sinks = request.open(&arguments.run)?;
    let subjects = prepared.iter().map(|one| &one.subject);
    let models = subjects.map(|s| model_file(&s.title, None, s.model.signature()));
    let recording = Recording::begin(
        ("op", &engine),
        &arguments.run,
        &request,
        &sinks,
        models.collect(),
    )?;
    let mut ends: Vec<End> = Vec::new();
    for one in prepared {
        let end = run_one(one, &arguments.run, &request, &sinks, &steering)?;
        recording.add(&end.0);
        let has_failed = end.1.is_err();
        ends.push(end);
        if has_failed {
            break;
        }
    }
    let recorded = match ends.last() {
        Some((_, result)) => recording.finish(&sinks, result),
        None => recording.finish(&sinks, &Ok(())),
    };
    report(&ends, arguments.run.json)?;
    ends.into_iter()
        .try_for_each(|(outcome, result)| dump::finish(outcome, result))?;
    recorded
}

type End = (Outcome, Result<(), Failure>);

fn run_one(
    mut one: Prepared,
    arguments: &RunArguments,
    request: &Request,
    sinks: &Sinks,
    steering: &dump::Steering<'_>,
) -> Result<End, Failure> {
    dump::run_one(
        arguments,
        request,
        sinks,
        &mut one.subject,
        &one.inputs,
        steering,
    )
}

fn prepare(
    operator: &SingleOperator,
    arguments: &RunArguments,
    engine: &Arc<EngineInUse>,
    purpose: Purpose,
    wrong: &impl Fn(OperatorError) -> Failure,
) -> Result<Prepared, Failure> {
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
            return Err(Failure::message(USAGE, message));
        }
        // The executed graph is no longer the one operator.
        GraphKind::Executed => model,
    };
    let inputs = InputSource::new(arguments, model.signature())?;
    inputs.step(0)?;
    let id = ModelId {
        device: arguments.device,
        ..ModelId::default()
    };
    let title = format!("{} `{}`", operator.op_type, operator.op_name);
    let subject = Subject {
        engine,
        model,
        id,
        title,
        output_files: None,
    };
    Ok(Prepared { subject, inputs })
}

fn report(ends: &[End], is_json: bool) -> Result<(), Failure> {
    if !is_json {
        return ends
            .iter()
            .try_for_each(|(outcome, _)| dump::print(outcome));
    }
    if let [(only, _)] = ends {
        return dump::print_outcome_json(only);
    }
    let operators = ends.iter().map(|(outcome, _)| outcome.to_json());
    let operators: Vec<Value> = operators.collect::<Result<_, _>>()?;
    dump::print_json(&json!({ "operators": operators }))
}

fn warn_if_nothing(request: &Request) {
    if request.is_nothing() {
        tell!("opscope: warning: the configuration selects no operators outside models");
    }
}
