//! `opscope sensitivity`.

mod arguments;
mod document;
mod keep_list;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opscope_analysis::default_jobs;
use opscope_capture::Purpose;
use opscope_engine::{EngineError, LoadedModel, ModelSource, ResultRounding};
use opscope_sensitivity::choice::{KeptChoice, choose};
use opscope_sensitivity::ranking::{RankedOperator, rank};
use opscope_sensitivity::{OutputDistance, SensitivityStudy, StudiedOperator};
use opscope_tensor::{RoundingFormat, Tensor};

use self::arguments::{DistanceLimit, ListArguments, OutputArguments, limit, rounding_format};
use super::dump::run_model::stop_on_signal;
use crate::console::report;
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::{CommandFailure, CommandResult, FOUND, refuse_array};
use crate::inputs::{InputArguments, InputSource};
use crate::progress;

/// Rank operators by how far the outputs move when only their weights and results are rounded
///
/// With `--limit`, also searches for the few operators to keep so that rounding all others stays
/// within the limit, and verifies the choice by a run. Inputs are calibration samples; several sets
/// are combined. Ends with 1 if only keeping all operators meets the limit.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope sensitivity net.onnx --inputs samples.npz
  opscope sensitivity net.onnx --inputs samples --as float16,int8 --csv ranking.csv
  opscope sensitivity net.onnx --inputs samples --limit 0.01 --keep-list keep.txt
  opscope sensitivity net.onnx --inputs samples --as int8 --limit 0.05 --list-as tensorrt")]
pub(crate) struct SensitivityArguments {
    /// An ONNX model
    model: PathBuf,
    /// Dtypes to round to: float16, bfloat16, float8_e4m3, int8; a ranking for each
    #[arg(
        long = "as",
        id = "formats",
        value_name = "DTYPE,...",
        value_delimiter = ',',
        default_value = "float16",
        value_parser = rounding_format()
    )]
    formats: Vec<RoundingFormat>,
    /// Choose operators to keep so that every output's relative L2 distance is at most this
    #[arg(long, value_name = "[rel_l2=]N", value_parser = limit)]
    limit: Option<DistanceLimit>,
    #[command(flatten)]
    list: ListArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    inputs: InputArguments,
    /// Number of sets of inputs to use [default: each once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Inputs")]
    steps: Option<u64>,
    /// Threads that the engine may use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    engine: EngineArguments,
}

/// All measurements.
pub(super) struct SensitivityResult {
    model: PathBuf,
    engine: Arc<EngineInUse>,
    n_samples: usize,
    /// Whether the inputs are random because none were given.
    has_made_up_inputs: bool,
    operators: Vec<StudiedOperator>,
    /// Tasks of operators without a name in the file.
    unnamed: Vec<u32>,
    /// Distance between two runs without rounding.
    repeated: OutputDistance,
    limit: Option<f64>,
    formats: Vec<FormatResult>,
}

/// The result for one dtype.
pub(super) struct FormatResult {
    format: RoundingFormat,
    ranking: Vec<RankedOperator>,
    /// All operators rounded at once.
    together: OutputDistance,
    choice: Option<KeptChoice>,
}

impl FormatResult {
    /// Whether only keeping everything meets the limit, or not even that: the dtype is then
    /// unusable.
    fn is_of_no_use(&self) -> bool {
        let choice = self.choice.as_ref();
        choice.is_some_and(|choice| {
            let keeps_all = !choice.kept.is_empty() && choice.kept.len() == self.ranking.len();
            !choice.is_within || keeps_all
        })
    }
}

pub(crate) fn run(arguments: &SensitivityArguments) -> CommandResult {
    refuse_array(&arguments.model)?;
    let formats = distinct(&arguments.formats);
    // Reports mistakes before the work, which may take hours.
    arguments.list.check(&formats)?;
    arguments.output.check(&arguments.list.paths(&formats))?;
    // From here on, a signal ends the command between two runs.
    let stop_flag = stop_on_signal(Arc::new(AtomicBool::new(false)));
    let n_threads = arguments.threads.map_or_else(default_jobs, usize::from);
    let is_quiet = arguments.output.is_stdout_taken();
    let graph = GraphArguments::default();
    let engine = EngineInUse::new(&arguments.engine, &graph, n_threads, is_quiet)?;
    let source = ModelSource::File(&arguments.model);
    let (mut model, engine) = Arc::new(engine).load(source, Purpose::Values)?;
    // Read once, because files may change during a study of hours.
    let samples = samples(arguments, &*model)?;
    let has_made_up_inputs = arguments.inputs.is_empty() && !model.signature().inputs.is_empty();
    if has_made_up_inputs {
        report!(
            "opscope: no inputs given: using random ones (seed 0): floats in [0, 1), integers \
             0 or 1; real samples (`--inputs`) give meaningful results"
        );
    }
    let unnamed = model.description().unnamed.clone();
    let mut result = SensitivityResult {
        model: arguments.model.clone(),
        engine,
        n_samples: samples.len(),
        has_made_up_inputs,
        operators: Vec::new(),
        unnamed,
        repeated: OutputDistance::default(),
        limit: arguments.limit.map(|limit| limit.0),
        formats: Vec::new(),
    };
    measure(&mut result, &mut *model, samples, &formats, &stop_flag)?;
    warn_of_changes(&result.repeated);
    arguments.output.write(&result)?;
    arguments
        .list
        .write(&result, arguments.output.is_replacing())?;
    if result.formats.iter().any(FormatResult::is_of_no_use) {
        return Err(CommandFailure::silent(FOUND));
    }
    Ok(())
}

/// The formats without duplicates, in the given order.
fn distinct(formats: &[RoundingFormat]) -> Vec<RoundingFormat> {
    let mut distinct = Vec::new();
    for format in formats {
        if !distinct.contains(format) {
            distinct.push(*format);
        }
    }
    distinct
}

/// The inputs of all samples. They stay in memory because every run uses all of them.
fn samples(
    arguments: &SensitivityArguments,
    model: &dyn LoadedModel,
) -> CommandResult<Vec<Vec<Tensor>>> {
    // Uses random inputs by default, as a dry run does.
    let source = InputSource::new(&arguments.inputs, true, model.signature())?;
    if let Some(note) = source.random_note(&arguments.inputs)? {
        report!("opscope: inputs: random: {note}");
    }
    let n_steps = arguments.steps.unwrap_or(source.n_sets());
    (0..n_steps).map(|step| source.step(step)).collect()
}

/// Runs the model for all measurements.
fn measure(
    result: &mut SensitivityResult,
    model: &mut dyn LoadedModel,
    samples: Vec<Vec<Tensor>>,
    formats: &[RoundingFormat],
    stop_flag: &AtomicBool,
) -> CommandResult {
    let before_run = || {
        if stop_flag.load(Ordering::Relaxed) {
            return Err(EngineError::Stopped);
        }
        Ok(())
    };
    let mut study = progress::with_spinner("running the model", || {
        SensitivityStudy::begin(model, samples, &before_run)
    })?;
    result.repeated = study.repeated().clone();
    result.operators = study.operators();
    let tasks: Vec<u32> = study
        .roundable()
        .iter()
        .map(|operator| operator.task_id)
        .collect();
    for &format in formats {
        let n_done = AtomicU64::new(0);
        let n_operators = tasks.len() as u64;
        let ranking = progress::with_operator_bar(
            format.name(),
            n_operators,
            || n_done.load(Ordering::Relaxed),
            || {
                rank(&mut study, format, || {
                    n_done.fetch_add(1, Ordering::Relaxed);
                })
            },
        )?;
        // Errors of operators add up or cancel, so this is not the sum of the ranking.
        let together = study.distance(&ResultRounding::new(format, tasks.iter().copied()))?;
        let choice = match result.limit {
            Some(limit) => Some(progress::with_spinner(
                "choosing operators to keep",
                || choose(&mut study, format, &ranking, limit),
            )?),
            None => None,
        };
        result.formats.push(FormatResult {
            format,
            ranking,
            together,
            choice,
        });
    }
    Ok(())
}

/// Warns of a model whose outputs vary between runs.
fn warn_of_changes(repeated: &OutputDistance) {
    if !repeated.is_zero() {
        report!(
            "opscope: warning: two runs without rounding differ by rel_l2 {}: distances below that \
             say nothing",
            opscope_analysis::compare::report::words::number(repeated.rel_l2())
        );
    }
}
