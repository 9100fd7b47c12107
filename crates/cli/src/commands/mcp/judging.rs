//! The tools `verdict` and `why`.

use std::path::{Path, PathBuf};

use opscope_analysis::compare::report::node_notes::certainty_name;
use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::{Comparison, Experiments};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ToolFailure, ToolResult};
use super::model_run::ModelRun;
use super::{McpState, command_arguments};
use crate::commands::{compare, diff};
use crate::format::json_number;

/// The next step after a verdict without a fault.
const NOTHING_TO_DO: &str = "the outputs agree: nothing to do; `look` shows a tensor of a dump";

/// A verdict that `why` explains.
pub(super) struct Judged {
    comparison: Comparison,
    given: VerdictArguments,
    is_of_models: bool,
}

/// Arguments of `verdict`.
#[derive(Deserialize)]
pub(super) struct VerdictArguments {
    target: PathBuf,
    golden: Option<PathBuf>,
    golden_engine: Option<String>,
    #[serde(flatten)]
    run: ModelRun,
}

/// Arguments of `why`.
#[derive(Deserialize)]
pub(super) struct WhyArguments {
    verdict: String,
    model: Option<PathBuf>,
    golden_model: Option<PathBuf>,
    runs: Option<u64>,
}

impl VerdictArguments {
    fn has_model(&self) -> bool {
        is_model(&self.target) || self.golden.as_deref().is_some_and(is_model)
    }

    /// Whether the inputs are those of the arguments; a dump has its own.
    fn needs_inputs(&self) -> bool {
        let has_dump = !is_model(&self.target) || self.golden.iter().any(|side| !is_model(side));
        !has_dump || self.run.has_inputs()
    }

    /// The sides as words of a command line, after all options.
    fn sides(&self) -> Vec<String> {
        let sides = std::iter::once(&self.target).chain(&self.golden);
        let sides = sides.map(|side| side.display().to_string());
        std::iter::once("--".to_owned()).chain(sides).collect()
    }

    /// Runs the models and compares them.
    fn diff(&self, options: &[String]) -> Result<Comparison, ToolFailure> {
        let mut words = vec!["--quiet".to_owned()];
        if self.needs_inputs() {
            words.extend(self.run.words()?);
        } else {
            words.extend(
                self.run
                    .engine
                    .iter()
                    .map(|engine| format!("--engine={engine}")),
            );
        }
        let engine = self.golden_engine.as_ref();
        words.extend(engine.map(|engine| format!("--golden-engine={engine}")));
        words.extend_from_slice(options);
        words.extend(self.sides());
        Ok(diff::compared(&command_arguments(words)?)?)
    }

    /// Compares the dumps.
    fn compare(&self, options: &[String]) -> Result<Comparison, ToolFailure> {
        let mut words = vec!["--quiet".to_owned()];
        words.extend_from_slice(options);
        words.extend(self.sides());
        Ok(compare::compared(&command_arguments(words)?)?)
    }
}

pub(super) fn verdict(state: &mut McpState, given: VerdictArguments) -> ToolResult {
    if given.golden.is_none() && !is_model(&given.target) {
        let message = format!(
            "`{}` is a dump: `golden` is required",
            given.target.display()
        );
        return Err(ToolFailure::new(
            message,
            "`golden`: another dump, or a model",
        ));
    }
    if given
        .golden
        .as_ref()
        .is_none_or(|golden| *golden == given.target)
        && is_model(&given.target)
        && given.golden_engine.is_none()
    {
        return Err(ToolFailure::new(
            "both sides are the same model, run in the same way",
            "pass another model or a dump as `golden`, or another engine as `golden_engine`",
        ));
    }
    let is_of_models = given.has_model();
    let mut dumps = None;
    let comparison = if is_of_models {
        let place = state.new_place("verdict");
        let options = [
            "--no-experiments".to_owned(),
            format!("--save={}", place.display()),
        ];
        let comparison = given.diff(&options)?;
        dumps = Some(json!({ "target": place.join("target"), "golden": place.join("golden") }));
        comparison
    } else {
        given.compare(&[])?
    };
    let id = format!("v{}", state.verdicts.len() + 1);
    let mut answer = described(&comparison);
    answer["id"] = json!(id);
    if let Some(dumps) = dumps {
        answer["dumps"] = dumps;
    }
    if is_of_models && given.needs_inputs() {
        given.run.note_inputs(&mut answer);
    }
    let is_good = comparison.contract.conclusion.is_good();
    answer["next"] = if is_good {
        json!(NOTHING_TO_DO)
    } else {
        json!(format!(
            r#"`why` {{"verdict": "{id}"}} proves the cause; `look` shows the named slot of a dump"#
        ))
    };
    state.verdicts.push(Judged {
        comparison,
        given,
        is_of_models,
    });
    Ok(answer)
}

pub(super) fn why(state: &mut McpState, given: &WhyArguments) -> ToolResult {
    let number = given.verdict.strip_prefix('v');
    let number = number.and_then(|text| text.parse::<usize>().ok());
    let judged = number.and_then(|number| state.verdicts.get_mut(number.checked_sub(1)?));
    let judged = judged.ok_or_else(|| {
        let message = format!("there is no verdict `{}` in this session", given.verdict);
        ToolFailure::new(message, "`verdict` returns an id, such as v1")
    })?;
    let n_runs = given.runs.unwrap_or(12);
    let experiments = format!("--experiments={n_runs}");
    let models = [
        ("--model", &given.model),
        ("--golden-model", &given.golden_model),
    ];
    let mut options: Vec<String> = models
        .iter()
        .filter_map(|(option, path)| Some(format!("{option}={}", path.as_ref()?.display())))
        .collect();
    let asks_for_experiments = judged.is_of_models || !options.is_empty();
    options.push(experiments);
    if judged.comparison.experiments.is_none() && asks_for_experiments {
        judged.comparison = if judged.is_of_models {
            judged.given.diff(&options[options.len() - 1..])?
        } else {
            judged.given.compare(&options)?
        };
    }
    let comparison = &judged.comparison;
    let mut answer = described(comparison);
    if let Some(made) = comparison.experiments.as_deref() {
        answer["experiments"] = experiments_json(made);
    }
    answer["next"] = if comparison.contract.conclusion.is_good() {
        json!(NOTHING_TO_DO)
    } else {
        json!(next_of_why(judged, asks_for_experiments))
    };
    Ok(answer)
}

/// The call that helps after an explanation.
fn next_of_why(judged: &Judged, had_experiments: bool) -> String {
    let made = judged.comparison.experiments.as_deref();
    let causes = made.map_or(&[][..], |made| &made.causes);
    let names: Vec<&str> = causes
        .iter()
        .map(|cause| &*cause.operator.op_name)
        .collect();
    match (&judged.given.golden, names.is_empty()) {
        (Some(golden), false) if judged.is_of_models => format!(
            "`try` {} shows the outputs with golden's definition",
            json!({ "model": judged.given.target, "golden": golden, "operators": names })
        ),
        _ if !had_experiments => {
            "pass `model` and `golden_model` to prove the cause by experiments; `look` shows the \
             named slot"
                .to_owned()
        }
        _ => "`look` shows the named slot; correct the model and ask for a `verdict` again".into(),
    }
}

fn experiments_json(made: &Experiments) -> Value {
    json!({
        "outcome": made.outcome,
        "runs": made.n_runs,
        "differing_definitions": made.n_differences,
        "rel_l2_before": json_number(made.before),
        "rel_l2_after": json_number(made.after),
        "causes": made.causes.iter().map(|cause| &*cause.operator.op_name).collect::<Vec<_>>(),
    })
}

/// Sentence, certainty, operator and evidence.
fn described(comparison: &Comparison) -> Value {
    let mut lines = compare::verdict_lines(comparison).into_iter();
    let mut answer = json!({
        "verdict": lines.next(),
        "agree": comparison.contract.conclusion.is_good(),
        "certainty": comparison.summary.certainty.map(certainty_name),
    });
    if let Some((point, operator, _)) = words::headline(comparison) {
        let name = point
            .name
            .clone()
            .unwrap_or_else(|| words::name_of(operator));
        answer["operator"] = json!({
            "op_name": name.op_name,
            "op_type": name.op_type,
            "slot": point.slot,
            "step": name.step,
        });
    }
    answer["evidence"] = lines.collect();
    answer
}

fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "onnx")
}
