//! A stretch of time in which models are captured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use opscope_store::record::{ModelId, Operator};

use crate::budget::Budget;
use crate::control::Wanted;
use crate::counters::{LiveCounters, add};
use crate::home::HomeProcess;
use crate::non_finite::Findings;
use crate::overwrite::Overwrites;
use crate::policy::Ending;
use crate::pool::Pool;
use crate::queue::{Order, Queue};
use crate::ring::{Ring, Swept};
use crate::writer::{self, guarded};
use crate::{
    Control, Counters, DeliberateInfinities, FailurePolicy, FirstNonFinite, FirstOverflow,
    GraphView, Overwrite, Plan, PlanRefused, Purpose, RingOptions, RingReport, Selected, Sink,
    SinkError, StepRemover, Tap, TriggerKind, WhenBehind, Written, select::select_marked,
};

/// How much a session may hold and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Most bytes of tensors that wait to be written or are being written; a single larger record
    /// goes through alone.
    pub queue_bytes_max: u64,
    /// Number of writer threads; at least one is started.
    pub n_writers: usize,
    /// Response to a failure of the sink.
    pub on_failure: FailurePolicy,
    /// Response to a record that would exceed `queue_bytes_max`.
    pub when_behind: WhenBehind,
    /// Most bytes of tensors that are taken in all. An operator is taken whole or not at all; the
    /// first that would go beyond, in the order of execution, and all later ones are dropped.
    pub n_bytes_max: Option<u64>,
    /// The same for the number of tensors.
    pub n_records_max: Option<u64>,
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
            n_records_max: None,
            ring: None,
        }
    }
}

/// Tensors of more than this part of the queue's budget are large: they are not held beside the engine's own memory.
const LARGE_PART: u64 = 4;

/// A plan at work: writer threads that carry what taps submit to a sink.
pub struct Session {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
}

/// The counts of a session while it is at work.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// The counts so far. They are read one by one, so they need not add up before the end.
    pub fn counters(&self) -> Counters {
        self.0.counters.snapshot()
    }
}

/// The outcome of a finished session.
#[derive(Debug)]
pub struct Summary {
    /// Counts of everything that was offered.
    pub counters: Counters,
    /// The first tensor with NaN or an infinity among those selected. Infinities that somebody wants do not
    /// count.
    pub first_non_finite: Option<FirstNonFinite>,
    /// Infinities that somebody wants.
    pub deliberate_infinities: DeliberateInfinities,
    /// The first refusal of the sink; [`Counters::n_failed`] says how many tensors were refused. It
    /// may be 0: files beside the tensors can fail too.
    pub first_error: Option<SinkError>,
    /// Whether that ended capturing, as [`FailurePolicy`] says.
    pub is_ended_by_failure: bool,
    /// The first operator whose arithmetic overflowed; [`Counters::n_operators_overflowed`] says how
    /// many there were.
    pub first_overflow: Option<FirstOverflow>,
    /// Watched values that changed after their operator had run, by order of execution; the first
    /// 1000.
    pub overwrites: Vec<Overwrite>,
    /// How many changes there were.
    pub n_overwrites: u64,
    /// Which steps stay, with [`SessionOptions::ring`].
    pub ring: Option<RingReport>,
}

pub(crate) struct Shared {
    /// The plan at the start. Its purpose and its limit of overflows stay; everything else is read
    /// from [`Shared::wanted`], by taps.
    pub(crate) plan: Plan,
    pub(crate) wanted: Wanted,
    pub(crate) sink: Arc<dyn Sink>,
    /// Whether the sink looks at tensors before they are queued.
    pub(crate) is_reducing: bool,
    /// Most bytes of a tensor that may wait for a writer in memory that the engine does without.
    waiting_bytes_max: u64,
    pub(crate) queue: Queue,
    pub(crate) counters: LiveCounters,
    pub(crate) is_stopped: Arc<AtomicBool>,
    pub(crate) ending: Ending,
    pub(crate) budget: Budget,
    pub(crate) pool: Arc<Pool>,
    pub(crate) first_error: Mutex<Option<SinkError>>,
    pub(crate) findings: Arc<Findings>,
    pub(crate) first_overflow: Mutex<Option<(Order, FirstOverflow)>>,
    pub(crate) overwrites: Mutex<Overwrites>,
    /// The latest time stamp that was given out.
    pub(crate) last_timestamp_us: AtomicU64,
    /// Operators that overflowed, where their number is limited.
    pub(crate) n_overflows: AtomicU64,
    pub(crate) ring: Option<Arc<Ring>>,
    /// The process that has the writers.
    pub(crate) home: HomeProcess,
    /// Operators and scopes that were switched on or off.
    marks: Mutex<Vec<(String, bool)>>,
}

impl Shared {
    pub(crate) fn select(&self, plan: &Plan, model: &ModelId, graph: GraphView<'_>) -> Selected {
        let marks = lock(&self.marks).clone();
        select_marked(plan, model, graph, &marks)
    }

    /// Whether a tensor takes so much of the queue's budget that the engine should wait for whoever looks at it,
    /// rather than go on while its memory is held.
    pub(crate) fn is_large(&self, n_bytes: usize) -> bool {
        n_bytes as u64 > self.waiting_bytes_max
    }

    /// Counts what a ring has removed.
    pub(crate) fn note_removed(&self, swept: &Swept) {
        add(&self.counters.n_files_removed, swept.removed.n_files);
        add(&self.counters.n_bytes_removed, swept.removed.n_bytes);
    }

    /// The ring, and the part of the sink that takes its steps back.
    pub(crate) fn ring_and_remover(&self) -> Option<(&Arc<Ring>, &dyn StepRemover)> {
        self.ring.as_ref().zip(self.sink.step_remover())
    }

    /// Counts what a sink wrote beside records, or remembers why it could not.
    pub(crate) fn note(&self, result: Result<Written, SinkError>) {
        match result {
            Ok(written) => {
                self.counters.add_files(written);
            }
            Err(error) => self.fail(error),
        }
    }
}

impl Session {
    /// Starts the writer threads.
    ///
    /// # Errors
    /// The operating system's, if it gives no thread. [`Unsupported`](std::io::ErrorKind::Unsupported)
    /// with a ring and a sink that cannot take steps back.
    pub fn start(
        plan: Plan,
        sink: Arc<dyn Sink>,
        options: SessionOptions,
    ) -> std::io::Result<Session> {
        if options.ring.is_some() {
            let text = "this kind of dump cannot take steps back";
            let remover = sink.step_remover().ok_or_else(|| {
                std::io::Error::new(std::io::ErrorKind::Unsupported, text.to_owned())
            })?;
            remover.remember_steps();
        }
        let shared = Arc::new(Shared {
            wanted: Wanted::new(plan.clone()),
            is_reducing: is_reducing(&plan, &*sink, &options),
            waiting_bytes_max: options.queue_bytes_max / LARGE_PART,
            plan,
            sink,
            queue: Queue::new(options.queue_bytes_max, options.when_behind),
            counters: LiveCounters::default(),
            is_stopped: Arc::default(),
            ending: Ending::new(options.on_failure),
            budget: Budget::new(options.n_bytes_max, options.n_records_max),
            pool: Arc::new(Pool::new(options.queue_bytes_max)),
            first_error: Mutex::default(),
            findings: Arc::default(),
            first_overflow: Mutex::default(),
            overwrites: Mutex::default(),
            last_timestamp_us: AtomicU64::new(0),
            n_overflows: AtomicU64::new(0),
            home: HomeProcess::here(),
            ring: (options.ring).map(|ring| Ring::new(ring, options.when_behind)),
            marks: Mutex::default(),
        });
        let mut session = Session {
            shared,
            writers: Vec::new(),
        };
        for i in 0..options.n_writers.max(1) {
            let shared = session.shared.clone();
            let writer = thread::Builder::new()
                .name(format!("opscope-writer-{i}"))
                .spawn(move || writer::run(&shared))?;
            session.writers.push(writer);
        }
        Ok(session)
    }

    /// A tap for a loaded model, and what the plan selects of it. `graph_inputs` are the names of the
    /// values that a caller of the model provides.
    pub fn attach(
        &self,
        model: &Arc<ModelId>,
        operators: &[Arc<Operator>],
        graph_inputs: &[String],
    ) -> (Tap, Selected) {
        self.attach_graph(
            model,
            GraphView {
                operators,
                inputs: graph_inputs,
                ..GraphView::default()
            },
        )
    }

    /// [`Session::attach`] where constants of the model are known.
    pub fn attach_graph(&self, model: &Arc<ModelId>, graph: GraphView<'_>) -> (Tap, Selected) {
        let shared = &self.shared;
        let tap = Tap::new(shared.clone(), model.clone(), graph);
        let selected = tap.selected().clone();
        (tap, selected)
    }

    /// Switches an operator, or all operators in a scope, on or off for models that are attached or
    /// given another plan later, where the plan leaves the choice to such marks ([`KernelSelection::Marked`](crate::KernelSelection::Marked)).
    ///
    /// `target` is the name of an operator, or a leading part of names that ends before a `/`. A later
    /// call goes before an earlier one, so that a part of a scope can be switched off again. Without
    /// any mark only operators are dumped that ask for it themselves.
    pub fn set_dump(&self, target: &str, enabled: bool) {
        lock(&self.shared.marks).push((target.to_owned(), enabled));
    }

    /// A handle to switch the dump with from other threads.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
    }

    /// [`Control::set_enabled`].
    pub fn set_enabled(&self, is_enabled: bool) {
        self.control().set_enabled(is_enabled);
    }

    /// [`Control::is_enabled`].
    pub fn is_enabled(&self) -> bool {
        self.control().is_enabled()
    }

    /// [`Control::replace_plan`].
    ///
    /// # Errors
    /// [`PlanRefused`] if the plan has another purpose or another limit of overflowing operators.
    pub fn replace_plan(&self, plan: Plan) -> Result<(), PlanRefused> {
        self.control().replace_plan(plan)
    }

    /// Memory for copies of tensors that an engine lends, the same that [`Probe`](crate::Probe) copies to.
    /// An engine that shows one tensor in several places copies it once itself.
    pub fn pool(&self) -> Arc<Pool> {
        self.shared.pool.clone()
    }

    /// A flag that stops running models before their next operator when it is set, from a signal
    /// handler for example. What was submitted before is still written.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.shared.is_stopped.clone()
    }

    /// A flag that keeps the last steps for good when it is set, from a signal handler for example:
    /// those that are there when the current step ends. `None` without [`SessionOptions::ring`].
    pub fn ring_flag(&self) -> Option<Arc<AtomicBool>> {
        self.shared.ring.as_ref().map(|ring| ring.flag())
    }

    /// A look at the counts from another thread, also while [`Session::finish`] writes the rest.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Writes everything that was submitted, ends the writers and reports.
    ///
    /// In a fork of the process that began the session nothing is written and nothing waited for: the
    /// summary has the counts at the fork, and no findings.
    pub fn finish(mut self) -> Summary {
        if self.shared.home.is_elsewhere() {
            return Summary::of_counters(self.shared.counters.snapshot());
        }
        self.end_writers();
        let shared = &self.shared;
        let ring = shared.ring_and_remover().map(|(ring, remover)| {
            shared.note_removed(&ring.finish(remover));
            ring.take_report()
        });
        shared.note(guarded(|| shared.sink.finish()));
        let (overwrites, n_overwrites) = lock(&shared.overwrites).take();
        let (first_non_finite, deliberate_infinities) = shared.findings.finish();
        let first_overflow = lock(&shared.first_overflow).take();
        Summary {
            counters: shared.counters.snapshot(),
            first_non_finite,
            deliberate_infinities,
            first_error: lock(&shared.first_error).take(),
            is_ended_by_failure: shared.ending.is_capture_ended(),
            first_overflow: first_overflow.map(|(_, first)| first),
            overwrites,
            n_overwrites,
            ring,
        }
    }

    fn end_writers(&mut self) {
        if self.shared.home.is_elsewhere() {
            // They are threads of another process.
            return std::mem::forget(std::mem::take(&mut self.writers));
        }
        self.shared.queue.close();
        for writer in self.writers.drain(..) {
            // Writers catch panics of the sink; nothing else in them panics.
            let _ = writer.join();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.end_writers();
    }
}

impl Summary {
    /// Counts without findings.
    fn of_counters(counters: Counters) -> Summary {
        Summary {
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

/// Whether the sink may take what it needs of a tensor before anybody else has looked at it.
fn is_reducing(plan: &Plan, sink: &dyn Sink, options: &SessionOptions) -> bool {
    let ring = options.ring.as_ref();
    let looks_for_overflow = ring.is_some_and(|ring| ring.triggers.contains(TriggerKind::Overflow));
    sink.summarizer().is_some() && plan.purpose == Purpose::Values && !looks_for_overflow
}

/// Values behind these locks are replaced whole, so a panic cannot leave them half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
