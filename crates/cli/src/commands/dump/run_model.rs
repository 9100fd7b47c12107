//! Runs a model for all steps under a dump.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use opscope_capture::{CaptureSession, Counters, Purpose, SessionOptions, SessionSummary, Tap};
use opscope_dump::{DumpRequest, OpenDump, input_names};
use opscope_engine::{EngineError, LoadedModel};
use opscope_store::StoreError;
use opscope_store::record::ModelId;
use opscope_store::temporary::LeftOvers;

use super::control::{ControlNotices, RemoteControl};
use super::dump_report::DumpReport;
use super::outputs::OutputFiles;
use super::{RunArguments, dry_run, pieces, policy, ring, unmatched, volume};
use crate::console::report;
use crate::engine::EngineInUse;
use crate::exit::{CommandFailure, CommandResult, FOUND, INTERRUPTED, PARTIAL};
use crate::inputs::InputSource;
use crate::{progress, signals};

/// Maximum number of runs without the dump, for timing.
const N_BASELINE_RUNS_MAX: u32 = 3;
/// No further timing run starts after this time.
const BASELINE_TIME_MAX: Duration = Duration::from_millis(300);

/// A model to run.
pub(crate) struct LoadedRun {
    pub(crate) engine: Arc<EngineInUse>,
    pub(crate) model: Box<dyn LoadedModel>,
    /// Its name in dumps.
    pub(crate) id: ModelId,
    /// Its title in reports.
    pub(crate) title: String,
    /// Where its outputs are written.
    pub(crate) output_files: Option<OutputFiles>,
}

/// Runs `run` for all steps; also returns how its last step ended. An error in `failed` counts as a
/// failure of the dump.
pub(crate) fn dump_model(
    arguments: &RunArguments,
    request: &DumpRequest,
    dump: &OpenDump,
    run: &mut LoadedRun,
    inputs: &InputSource,
    remote: &RemoteControl<'_>,
    failed: Option<StoreError>,
) -> CommandResult<(DumpReport, CommandResult)> {
    let n_steps = arguments.steps.unwrap_or(inputs.n_sets());
    let baseline = baseline(arguments, &mut *run.model, inputs)?;
    if let Some(error) = run.model.refusal(request.plan.purpose) {
        return Err(error.into());
    }
    let session = start(arguments, request, dump, n_steps)?;
    if let Some(error) = failed {
        session.note_failure(error.into());
    }
    let captured = capture(
        session,
        (arguments, request, dump),
        run,
        inputs,
        n_steps,
        remote,
    )?;
    let id = run.id.clone();
    let purpose = request.plan.purpose;
    let last_step = captured.n_steps.saturating_sub(1);
    let has_failed = captured.summary.counters.n_operators_written > 0
        && matches!(purpose, Purpose::Failures(_));
    let mut report = DumpReport {
        engine: run.engine.clone(),
        title: run.title.clone(),
        purpose,
        n_steps: captured.n_steps,
        time: captured.time,
        baseline,
        dump_dirs: dump.step_dirs(&id, captured.n_steps),
        tree_dir: dump.rank_dir(),
        refused: dump.refused(),
        failure_dir: dump
            .failure_dir(&id, last_step)
            // The tree defines this directory even if it does not exist.
            .filter(|dir| has_failed && dir.is_dir())
            .or(captured.failure_dir),
        summary: captured.summary,
        ranges: dump.take_ranges().map_err(pieces::unreadable)?,
        has_rules: !request.tensors.is_empty(),
        forecast: None,
        has_random_inputs: arguments.inputs.is_empty() && !run.model.signature().inputs.is_empty(),
        stats: dump.take_rows(),
        model: id,
        left_overs: LeftOvers::default(),
    };
    if report.summary.n_overwrites > 0 {
        let list = serde_json::Value::Object(report.finding_json());
        if let Err(error) = dump.write_overwrites(&format!("{list:#}\n")) {
            report.summary.first_error.get_or_insert(error.into());
        }
    }
    if let Some(counted) = dump.dry_run() {
        let forecast = report.forecast.insert(counted.take());
        dry_run::warn(forecast, report.has_random_inputs);
    }
    Ok((report, captured.result))
}

/// Turns capture failures into the command's result.
pub(crate) fn finish(mut report: DumpReport, result: CommandResult) -> CommandResult {
    // Failures come before findings: the exit code for overflow means that the run went well
    // otherwise.
    result?;
    let ring = report.summary.ring.take();
    policy::check(report.summary)?;
    ring::check(ring)?;
    if report.ranges.is_some_and(|ranges| ranges.has_overflow()) {
        return Err(CommandFailure::silent(FOUND));
    }
    Ok(())
}

/// Wall time of one step without the dump, after a warm-up step.
///
/// A model that fails here runs again under the dump, so that its values up to the failure are
/// kept.
fn baseline(
    arguments: &RunArguments,
    model: &mut dyn LoadedModel,
    inputs: &InputSource,
) -> CommandResult<Option<Duration>> {
    if arguments.no_baseline || arguments.volume.dry_run {
        return Ok(None);
    }
    let inputs = inputs.step(0)?;
    if model.run(&inputs, None).is_err() {
        return Ok(None);
    }
    // The minimum of a few runs: other load on the machine only adds time.
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

/// Result of capturing, even if it ended early.
struct CaptureResult {
    summary: SessionSummary,
    time: Duration,
    /// Number of started steps.
    n_steps: u64,
    result: CommandResult,
    /// Directory of the failing step that the environment asked to repeat.
    failure_dir: Option<PathBuf>,
}

fn capture(
    session: CaptureSession,
    (arguments, request, dump): (&RunArguments, &DumpRequest, &OpenDump),
    run: &mut LoadedRun,
    inputs: &InputSource,
    n_steps: u64,
    remote: &RemoteControl<'_>,
) -> CommandResult<CaptureResult> {
    let model = &mut run.model;
    let control = session.control();
    remote.begin(&control)?;
    let graph_inputs = input_names(&**model);
    let id = Arc::new(run.id.clone());
    let (mut tap, selected) = session.attach_graph(&id, model.description().graph(&graph_inputs));
    let graph = run.engine.graph();
    unmatched::warn(&tap, (&id, &**model, graph), dump.is_acl());
    volume::warn_unused(&request.tensors, &selected, &**model, &id);
    let stop_flag = stop_on_signal(session.stop_flag());
    let listening = arguments.ring.listen_for(&session)?;
    let watch = session.watch();
    let mut n_steps_begun = 0_u64;
    let n_in_step = model.operators().len() as u64;
    let mut notices = ControlNotices::new(&tap);
    // ONNX Runtime creates its session with taps here. Inside the first step this would count as
    // dump time, and it may take many times as long as the step.
    model.prepare(&tap);
    let start = Instant::now();
    let run_steps = || {
        let result = (0..n_steps).try_for_each(|step| {
            let fail = |tap: &Tap, error: CommandFailure| {
                tap.fail_step(&ring::reason(&error));
                error
            };
            let inputs = inputs.step(step).map_err(|error| fail(&tap, error))?;
            n_steps_begun += 1;
            tap.begin_step(step);
            if notices.report(&tap, step) {
                unmatched::warn(&tap, (&id, &**model, graph), dump.is_acl());
            }
            // Without the tap, nothing checks the flag during a step.
            if tap.is_stopped() {
                return Err(at_step(EngineError::Stopped, step));
            }
            // A step that is not kept writes nothing.
            if arguments.volume.dry_run && !tap.is_active() {
                return Ok(());
            }
            let outputs = model
                .run(&inputs, Some(&tap))
                .map_err(|error| match error {
                    // An interruption is not an exception, so it does not trigger keeping steps.
                    EngineError::Stopped => at_step(error, step),
                    error => fail(&tap, at_step(error, step)),
                })?;
            tap.end_step();
            let files = run.output_files.as_ref();
            files.map_or(Ok(()), |files| files.write(step, &outputs))
        });
        // The end of the session sets the flag too.
        let is_signalled = stop_flag.load(Ordering::Relaxed);
        let summary = session.finish();
        let result = policy::without_own_stop(result, &summary, is_signalled);
        (summary, result)
    };
    let (summary, result) = remote.during(&control, || {
        // `--steps` may be any number, so the product may overflow.
        let n_operators = n_in_step.saturating_mul(n_steps);
        progress::with_operator_bar(
            "dumping",
            n_operators,
            || position(watch.counters(), n_in_step),
            run_steps,
        )
    })?;
    let time = start.elapsed();
    // No step can be kept any more, so a signal without effect is reported here, before the report.
    drop(listening);
    warn_of_runs(&mut **model);
    let failure_dir = repeat_failure(run, dump, inputs, n_steps_begun, &result)?;
    Ok(CaptureResult {
        summary,
        time,
        n_steps: n_steps_begun,
        result,
        failure_dir,
    })
}

/// Repeats the last started step if an operator failed and nothing else keeps failures; returns the
/// directory of its files.
fn repeat_failure(
    run: &mut LoadedRun,
    dump: &OpenDump,
    inputs: &InputSource,
    n_steps_begun: u64,
    result: &CommandResult,
) -> CommandResult<Option<PathBuf>> {
    let (Err(failure), Some(failures)) = (result, dump.failures()) else {
        return Ok(None);
    };
    let step = n_steps_begun.saturating_sub(1);
    let inputs = inputs.step(step)?;
    let error = failure.error.as_ref();
    let error = error.and_then(|error| error.downcast_ref::<EngineError>());
    // Only an operator's failure recurs when the step is repeated.
    if !matches!(error, Some(EngineError::Operator { .. })) {
        return Ok(None);
    }
    let (dir, reason) = failures.repeat(&mut *run.model, &run.id, step, &inputs);
    if let Some(reason) = reason {
        progress::report(&format!("warning: the failure is not dumped: {reason}"));
    }
    Ok(dir)
}

fn warn_of_runs(model: &mut dyn LoadedModel) {
    for warning in model.take_warnings() {
        report!("opscope: warning: {warning}");
    }
}

/// Number of operators run, including steps that are not dumped.
fn position(c: Counters, n_in_step: u64) -> u64 {
    let n_passed_over = c.n_steps.saturating_sub(c.n_steps_active);
    n_passed_over
        .saturating_mul(n_in_step)
        .saturating_add(c.n_operators_seen)
}

/// A session that writes to `dump`.
fn start(
    arguments: &RunArguments,
    request: &DumpRequest,
    dump: &OpenDump,
    n_steps: u64,
) -> CommandResult<CaptureSession> {
    let options = SessionOptions {
        queue_bytes_max: u64::from(arguments.queue_mib) << 20,
        n_writers: request.n_writers(arguments.writers.into()),
        ring: arguments.ring.options(),
        ..arguments.policy.session_options()
    };
    let mut plan = request.plan.clone();
    plan.steps = plan.steps.intersection(arguments.ring.steps());
    arguments.ring.warn_if_none(&plan.steps, n_steps);
    let session = dump.start_session(plan, options).map_err(|error| {
        CommandFailure::new(PARTIAL, anyhow!(error).context("cannot start a thread"))
    })?;
    if !arguments.set_dump.is_empty() && !request.is_marking() {
        report!("opscope: warning: `--set-dump` has no effect: `dump_mode` is not 2");
    }
    for target in &arguments.set_dump {
        session.set_dump(target, true);
    }
    Ok(session)
}

/// Whether a signal came, during a run or after it.
static IS_SIGNALLED: AtomicBool = AtomicBool::new(false);

/// Whether a signal came since the first run began.
pub(crate) fn is_signalled() -> bool {
    IS_SIGNALLED.load(Ordering::Relaxed)
}

/// Makes the first signal stop the run of `flag`; a second one ends the process at once.
pub(crate) fn stop_on_signal(flag: Arc<AtomicBool>) -> Arc<AtomicBool> {
    *stopped_runs() = vec![flag.clone()];
    handle_signals();
    flag
}

/// Like [`stop_on_signal`], in addition to the runs that a signal already stops.
pub(crate) fn stop_too_on_signal(flag: Arc<AtomicBool>) {
    let mut runs = stopped_runs();
    // A signal that came for the others applies to this run as well.
    if is_signalled() {
        flag.store(true, Ordering::Relaxed);
    }
    runs.push(flag);
}

/// The runs that a signal stops. A process can set its handler only once and `opscope op` runs
/// several models, so the handler looks up the current ones.
fn stopped_runs() -> MutexGuard<'static, Vec<Arc<AtomicBool>>> {
    static RUNS: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle_signals() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Without a handler the first signal ends the process.
        let _ = signals::on_ending_signal(|_| {
            let runs = stopped_runs();
            IS_SIGNALLED.store(true, Ordering::Relaxed);
            let mut n_running = 0;
            for flag in runs.iter() {
                n_running += usize::from(!flag.swap(true, Ordering::Relaxed));
            }
            if n_running == 0 {
                std::process::exit(INTERRUPTED.into());
            }
        });
    });
}

fn at_step(error: EngineError, step: u64) -> CommandFailure {
    let failure = CommandFailure::from(error);
    CommandFailure {
        error: failure.error.map(|e| e.context(format!("step {step}"))),
        ..failure
    }
}
