//! Runs of a model for all its steps, with every operator captured by a sink.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opscope_capture::{CaptureSession, Plan, SessionOptions, SessionSummary, Sink, SinkError};
use opscope_dump::input_names;
use opscope_engine::{EngineError, LoadedModel};
use opscope_store::record::ModelId;
use opscope_tensor::Tensor;
use thiserror::Error;

/// Why a run ended early.
#[derive(Debug, Error)]
pub enum RunError {
    /// The operating system cannot create a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The model cannot be run, or an operator failed.
    #[error("step {step}")]
    Engine {
        /// The step.
        step: u64,
        /// Why.
        source: EngineError,
    },
    /// A tensor could not be stored.
    #[error("a tensor could not be stored")]
    Sink(#[source] SinkError),
}

/// The outcome of a run.
pub struct RunOutcome {
    /// The counts and findings of its session.
    pub summary: SessionSummary,
    /// Time of all steps, writing included.
    pub time: Duration,
    /// Number of started steps.
    pub n_steps: u64,
    /// Whether the session's flag stopped it before its end.
    pub is_stopped: bool,
}

/// Runs a model for steps with these numbers, and captures all operators' inputs and outputs in
/// `sink`.
///
/// `inputs` returns the inputs of the n-th step, in the model's order. `begin` is called with the
/// session before the first step.
///
/// # Errors
/// Those of `inputs`, or [`RunError`].
pub fn run_steps<E: From<RunError>>(
    (model, id): (&mut dyn LoadedModel, &Arc<ModelId>),
    sink: Arc<dyn Sink>,
    options: SessionOptions,
    steps: &[u64],
    mut inputs: impl FnMut(usize) -> Result<Vec<Tensor>, E>,
    begin: impl FnOnce(&CaptureSession),
) -> Result<RunOutcome, E> {
    let session = CaptureSession::start(Plan::everything(), sink, options);
    let session = session.map_err(RunError::Thread)?;
    let names = input_names(model);
    let (mut tap, _) = session.attach_graph(id, model.description().graph(&names));
    begin(&session);
    // ONNX Runtime makes a session with taps here, which is none of the steps' time.
    model.prepare(&tap);
    let start = Instant::now();
    let mut n_begun = 0;
    let mut is_stopped = false;
    let mut numbers = steps.iter().copied().enumerate();
    let result = numbers.try_for_each(|(nth, step)| -> Result<(), E> {
        if is_stopped || tap.is_stopped() {
            is_stopped = true;
            return Ok(());
        }
        let given = inputs(nth)?;
        n_begun += 1;
        tap.begin_step(step);
        // Results are not needed: the last operator's outputs are in the sink.
        match model.run(&given, Some(&tap)) {
            Ok(_) => tap.end_step(),
            Err(EngineError::Stopped) => {
                is_stopped = true;
                return Ok(());
            }
            Err(source) => return Err(RunError::Engine { step, source }.into()),
        }
        Ok(())
    });
    // Submitted records are still written, even if the run failed.
    let mut summary = session.finish();
    result?;
    if let Some(error) = summary.first_error.take() {
        return Err(RunError::Sink(error).into());
    }
    Ok(RunOutcome {
        summary,
        time: start.elapsed(),
        n_steps: n_begun,
        is_stopped,
    })
}
