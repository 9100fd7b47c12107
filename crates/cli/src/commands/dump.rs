//! `opscope dump`.

mod compress;
mod control;
mod dry_run;
mod environment;
mod findings;
mod graph;
mod inputs;
mod mindspore;
mod near_names;
mod once;
mod outputs;
mod policy;
mod quantising;
mod range;
mod report;
mod request;
mod ring;
mod run_record;
mod unmatched;
mod volume;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use opscope_capture::{Counters, Purpose, Session, SessionOptions, Summary, Tap};
use opscope_dump::StatsRows;
use opscope_engine::{EngineError, LoadedModel, ModelSource};
use opscope_store::record::ModelId;
use opscope_store::temporary::LeftOvers;

use self::compress::CompressArguments;
use self::control::Told;
use self::dry_run::Forecast;
use self::policy::PolicyArguments;
use self::range::{NarrowFloat, Ranges};
use self::request::Target;
use self::ring::RingArguments;
use self::volume::VolumeArguments;

pub(crate) use self::control::Steering;
pub(crate) use self::inputs::InputSource;
pub(crate) use self::outputs::OutputFiles;
pub(crate) use self::report::{print, print_json, print_outcome_json};
pub(crate) use self::request::{Request, Sinks};
pub(crate) use self::run_record::{Recording, model_file};
use super::mindspore_target::MindSporeTarget;
use crate::arguments::{ModeArguments, NamedFile, NamedShape, named_file, named_shape};
use crate::console::tell;
use crate::engine::{EngineArguments, EngineInUse, GraphArguments};
use crate::exit::{FOUND, Failure, INTERRUPTED, PARTIAL};
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
  opscope dump net.onnx --config data_dump.json --target ascend-o1 --seed 0
  opscope dump net.onnx --seed 0 --shape image:1,3,224,224 --stats
  opscope dump net.onnx --inputs samples.npz --as float16
  opscope dump net.onnx --seed 0 --out dump --tensors non-finite --tensors type:Softmax
  opscope dump net.onnx --config acl.json --dry-run")]
pub(crate) struct Arguments {
    /// The ONNX model
    model: PathBuf,
    #[command(flatten)]
    run: RunArguments,
    /// Also write what the model gives at each step, dumped or not: `{step}/{name}.npy`, or `.bin` where numpy has
    /// no such dtype, and a list of them in `{step}/outputs.json`
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
    save_outputs: Option<PathBuf>,
}

/// How to run something, and what to keep of it.
#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// Configuration that says what to dump and where: an `acl.json` of AscendCL or a dump configuration of
    /// MindSpore. Without it and without `--out`, `--stats` and `--as`, the file that MINDSPORE_DUMP_CONFIG
    /// names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "stats", "narrow"])]
    config: Option<PathBuf>,
    /// Whose tree a configuration of MindSpore asks for [default: cpu, or ge if ENABLE_MS_GE_DUMP is 1]
    #[arg(long, value_enum, value_name = "TARGET", conflicts_with_all = ["out", "stats", "narrow", "graph_inputs"])]
    target: Option<MindSporeTarget>,
    /// The number of the device that the dump is said to come from; a configuration of MindSpore may
    /// leave devices out
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) device: u32,
    /// The rank that a dump of MindSpore is said to come from, `rank_{N}`
    #[arg(long, value_name = "N", default_value = "0")]
    rank: u32,
    /// Under `dump_mode` 2 of MindSpore, dump this operator, or all whose names begin with this and a
    /// `/`; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "stats", "narrow"])]
    set_dump: Vec<String>,
    /// Dump both sides of every operator into this directory; created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "stats")]
    out: Option<PathBuf>,
    /// Also write each graph input that a selected operator reads, as an operator of type `Data`
    #[arg(long, requires = "config")]
    graph_inputs: bool,
    /// Show quantising whole: also write what quantises or dequantises next to a selected operator, with
    /// both sides, and the floats that quantised values stand for where the model does not compute them
    #[arg(long)]
    quant_dumpable: bool,
    /// Write no tensors: print a table of every tensor's statistics
    #[arg(long)]
    stats: bool,
    /// Tell which tensors would overflow in this dtype; may be repeated. Ends with 1 if one would
    #[arg(long = "as", id = "narrow", value_name = "DTYPE")]
    narrow: Vec<NarrowFloat>,
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
    pub(crate) json: bool,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    pub(crate) ring: RingArguments,
    #[command(flatten)]
    modes: ModeArguments,
    #[command(flatten)]
    pub(crate) control: control::ControlArguments,
    #[command(flatten)]
    pub(crate) policy: PolicyArguments,
    #[command(flatten)]
    pub(crate) once: once::OnceArguments,
    #[command(flatten)]
    pub(crate) compress: CompressArguments,
    #[command(flatten)]
    pub(crate) volume: VolumeArguments,
}

/// Everything the closing report tells.
pub(crate) struct Outcome {
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) title: String,
    pub(crate) model: ModelId,
    pub(crate) purpose: Purpose,
    pub(crate) n_steps: u64,
    pub(crate) summary: Summary,
    /// Wall time of all steps until the last byte was handed to the operating system.
    pub(crate) time: Duration,
    /// Wall time of one step without the dump.
    pub(crate) baseline: Option<Duration>,
    pub(crate) dump_dirs: Vec<PathBuf>,
    /// The directory that holds all of them, where that is not a common parent.
    pub(crate) tree_dir: Option<PathBuf>,
    /// Why tensors have no place in the dump, and how many.
    pub(crate) refused: Vec<(String, u64)>,
    /// Where operators that failed are.
    pub(crate) failure_dir: Option<PathBuf>,
    /// Whether only some tensors are written whole.
    pub(crate) has_rules: bool,
    /// Forecast of what would have been written, if nothing is.
    pub(crate) forecast: Option<Forecast>,
    pub(crate) stats: Option<StatsRows>,
    pub(crate) ranges: Option<Ranges>,
    /// Counts of the unfinished files of earlier, killed runs that were removed.
    pub(crate) left_overs: LeftOvers,
}

/// Model to run.
pub(crate) struct Subject {
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) model: Box<dyn LoadedModel>,
    /// Its name in dumps.
    pub(crate) id: ModelId,
    /// Its name in reports.
    pub(crate) title: String,
    /// Where its outputs go.
    pub(crate) output_files: Option<OutputFiles>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request::new(&arguments.run)?.for_models();
    let steering = Steering::start(&arguments.run, &request, false)?;
    let engine = arguments.run.engine()?;
    let source = ModelSource::File(&arguments.model);
    let (model, engine) = engine.load(source, request.plan.purpose)?;
    let id = ModelId {
        file_stem: file_stem(&arguments.model),
        graph_name: model.signature().graph_name.clone(),
        load: Some(1),
        device: arguments.run.device,
    };
    let title = id.file_stem.clone();
    let modes = arguments.run.modes.modes();
    let output_files = (arguments.save_outputs.as_deref())
        .map(|dir| OutputFiles::new(dir, model.signature(), modes))
        .transpose()?;
    let mut subject = Subject {
        engine: engine.clone(),
        model,
        id,
        title,
        output_files,
    };
    let inputs = InputSource::new(&arguments.run, subject.model.signature())?;
    // The first step's inputs are checked before anything is created.
    inputs.step(0)?;
    let sinks = request.open(&arguments.run)?;
    let file = model_file(
        &subject.title,
        Some(&arguments.model),
        subject.model.signature(),
    );
    let recording = Recording::begin(
        ("dump", &engine),
        &arguments.run,
        &request,
        &sinks,
        vec![file],
    )?;
    let is_described = sinks.describe(&subject, &arguments.run)?;
    let (mut outcome, result) = run_one(
        &arguments.run,
        &request,
        &sinks,
        &mut subject,
        &inputs,
        &steering,
    )?;
    if !is_described {
        sinks.describe(&subject, &arguments.run)?;
    }
    recording.add(&outcome);
    outcome.left_overs = recording.left_overs(&sinks);
    let recorded = recording.finish(&sinks, &result);
    if arguments.run.json {
        print_outcome_json(&outcome)?;
    } else {
        print(&outcome)?;
    }
    finish(outcome, result)?;
    recorded
}

/// Runs `subject` for all its steps; the second result is how its last step ended.
pub(crate) fn run_one(
    arguments: &RunArguments,
    request: &Request,
    sinks: &Sinks,
    subject: &mut Subject,
    inputs: &InputSource,
    steering: &Steering<'_>,
) -> Result<(Outcome, Result<(), Failure>), Failure> {
    let n_steps = arguments.steps.unwrap_or(inputs.n_sets());
    let baseline = baseline(arguments, &mut *subject.model, inputs)?;
    let captured = capture(
        arguments, request, sinks, subject, inputs, n_steps, steering,
    )?;
    let id = subject.id.clone();
    let mut outcome = Outcome {
        engine: subject.engine.clone(),
        title: subject.title.clone(),
        purpose: request.plan.purpose,
        n_steps: captured.n_steps,
        time: captured.time,
        baseline,
        dump_dirs: sinks.dump_dirs(&id, captured.n_steps),
        tree_dir: sinks.tree_dir(),
        refused: sinks.refused(),
        failure_dir: sinks
            .failure_dir(&id, captured.n_steps)
            .filter(|_| captured.summary.counters.n_operators_written > 0)
            .filter(|_| matches!(request.plan.purpose, Purpose::Failures(_)))
            .or(captured.failure_dir),
        summary: captured.summary,
        ranges: sinks.take_ranges(&arguments.narrow)?,
        has_rules: !request.tensors.is_empty(),
        forecast: None,
        stats: if let Target::Stats(sink) = &sinks.target {
            Some(sink.take_rows())
        } else {
            None
        },
        model: id,
        left_overs: LeftOvers::default(),
    };
    if outcome.summary.n_overwrites > 0 {
        let list = serde_json::Value::Object(outcome.finding_json());
        sinks
            .write_overwrites(&format!("{list:#}\n"))
            .map_err(|error| Failure::new(PARTIAL, error))?;
    }
    let has_inputs = !subject.model.signature().inputs.is_empty();
    outcome.forecast = (sinks.dry_run.as_ref()).map(|run| run.take(arguments, has_inputs));
    Ok((outcome, captured.result))
}

/// Turns what went wrong while capturing into the command's end.
pub(crate) fn finish(mut outcome: Outcome, result: Result<(), Failure>) -> Result<(), Failure> {
    result?;
    let ring = outcome.summary.ring.take();
    policy::check(outcome.summary)?;
    ring::check(ring)?;
    if outcome.ranges.is_some_and(|ranges| ranges.has_overflow()) {
        return Err(Failure::silent(FOUND));
    }
    Ok(())
}

impl RunArguments {
    /// The engine that these ask for; it is told on standard error.
    pub(crate) fn engine(&self) -> Result<Arc<EngineInUse>, Failure> {
        let n_threads = self
            .threads
            .map_or_else(opscope_analysis::default_jobs, usize::from);
        let engine = EngineInUse::new(&self.engine, &self.graph, n_threads, self.json)?;
        Ok(Arc::new(engine))
    }
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
    arguments: &RunArguments,
    model: &mut dyn LoadedModel,
    inputs: &InputSource,
) -> Result<Option<Duration>, Failure> {
    if arguments.no_baseline || arguments.volume.dry_run {
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

/// Result of capturing, also where it ended early.
struct Captured {
    summary: Summary,
    time: Duration,
    /// Steps that were begun.
    n_steps: u64,
    result: Result<(), Failure>,
    /// Where the failing step is that was repeated on the word of the environment.
    failure_dir: Option<PathBuf>,
}

fn capture(
    arguments: &RunArguments,
    request: &Request,
    sinks: &Sinks,
    subject: &mut Subject,
    inputs: &InputSource,
    n_steps: u64,
    steering: &Steering<'_>,
) -> Result<Captured, Failure> {
    if let Some(error) = subject.model.refusal(request.plan.purpose) {
        return Err(error.into());
    }
    let session = start(arguments, request, sinks, n_steps)?;
    let model = &mut subject.model;
    let control = session.control();
    steering.begin(&control)?;
    let graph_inputs = input_names(&**model);
    let id = Arc::new(subject.id.clone());
    let (mut tap, selected) = session.attach_graph(&id, model.description().graph(&graph_inputs));
    let graph = subject.engine.graph();
    unmatched::warn(&tap, (&id, &**model, graph), &sinks.target);
    volume::warn_unused(&request.tensors, &selected, &**model, &id);
    let stop_flag = stop_on_signal(session.stop_flag());
    let listening = arguments.ring.listen_for(&session)?;
    let watch = session.watch();
    let mut n_steps_begun = 0_u64;
    let n_in_step = model.operators().len() as u64;
    let mut told = Told::new(&tap);
    model.prepare(&tap);
    let start = Instant::now();
    let position = || position(watch.counters(), n_in_step);
    let run = || {
        let result = (0..n_steps).try_for_each(|step| {
            let fail = |tap: &Tap, error: Failure| {
                tap.fail_step(&ring::reason(&error));
                error
            };
            let inputs = inputs.step(step).map_err(|error| fail(&tap, error))?;
            n_steps_begun += 1;
            tap.begin_step(step);
            if told.tell(&tap, step) {
                unmatched::warn(&tap, (&id, &**model, graph), &sinks.target);
            }
            // Nothing looks at the flag while a step runs without the tap.
            if tap.is_stopped() {
                return Err(at_step(EngineError::Stopped, step));
            }
            // Of a step that is not kept nothing would be written.
            if arguments.volume.dry_run && !tap.is_active() {
                return Ok(());
            }
            let outputs = model
                .run(&inputs, Some(&tap))
                .map_err(|error| match error {
                    EngineError::Stopped => at_step(error, step),
                    error => fail(&tap, at_step(error, step)),
                })?;
            tap.end_step();
            let files = subject.output_files.as_ref();
            files.map_or(Ok(()), |files| files.write(step, &outputs))
        });
        // The end of the session sets the flag too.
        let is_signalled = stop_flag.load(Ordering::Relaxed);
        let summary = session.finish();
        let result = policy::without_own_stop(result, &summary, is_signalled);
        (summary, result)
    };
    let (summary, result) = steering.during(&control, || {
        let n_operators = n_in_step.saturating_mul(n_steps);
        progress::with_operator_bar("dumping", n_operators, position, run)
    })?;
    let time = start.elapsed();
    drop(listening);
    warn_of_runs(&mut **model);
    let failure_dir = sinks.repeat_failure(subject, inputs, n_steps_begun, &result)?;
    Ok(Captured {
        summary,
        time,
        n_steps: n_steps_begun,
        result,
        failure_dir,
    })
}

fn warn_of_runs(model: &mut dyn LoadedModel) {
    for warning in model.take_warnings() {
        tell!("opscope: warning: {warning}");
    }
}

/// How many operators were run, counting steps that are not dumped.
fn position(c: Counters, n_in_step: u64) -> u64 {
    let n_passed_over = c.n_steps.saturating_sub(c.n_steps_active);
    n_passed_over
        .saturating_mul(n_in_step)
        .saturating_add(c.n_operators_seen)
}

/// Names of the values that a caller of the model provides.
fn input_names(model: &dyn LoadedModel) -> Vec<String> {
    let inputs = model.signature().inputs.iter();
    inputs.map(|value| value.name.clone()).collect()
}

/// A session that writes to `sinks`.
fn start(
    arguments: &RunArguments,
    request: &Request,
    sinks: &Sinks,
    n_steps: u64,
) -> Result<Session, Failure> {
    let options = SessionOptions {
        queue_bytes_max: u64::from(arguments.queue_mib) << 20,
        n_writers: request.n_writers(arguments.writers.into()),
        // Nothing is there to be removed again.
        ring: match arguments.volume.dry_run {
            true => None,
            false => arguments.ring.options(&sinks.target),
        },
        ..arguments.policy.session_options()
    };
    let mut plan = request.plan.clone();
    plan.steps = plan.steps.intersection(arguments.ring.steps());
    arguments.ring.warn_if_none(&plan.steps, n_steps);
    let session = Session::start(plan, sinks.first(), options)
        .map_err(|error| Failure::new(PARTIAL, anyhow!(error).context("cannot start a thread")))?;
    let is_marking = request.is_marking();
    if !arguments.set_dump.is_empty() && !is_marking {
        warn_idle_marks();
    }
    for target in &arguments.set_dump {
        session.set_dump(target, true);
    }
    Ok(session)
}

/// Lets the first signal stop the run that `flag` belongs to; a second one ends the process at once.
fn stop_on_signal(flag: Arc<AtomicBool>) -> Arc<AtomicBool> {
    static CURRENT: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    static HANDLER: Once = Once::new();
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(flag.clone());
    HANDLER.call_once(|| {
        // Without a handler the first signal ends the process.
        let _ = ctrlc::set_handler(|| {
            let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
            let is_second = current
                .as_ref()
                .is_none_or(|flag| flag.swap(true, Ordering::Relaxed));
            if is_second {
                std::process::exit(INTERRUPTED.into());
            }
        });
    });
    flag
}

fn at_step(error: EngineError, step: u64) -> Failure {
    let failure = Failure::from(error);
    Failure {
        error: failure.error.map(|e| e.context(format!("step {step}"))),
        ..failure
    }
}

fn warn_idle_marks() {
    tell!("opscope: warning: `--set-dump` has no effect: `dump_mode` is not 2");
}
