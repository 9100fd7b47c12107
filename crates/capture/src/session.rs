//! A session: the period in which models are captured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use opscope_overflow::{OverflowDetector, ValueDetector};
use opscope_store::record::{ModelId, Operator};

use crate::budget::Budget;
use crate::control::LiveSettings;
use crate::counters::LiveCounters;
use crate::home::HomeProcess;
use crate::overwrite::OverwriteLog;
use crate::policy::FailureResponse;
use crate::queue::Queue;
use crate::record_intake::RecordIntake;
use crate::recorder::{
    FailureRecorder, FindingLimit, NonFiniteRecorder, OverflowRecorder, PurposeRecorder,
    ValueRecorder, WatchRecorder,
};
use crate::ring::Ring;
use crate::tap::TapContext;
use crate::tensor_intake::TensorIntake;
use crate::writer::{RecordWriter, guarded};
use crate::{
    Counters, DeliberateInfinities, FailurePolicy, FirstNonFinite, FirstOverflow, GraphView,
    OverwrittenValue, Plan, PlanRefusal, Pool, Purpose, RingOptions, RingReport, SelectedOperators,
    SessionControl, Sink, SinkError, Tap, TriggerKind, WhenBehind,
};

/// The limits and resources of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Maximum number of bytes of tensors that wait to be written or are being written; a single
    /// larger record is accepted alone.
    pub queue_bytes_max: u64,
    /// Number of writer threads; at least one is started.
    pub n_writers: usize,
    /// Response to a failure of the sink.
    pub on_failure: FailurePolicy,
    /// Response to a record that would exceed `queue_bytes_max`.
    pub when_behind: WhenBehind,
    /// Maximum number of bytes of all captured tensors. An operator is captured completely or not
    /// at all; the first one beyond the limit, in execution order, and all later ones are dropped.
    pub n_bytes_max: Option<u64>,
    /// The same for the number of tensors.
    pub n_tensors_max: Option<u64>,
    /// Which steps are removed again; `None` keeps them all.
    pub ring: Option<RingOptions>,
}

impl Default for SessionOptions {
    /// 256 MiB and two writers; a failure ends capturing, the engine waits, nothing is limited.
    fn default() -> Self {
        SessionOptions {
            queue_bytes_max: 256 << 20,
            n_writers: 2,
            on_failure: FailurePolicy::default(),
            when_behind: WhenBehind::default(),
            n_bytes_max: None,
            n_tensors_max: None,
            ring: None,
        }
    }
}

/// A running plan: writer threads that pass the records of taps to a sink.
pub struct CaptureSession {
    context: TapContext,
    writer: Arc<RecordWriter>,
    overwrites: Arc<Mutex<OverwriteLog>>,
    threads: Vec<JoinHandle<()>>,
}

/// The counts of a running session.
#[derive(Clone)]
pub struct SessionCounts(Arc<LiveCounters>);

impl SessionCounts {
    /// The counts so far. They are read one by one, so they need not add up before the end.
    pub fn counters(&self) -> Counters {
        self.0.snapshot()
    }
}

/// The outcome of a finished session.
#[derive(Debug)]
pub struct SessionSummary {
    /// Counts of everything that was offered.
    pub counters: Counters,
    /// The first tensor with NaN or an infinity among those selected. Deliberate infinities do not
    /// count.
    pub first_non_finite: Option<FirstNonFinite>,
    /// Deliberate infinities.
    pub deliberate_infinities: DeliberateInfinities,
    /// The sink's first error; [`Counters::n_failed`] counts the tensors. It may be 0, because
    /// other files can fail too.
    pub first_error: Option<SinkError>,
    /// Whether that ended capturing, according to [`FailurePolicy`].
    pub is_ended_by_failure: bool,
    /// The first operator whose arithmetic overflowed; [`Counters::n_operators_overflowed`] counts
    /// them.
    pub first_overflow: Option<FirstOverflow>,
    /// Watched values that changed after their operator had run, by order of execution; the first
    /// 1000.
    pub overwrites: Vec<OverwrittenValue>,
    /// Number of changes.
    pub n_overwrites: u64,
    /// Which steps stay, with [`SessionOptions::ring`].
    pub ring: Option<RingReport>,
}

impl CaptureSession {
    /// [`CaptureSession::start_with_detector`] with [`ValueDetector`].
    ///
    /// # Errors
    /// As for [`CaptureSession::start_with_detector`].
    pub fn start(
        plan: Plan,
        sink: Arc<dyn Sink>,
        options: SessionOptions,
    ) -> std::io::Result<CaptureSession> {
        CaptureSession::start_with_detector(plan, sink, options, Arc::new(ValueDetector))
    }

    /// Starts the writer threads. `detector` decides which operators overflowed.
    ///
    /// # Errors
    /// The operating system's error if it cannot start a thread.
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) with a ring and a sink that cannot remove
    /// steps.
    pub fn start_with_detector(
        plan: Plan,
        sink: Arc<dyn Sink>,
        options: SessionOptions,
        detector: Arc<dyn OverflowDetector>,
    ) -> std::io::Result<CaptureSession> {
        // Refused before anything is written: a ring that cannot remove steps would fill the disk.
        if options.ring.is_some() {
            let text = "this kind of dump cannot take steps back";
            let remover = sink.step_remover().ok_or_else(|| {
                std::io::Error::new(std::io::ErrorKind::Unsupported, text.to_owned())
            })?;
            remover.remember_steps();
        }
        let overwrites = Arc::default();
        let recorder = recorder_for(&plan, &detector, &overwrites);
        // The detector comes after the sink, which releases the elements that it has summarized.
        let may_summarize = recorder.keeps_everything() && !looks_for_overflow(&options);
        let counters = Arc::new(LiveCounters::default());
        let writer = Arc::new(RecordWriter {
            // The sink has three users: writers write to it, the ring removes steps, and taps let
            // it inspect tensors early.
            sink: sink.clone(),
            detector,
            queue: Queue::new(options.queue_bytes_max, options.when_behind),
            counters: counters.clone(),
            failures: FailureResponse::new(options.on_failure),
            ring: (options.ring)
                .map(|ring| Ring::new(ring, options.when_behind, sink.clone(), counters)),
            ended_steps: Arc::default(),
            first_overflow: Mutex::default(),
        });
        let tensors = TensorIntake::new(sink, may_summarize, options.queue_bytes_max);
        let budget = Budget::new(options.n_bytes_max, options.n_tensors_max);
        let mut session = CaptureSession {
            context: TapContext {
                intake: Arc::new(RecordIntake::new(tensors, budget, writer.clone())),
                recorder,
                settings: Arc::new(LiveSettings::new(plan)),
                findings: Arc::default(),
                is_stopped: Arc::default(),
                home: HomeProcess::here(),
            },
            writer,
            overwrites,
            threads: Vec::new(),
        };
        // If the system cannot start another thread, dropping the session ends those that already
        // run.
        for i in 0..options.n_writers.max(1) {
            let writer = session.writer.clone();
            let thread = thread::Builder::new()
                .name(format!("opscope-writer-{i}"))
                .spawn(move || writer.run())?;
            session.threads.push(thread);
        }
        Ok(session)
    }

    /// A tap for a loaded model, and the plan's selection from it. `graph_inputs` are the names of
    /// the values that a caller of the model provides.
    pub fn attach(
        &self,
        model: &Arc<ModelId>,
        operators: &[Arc<Operator>],
        graph_inputs: &[String],
    ) -> (Tap, SelectedOperators) {
        self.attach_graph(
            model,
            GraphView {
                operators,
                inputs: graph_inputs,
                ..GraphView::default()
            },
        )
    }

    /// [`CaptureSession::attach`] for a model whose constants are known.
    pub fn attach_graph(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
    ) -> (Tap, SelectedOperators) {
        let tap = Tap::new(self.context.clone(), model.clone(), graph);
        let selected = tap.selected().clone();
        (tap, selected)
    }

    /// Switches an operator, or all operators in a scope, on or off for models that are attached or
    /// receive another plan later, if the plan leaves the choice to such marks
    /// ([`KernelSelection::Marked`](crate::KernelSelection::Marked)).
    ///
    /// `target` is the name of an operator, or a leading part of names that ends before a `/`.
    /// Later calls take precedence, so that a part of a scope can be switched off again. Without
    /// any mark, only operators that request it themselves are dumped.
    pub fn set_dump(&self, target: &str, enabled: bool) {
        self.context.settings.mark(target, enabled);
    }

    /// A handle for switching the dump on and off from other threads.
    pub fn control(&self) -> SessionControl {
        SessionControl(self.context.settings.clone())
    }

    /// [`SessionControl::set_enabled`].
    pub fn set_enabled(&self, is_enabled: bool) {
        self.control().set_enabled(is_enabled);
    }

    /// [`SessionControl::is_enabled`].
    pub fn is_enabled(&self) -> bool {
        self.control().is_enabled()
    }

    /// [`SessionControl::replace_plan`].
    ///
    /// # Errors
    /// [`PlanRefusal`] if the plan has another purpose or another limit of overflowing operators.
    pub fn replace_plan(&self, plan: Plan) -> Result<(), PlanRefusal> {
        self.control().replace_plan(plan)
    }

    /// Memory for copies of borrowed tensors, also used by [`Probe`](crate::Probe). An engine that
    /// provides a tensor in several places copies it once itself.
    pub fn pool(&self) -> Arc<Pool> {
        self.context.intake.tensors.pool()
    }

    /// A flag that stops running models before their next operator when it is set, for example from
    /// a signal handler. Records submitted before are still written.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.context.is_stopped.clone()
    }

    /// A flag that keeps the last steps permanently when it is set, for example by a signal
    /// handler: those that exist when the current step ends. `None` without
    /// [`SessionOptions::ring`].
    pub fn ring_flag(&self) -> Option<Arc<AtomicBool>> {
        self.writer.ring.as_ref().map(|ring| ring.flag())
    }

    /// The counts, readable from another thread, also while [`CaptureSession::finish`] writes the
    /// rest.
    pub fn watch(&self) -> SessionCounts {
        SessionCounts(self.writer.counters.clone())
    }

    /// Applies [`SessionOptions::on_failure`] to a failure to write a file without tensors.
    pub fn note_failure(&self, error: SinkError) {
        self.writer.note(Err(error));
    }

    /// Writes everything that was submitted, ends the writers and reports.
    ///
    /// A fork of the session's process writes nothing and waits for nothing: its summary has the
    /// counts at the fork, and no findings.
    pub fn finish(mut self) -> SessionSummary {
        let writer = self.writer.clone();
        if self.context.home.is_elsewhere() {
            return SessionSummary::without_findings(writer.counters.snapshot());
        }
        self.end_writers();
        writer.end_steps();
        // Before the sink is notified of the end, because it still has to remove steps.
        let ring = writer.ring.as_ref().map(|ring| ring.finish());
        writer.note(guarded(|| writer.sink.finish()));
        let (overwrites, n_overwrites) = lock(&self.overwrites).take();
        let (first_non_finite, deliberate_infinities) = self.context.findings.finish();
        let first_overflow = lock(&writer.first_overflow).take();
        SessionSummary {
            counters: writer.counters.snapshot(),
            first_non_finite,
            deliberate_infinities,
            first_error: writer.failures.take_first_error(),
            is_ended_by_failure: writer.failures.is_capture_ended(),
            first_overflow: first_overflow.map(|(_, first)| first),
            overwrites,
            n_overwrites,
            ring,
        }
    }

    fn end_writers(&mut self) {
        if self.context.home.is_elsewhere() {
            // They are threads of another process.
            return std::mem::forget(std::mem::take(&mut self.threads));
        }
        // Records that wait are still written: the queue takes no more and lets writers end when it
        // is empty.
        self.writer.queue.close();
        for thread in self.threads.drain(..) {
            // Writers catch panics of the sink; nothing else in them panics.
            let _ = thread.join();
        }
    }
}

impl Drop for CaptureSession {
    fn drop(&mut self) {
        // The results will not be read, so models need not continue for them.
        self.context.is_stopped.store(true, Ordering::Relaxed);
        self.end_writers();
    }
}

impl SessionSummary {
    /// The counts alone.
    fn without_findings(counters: Counters) -> SessionSummary {
        SessionSummary {
            counters,
            first_non_finite: None,
            deliberate_infinities: DeliberateInfinities::default(),
            first_error: None,
            is_ended_by_failure: false,
            first_overflow: None,
            overwrites: Vec::new(),
            n_overwrites: 0,
            ring: None,
        }
    }
}

fn recorder_for(
    plan: &Plan,
    detector: &Arc<dyn OverflowDetector>,
    overwrites: &Arc<Mutex<OverwriteLog>>,
) -> Arc<dyn PurposeRecorder> {
    let limit = FindingLimit::new(plan.n_overflows_max);
    match plan.purpose {
        Purpose::Values => Arc::new(ValueRecorder),
        Purpose::Overflow => Arc::new(OverflowRecorder {
            detector: detector.clone(),
            limit,
        }),
        Purpose::NonFinite => Arc::new(NonFiniteRecorder { limit }),
        Purpose::Failures(detail) => Arc::new(FailureRecorder { detail }),
        Purpose::Watch => Arc::new(WatchRecorder {
            overwrites: overwrites.clone(),
        }),
    }
}

/// Whether writers search for overflows, for which they need the elements that the sink has seen.
fn looks_for_overflow(options: &SessionOptions) -> bool {
    let ring = options.ring.as_ref();
    ring.is_some_and(|ring| ring.triggers.contains(TriggerKind::Overflow))
}

/// Values behind these locks are replaced completely, so a panic cannot leave them half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
