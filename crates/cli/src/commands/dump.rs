//! `opscope dump`.

mod inputs;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use opscope_capture::sink::{AclSink, Content, StatsRow, StatsSink};
use opscope_capture::{Plan, Purpose, Selected, Session, SessionOptions, Sink, Summary};
use opscope_config::{Issue, Severity, dialect::acl};
use opscope_engine::{EngineError, LoadedModel};
use opscope_store::record::ModelId;

use self::inputs::InputSource;
use crate::arguments::{ModeArguments, NamedFile, NamedShape, named_file, named_shape};
use crate::exit::{Failure, INTERRUPTED, PARTIAL, USAGE};
use crate::progress;

/// Most runs without the dump that the time is compared with.
const N_BASELINE_RUNS_MAX: u32 = 3;
/// No further such run is started after this time.
const BASELINE_TIME_MAX: Duration = Duration::from_millis(300);

/// Run a model and dump what its operators read and write
///
/// With a configuration, what it selects; without one, the inputs and outputs of every operator.
/// Files appear under `{dump_path}/{time}/{device}/{model}/{model_id}/{step}`, one for each operator.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope dump net.onnx --input image=cat.npy --out dump
  opscope dump net.onnx --config acl.json --inputs samples.npz
  opscope dump net.onnx --seed 0 --shape image:1,3,224,224 --stats")]
pub(crate) struct Arguments {
    /// The ONNX model
    model: PathBuf,
    /// What to dump and where: an `acl.json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "stats"])]
    config: Option<PathBuf>,
    /// Dump both sides of every operator into this directory; created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "stats")]
    out: Option<PathBuf>,
    /// Write no tensors: print a table of every tensor's statistics
    #[arg(long)]
    stats: bool,
    /// A model input from a `.npy` file, or raw little-endian elements from a `.bin` file
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file, help_heading = "Inputs")]
    input: Vec<NamedFile>,
    /// Model inputs from an archive, or from a directory with one archive, array or subdirectory for
    /// each step
    #[arg(
        long,
        value_name = "FILE.npz|DIR",
        conflicts_with = "input",
        help_heading = "Inputs"
    )]
    inputs: Option<PathBuf>,
    /// Shape of an input that the model leaves open, or that comes from a `.bin` file
    #[arg(long, value_name = "NAME:1,3,224,224", value_parser = named_shape, help_heading = "Inputs")]
    shape: Vec<NamedShape>,
    /// Make inputs that are not given at random: floats in [0, 1), integers 0 or 1
    #[arg(long, value_name = "N", help_heading = "Inputs")]
    seed: Option<u64>,
    /// How often to run the model [default: once, or once for each set of inputs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Threads that the engine may use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Resources")]
    threads: Option<u16>,
    /// Threads that write
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Resources")]
    writers: u16,
    /// Most tensor bytes, in MiB, that wait to be written before the model has to wait
    #[arg(
        long,
        value_name = "MIB",
        default_value = "256",
        help_heading = "Resources"
    )]
    queue_mib: u32,
    /// Do not run the model without the dump first to compare times
    #[arg(long)]
    no_baseline: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
}

/// Everything the closing report tells.
pub(crate) struct Outcome {
    pub(crate) engine: &'static str,
    pub(crate) model: ModelId,
    pub(crate) n_steps: u64,
    pub(crate) summary: Summary,
    /// Wall time of all steps until the last byte was handed to the operating system.
    pub(crate) time: Duration,
    /// Wall time of one step without the dump.
    pub(crate) baseline: Option<Duration>,
    pub(crate) dump_dirs: Vec<PathBuf>,
    pub(crate) stats: Option<Vec<StatsRow>>,
}

/// Where the selected tensors go.
enum Target {
    Acl(Arc<AclSink>),
    Stats(Arc<StatsSink>),
    Nothing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (plan, places) = plan(arguments)?;
    let (engine, mut model) = load(arguments)?;
    let inputs = InputSource::new(arguments, model.signature())?;
    let n_steps = arguments.steps.unwrap_or(inputs.n_sets());
    // The first step's inputs are checked before anything is created.
    inputs.step(0)?;
    let target = match &places[..] {
        [] if arguments.stats => Target::Stats(Arc::default()),
        [] => Target::Nothing,
        places => Target::Acl(Arc::new(create_sink(places, arguments.modes)?)),
    };
    let id = ModelId {
        file_stem: file_stem(&arguments.model),
        graph_name: model.signature().graph_name.clone(),
        load: Some(1),
        device: 0,
    };
    let baseline = baseline(arguments, &mut *model, &inputs)?;
    let captured = capture(arguments, plan, &target, &id, &mut *model, &inputs, n_steps)?;
    let outcome = Outcome {
        engine,
        n_steps: captured.n_steps,
        summary: captured.summary,
        time: captured.time,
        baseline,
        dump_dirs: dump_dirs(&target, &id, captured.n_steps),
        stats: if let Target::Stats(sink) = &target {
            Some(sink.take())
        } else {
            None
        },
        model: id,
    };
    if arguments.json {
        report::print_json(&outcome)?;
    } else {
        report::print(&outcome)?;
    }
    finish(outcome, captured.result)
}

/// Turns what went wrong while capturing into the command's end.
fn finish(outcome: Outcome, result: Result<(), Failure>) -> Result<(), Failure> {
    result?;
    let counters = outcome.summary.counters;
    if let Some(error) = outcome.summary.first_error {
        let n = counters.n_failed;
        let error = anyhow!(error).context(format!("{n} tensors could not be written; the first"));
        return Err(Failure::new(PARTIAL, error));
    }
    if counters.n_dropped > 0 {
        let n = counters.n_dropped;
        let message = format!("{n} tensors could not be dumped: the engine has no bytes for them");
        return Err(Failure::message(PARTIAL, message));
    }
    Ok(())
}

/// What to keep, and the places to write it to, of which the first usable one is meant.
fn plan(arguments: &Arguments) -> Result<(Plan, Vec<PathBuf>), Failure> {
    let Some(path) = &arguments.config else {
        if arguments.out.is_none() && !arguments.stats {
            let message = "nothing to do: no configuration and no place to dump to";
            let hint = "give `--out DIR`, `--config acl.json` or `--stats`";
            return Err(Failure::message(USAGE, message).with_hint(hint));
        }
        let places = arguments.out.iter().cloned().collect();
        return Ok((Plan::everything(), places));
    };
    let text = opscope_config::read_text(path)?;
    let env = super::environment()?;
    let loaded = opscope_config::check_nesting(&text)
        .map_err(|issue| vec![*issue])
        .and_then(|()| acl::load(&text, &env));
    match loaded {
        Ok(config) => {
            warn(path, &config.issues);
            match config.dump {
                Some(dump) => {
                    refuse_unfinished(&dump)?;
                    Ok((dump.plan, dump.places))
                }
                None => Ok((Plan::nothing(), Vec::new())),
            }
        }
        Err(issues) => {
            let n = issues
                .iter()
                .filter(|issue| issue.severity == Severity::Error)
                .count();
            warn(path, &issues);
            let n = crate::format::count(n as u64, "error");
            Err(Failure::message(
                USAGE,
                format!("the configuration is refused: {n}"),
            ))
        }
    }
}

/// Dumps that the plan describes and that a run does not make yet.
fn refuse_unfinished(dump: &acl::AclDump) -> Result<(), Failure> {
    let what = match (dump.plan.purpose, &dump.content) {
        (Purpose::Values, Content::Tensors) => return Ok(()),
        (Purpose::Values, Content::Statistics(_)) => "files of statistics",
        (Purpose::Watch, _) => "watched operators",
        (Purpose::Overflow, _) => "overflows",
        (Purpose::Failures(_), _) => "operators that fail",
    };
    let message = format!("the configuration asks for {what}, which is not supported yet");
    Err(Failure::message(USAGE, message))
}

#[expect(clippy::print_stderr, reason = "issues go to standard error")]
fn warn(path: &Path, issues: &[Issue]) {
    for issue in issues {
        eprintln!("{}:{issue}", path.display());
    }
}

#[cfg(feature = "tract")]
fn load(arguments: &Arguments) -> Result<(&'static str, Box<dyn LoadedModel>), Failure> {
    use opscope_engine::onnx::Tract;
    use opscope_engine::{Engine, LoadOptions, ModelSource};

    let n_threads = arguments
        .threads
        .map_or_else(opscope_analysis::default_jobs, usize::from);
    let model = Tract.load(
        ModelSource::File(&arguments.model),
        &LoadOptions { n_threads },
    )?;
    Ok((Tract.name(), model))
}

#[cfg(not(feature = "tract"))]
fn load(_arguments: &Arguments) -> Result<(&'static str, Box<dyn LoadedModel>), Failure> {
    let message = "this build has no engine to run models with";
    Err(Failure::message(USAGE, message).with_hint("build it with `--features tract`"))
}

/// Creates `{dump_path}/{time}` in the first place where that succeeds; when the second is taken by
/// another dump, the next free one.
fn create_sink(places: &[PathBuf], modes: ModeArguments) -> Result<AclSink, Failure> {
    let now = jiff::Zoned::now();
    let mut first_error = None;
    for place in places {
        let times = (0..3600).map(|seconds| {
            let time = now.saturating_add(jiff::Span::new().seconds(seconds));
            time.strftime("%Y%m%d%H%M%S").to_string()
        });
        match AclSink::create(place, times, modes.modes()) {
            Ok(sink) => return Ok(sink),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(match first_error {
        Some(error) => Failure::new(USAGE, error),
        None => Failure::message(USAGE, "there is no place to dump to"),
    })
}

/// The file name after the last `/`, cut at the last `.`.
fn file_stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Wall time of one step without the dump, after a first one that prepares the operators.
///
/// A model that fails here is run again under the dump, so that what it computes up to the failure is
/// kept.
fn baseline(
    arguments: &Arguments,
    model: &mut dyn LoadedModel,
    inputs: &InputSource,
) -> Result<Option<Duration>, Failure> {
    if arguments.no_baseline {
        return Ok(None);
    }
    let inputs = inputs.step(0)?;
    if model.run(&inputs, None).is_err() {
        return Ok(None);
    }
    // The shortest of a few runs: other work on the machine only ever adds to it.
    let mut shortest: Option<Duration> = None;
    let start = Instant::now();
    for _ in 0..N_BASELINE_RUNS_MAX {
        let run_start = Instant::now();
        if model.run(&inputs, None).is_err() {
            return Ok(None);
        }
        let time = run_start.elapsed();
        shortest = Some(shortest.map_or(time, |shortest| shortest.min(time)));
        if start.elapsed() > BASELINE_TIME_MAX {
            break;
        }
    }
    Ok(shortest)
}

/// What capturing came to, also where it ended early.
struct Captured {
    summary: Summary,
    time: Duration,
    /// Steps that were begun.
    n_steps: u64,
    result: Result<(), Failure>,
}

fn capture(
    arguments: &Arguments,
    plan: Plan,
    target: &Target,
    id: &ModelId,
    model: &mut dyn LoadedModel,
    inputs: &InputSource,
    n_steps: u64,
) -> Result<Captured, Failure> {
    let options = SessionOptions {
        queue_bytes_max: u64::from(arguments.queue_mib) << 20,
        n_writers: arguments.writers.into(),
    };
    let sink: Arc<dyn Sink> = match target {
        Target::Acl(sink) => sink.clone(),
        Target::Stats(sink) => sink.clone(),
        Target::Nothing => Arc::new(StatsSink::default()),
    };
    let session = Session::start(plan, sink, options)
        .map_err(|error| Failure::new(PARTIAL, anyhow!(error).context("cannot start a thread")))?;
    let graph_inputs = model.signature().inputs.iter();
    let graph_inputs: Vec<String> = graph_inputs.map(|value| value.name.clone()).collect();
    let (mut tap, selected) =
        session.attach(&Arc::new(id.clone()), model.operators(), &graph_inputs);
    warn_unmatched(&selected, id, model, target);
    let stop = session.stop_flag();
    // A second signal ends the process at once; without a handler the first one does.
    let _ = ctrlc::set_handler(move || {
        if stop.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
    });
    let watch = session.watch();
    let mut n_steps_begun = 0;
    let n_operators = model.operators().len() as u64 * n_steps;
    let start = Instant::now();
    let position = || watch.counters().n_operators_seen;
    let (summary, result) = progress::with_operator_bar("dumping", n_operators, position, || {
        let result = (0..n_steps).try_for_each(|step| {
            let inputs = inputs.step(step)?;
            n_steps_begun += 1;
            tap.begin_step(step);
            model
                .run(&inputs, Some(&tap))
                .map(drop)
                .map_err(|error| at_step(error, step))
        });
        (session.finish(), result)
    });
    Ok(Captured {
        summary,
        time: start.elapsed(),
        n_steps: n_steps_begun,
        result,
    })
}

fn at_step(error: EngineError, step: u64) -> Failure {
    let failure = Failure::from(error);
    Failure {
        error: failure.error.map(|e| e.context(format!("step {step}"))),
        ..failure
    }
}

/// Says what the plan names and the model lacks.
#[expect(clippy::print_stderr, reason = "warnings go to standard error")]
fn warn_unmatched(selected: &Selected, id: &ModelId, model: &dyn LoadedModel, target: &Target) {
    if !selected.is_model_matched && matches!(target, Target::Acl(_)) {
        eprintln!(
            "opscope: warning: the configuration selects other models only; this one is `{}` \
             (graph `{}`)",
            id.file_stem, id.graph_name
        );
    }
    for name in &selected.unmatched {
        let lower = name.to_lowercase();
        let alike = model
            .operators()
            .iter()
            .map(|operator| &operator.op_name)
            .find(|known| {
                let known = known.to_lowercase();
                known.contains(&lower) || lower.contains(&known)
            });
        let hint = alike
            .map(|known| format!("; there is `{known}`"))
            .unwrap_or_default();
        eprintln!("opscope: warning: the model has no operator `{name}`{hint}");
    }
}

/// The directories of the steps that wrote anything.
fn dump_dirs(target: &Target, id: &ModelId, n_steps: u64) -> Vec<PathBuf> {
    let Target::Acl(sink) = target else {
        return Vec::new();
    };
    let model_dir = sink.tree().model_dir(id);
    let step_dirs = (0..n_steps).map(|step| model_dir.join(step.to_string()));
    step_dirs.filter(|dir| dir.is_dir()).collect()
}
