//! The tool `try`.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_analysis::default_jobs;
use opscope_capture::Purpose;
use opscope_diff::inputs::pair_inputs;
use opscope_engine::onnx::{DefinitionDifference, ModelPair, read_signature};
use opscope_engine::{EngineError, LoadedModel, ModelSource, ResultRounding};
use opscope_sensitivity::OneOutputDistance;
use opscope_tensor::{Numbers, RoundingFormat, Tensor};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ToolFailure, ToolResult};
use super::command_arguments;
use super::model_run::ModelRun;
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::CommandFailure;
use crate::format::json_number;
use crate::inputs::{InputArguments, InputSource};

/// Shown elements of an output.
const N_SHOWN: usize = 4;

/// Arguments of `try`.
#[derive(Deserialize)]
pub(super) struct TryArguments {
    model: PathBuf,
    golden: Option<PathBuf>,
    round: Option<String>,
    #[serde(default)]
    operators: Vec<String>,
    #[serde(flatten)]
    run: ModelRun,
}

/// How a model runs, as on the command line.
#[derive(clap::Args)]
struct RunOptions {
    #[command(flatten)]
    inputs: InputArguments,
    #[command(flatten)]
    engine: EngineArguments,
}

/// The outputs before and after a change.
struct Outputs {
    names: Vec<String>,
    before: Vec<Tensor>,
    after: Vec<Tensor>,
    golden: Option<Vec<Tensor>>,
    /// Names of the operators that were changed.
    changed: Vec<String>,
}

pub(super) fn try_change(given: &TryArguments) -> ToolResult {
    let options: RunOptions = command_arguments(given.run.words()?)?;
    let engine = EngineInUse::new(
        &options.engine,
        &GraphArguments::default(),
        default_jobs(),
        true,
    )?;
    let source = ModelSource::File(&given.model);
    let (mut model, engine) = Arc::new(engine).load(source, Purpose::Values)?;
    let signature = model.signature().clone();
    let inputs = InputSource::new(&options.inputs, true, &signature)?.step(0)?;
    let outputs = match (&given.golden, &given.round) {
        (Some(golden), None) => healed(given, golden, &engine, &inputs)?,
        (None, Some(format)) => rounded(given, format, &mut *model, &inputs)?,
        _ => {
            return Err(ToolFailure::new(
                "one change is needed",
                "pass `golden`, whose definitions to take, or `round`, a dtype",
            ));
        }
    };
    let mut answer = outputs.to_json();
    given.run.note_inputs(&mut answer);
    Ok(answer)
}

/// With golden's definition of operators.
fn healed(
    given: &TryArguments,
    golden: &std::path::Path,
    engine: &EngineInUse,
    inputs: &[Tensor],
) -> Result<Outputs, ToolFailure> {
    let (source, other) = (ModelSource::File(&given.model), ModelSource::File(golden));
    let signatures = [read_signature(&given.model), read_signature(golden)];
    let [own, others] = signatures.map(|signature| signature.map_err(CommandFailure::from));
    let (own, others) = (own?, others?);
    let names = own.inputs.iter().zip(&others.inputs);
    let names: Vec<[String; 2]> = names
        .map(|(own, other)| [own.name.clone(), other.name.clone()])
        .collect();
    let pair = ModelPair::read(source, other, &[], &names).map_err(CommandFailure::from)?;
    let all = pair.differences();
    let chosen: Vec<usize> = (0..all.len())
        .filter(|&at| {
            given.operators.is_empty()
                || operators(&all[at]).any(|name| given.operators.iter().any(|own| own == name))
        })
        .collect();
    let unknown = given.operators.iter().find(|name| {
        let mut known = chosen.iter().flat_map(|&at| operators(&all[at]));
        !known.any(|operator| operator == **name)
    });
    if chosen.is_empty() || unknown.is_some() {
        let names: Vec<&str> = all
            .iter()
            .filter_map(|difference| operators(difference).next())
            .collect();
        let hint = match names.len() {
            0 => "both models define the same".to_owned(),
            _ => format!("definitions differ at {}", names.join(", ")),
        };
        let message = match unknown {
            Some(name) => {
                format!("operator `{name}` does not exist, or is the same in both models")
            }
            None => "no operator differs".to_owned(),
        };
        return Err(ToolFailure::new(message, &hint));
    }
    let healed = pair.healed(&chosen).map_err(|reason| {
        ToolFailure::new(reason, "take the definition of more operators, or of all")
    })?;
    let run = |source: ModelSource<'_>, inputs: &[Tensor]| -> Result<Vec<Tensor>, EngineError> {
        engine.load_alone(source)?.run(inputs, None)
    };
    let (base, pairing) = pair_inputs(&own, &others)
        .map_err(|error| ToolFailure::new(error.to_string(), "models with the same inputs"))?;
    if base == opscope_diff::inputs::BaseSide::Golden {
        return Err(ToolFailure::new(
            "golden's inputs have a narrower dtype than the model's",
            "exchange both models",
        ));
    }
    let of_golden = pairing.apply(inputs).map_err(CommandFailure::from)?;
    Ok(Outputs {
        names: own.outputs.iter().map(|value| value.name.clone()).collect(),
        before: run(source, inputs).map_err(CommandFailure::from)?,
        after: run(healed.source(), inputs).map_err(CommandFailure::from)?,
        golden: Some(run(other, &of_golden).map_err(CommandFailure::from)?),
        changed: chosen
            .iter()
            .filter_map(|index| operators(&all[*index]).next().map(str::to_owned))
            .collect(),
    })
}

/// The operators at a difference, the target's first.
fn operators(difference: &DefinitionDifference) -> impl Iterator<Item = &str> {
    let labels = difference.target.iter().chain(&difference.golden);
    labels
        .chain(&difference.readers)
        .map(|label| label.op_name.as_str())
}

/// With results of operators rounded to a dtype.
fn rounded(
    given: &TryArguments,
    format: &str,
    model: &mut dyn LoadedModel,
    inputs: &[Tensor],
) -> Result<Outputs, ToolFailure> {
    let format: RoundingFormat = format
        .parse()
        .map_err(|expected: String| ToolFailure::new(format!("no dtype `{format}`"), &expected))?;
    let survey = model.survey_results(inputs).map_err(CommandFailure::from)?;
    let floats = survey
        .operators()
        .filter(|roundable| roundable.float_outputs().next().is_some());
    let floats: Vec<_> = floats.map(|roundable| roundable.operator.clone()).collect();
    let chosen: Vec<_> = floats
        .iter()
        .filter(|operator| {
            given.operators.is_empty()
                || (given.operators.iter()).any(|wanted| **wanted == *operator.op_name)
        })
        .collect();
    let unknown = given
        .operators
        .iter()
        .find(|name| !chosen.iter().any(|operator| *operator.op_name == ***name));
    if chosen.is_empty() || unknown.is_some() {
        let names: Vec<&str> = floats.iter().map(|operator| &*operator.op_name).collect();
        let hint = format!(
            "operators with floating-point results: {}",
            names.join(", ")
        );
        let message = match unknown {
            Some(name) => format!("operator `{name}` does not exist, or has no results to round"),
            None => "no operator has results to round".to_owned(),
        };
        return Err(ToolFailure::new(message, &hint));
    }
    let rounding = ResultRounding::new(format, chosen.iter().map(|operator| operator.task_id));
    let mut run = |rounding: &ResultRounding| {
        let outputs = model.run_rounded(inputs, rounding);
        outputs.map_err(CommandFailure::from)
    };
    Ok(Outputs {
        before: run(&ResultRounding::default())?,
        after: run(&rounding)?,
        names: Vec::new(),
        golden: None,
        changed: chosen
            .iter()
            .map(|operator| operator.op_name.to_string())
            .collect(),
    }
    .named(&*model))
}

impl Outputs {
    fn named(mut self, model: &dyn LoadedModel) -> Outputs {
        let outputs = model.signature().outputs.iter();
        self.names = outputs.map(|value| value.name.clone()).collect();
        self
    }

    fn to_json(&self) -> Value {
        let outputs = self.names.iter().enumerate();
        let outputs = outputs.filter_map(|(at, name)| {
            let (before, after) = (self.before.get(at)?, self.after.get(at)?);
            let rel_l2 =
                |a: &Tensor, b: &Tensor| json_number(OneOutputDistance::between(name, a, b).rel_l2);
            let mut output = json!({
                "name": name,
                "before": first_elements(before),
                "after": first_elements(after),
                "rel_l2_of_the_change": rel_l2(after, before),
            });
            if let Some(golden) = self.golden.as_ref().and_then(|golden| golden.get(at)) {
                output["golden"] = json!(first_elements(golden));
                output["rel_l2_to_golden_before"] = rel_l2(before, golden);
                output["rel_l2_to_golden_after"] = rel_l2(after, golden);
            }
            Some(output)
        });
        let next = match self.golden {
            Some(_) => "correct these operators in the model, and ask for a `verdict` again",
            None => {
                "`opscope sensitivity` ranks all operators; `verdict` compares converted models"
            }
        };
        json!({ "changed": self.changed, "outputs": outputs.collect::<Vec<_>>(), "next": next })
    }
}

/// The first elements of an output.
fn first_elements(tensor: &Tensor) -> Vec<Value> {
    let view = tensor.host_view().ok();
    let numbers = view.and_then(|view| Numbers::new(view.dtype, view.bytes));
    let Some(numbers) = numbers else {
        return Vec::new();
    };
    let values = (0..numbers.len().min(N_SHOWN)).filter_map(|at| numbers.get(at));
    // Four digits, so that several outputs fit.
    values
        .map(|value| json_number(format!("{value:.4e}").parse().unwrap_or(value)))
        .collect()
}
