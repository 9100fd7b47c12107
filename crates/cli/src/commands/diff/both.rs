//! Both sides: the golden side runs first or at the same time, and the target is compared while it
//! runs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use opscope_analysis::compare::experiments::Experimenter;
use opscope_analysis::compare::result::{Comparison, VerdictLevel};
use opscope_analysis::compare::run::{self, ComparisonRequest, OpenedDumps};
use opscope_analysis::compare::side::ComparedDump;
use opscope_capture::{SessionOptions, Sink};
use opscope_diff::{
    ComparingSink, FirstBeyond, GoldenSlots, RunOutcome, RunningGolden, TargetStore, WatchOptions,
    run_steps,
};
use opscope_dump::held::{HeldDump, HeldRoom};

use super::experiments::ExperimentPlan;
use super::inputs::{Side, SideInputs};
use super::side::ModelSide;
use super::store::{KeepingPlace, KeptSide, SideStore};
use super::{DiffArguments, DiffSides, LoadedSide};
use crate::commands::compare;
use crate::commands::dump::run_model::{is_signalled, stop_on_signal, stop_too_on_signal};
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, USAGE};
use crate::{format, progress};

/// A comparison of two sides, at least one of which runs.
pub(super) struct BothSides<'a> {
    arguments: &'a DiffArguments,
    request: &'a ComparisonRequest,
    place: &'a KeepingPlace,
    /// Duration of each phase.
    times: Vec<(&'static str, Duration)>,
    experiments: Option<ExperimentPlan<'a>>,
}

/// The result, with both sides.
pub(super) struct ComparedSides {
    pub(super) comparison: Comparison,
    pub(super) target: KeptSide,
    pub(super) golden: KeptSide,
}

impl<'a> BothSides<'a> {
    pub(super) fn new(
        arguments: &'a DiffArguments,
        request: &'a ComparisonRequest,
        place: &'a KeepingPlace,
    ) -> BothSides<'a> {
        BothSides {
            arguments,
            request,
            place,
            times: Vec::new(),
            experiments: None,
        }
    }

    pub(super) fn compare(&mut self, sides: &mut DiffSides) -> CommandResult<ComparedSides> {
        let inputs = self.inputs(sides)?;
        // Before the models are lent to their threads.
        self.experiments = ExperimentPlan::new(self.arguments, sides, &inputs)?;
        let models = (&mut sides.target, &mut sides.golden);
        if let (LoadedSide::Model(target), LoadedSide::Model(golden)) = models
            && let KeepingPlace::Process(room) = self.place
            && self.may_run_at_once([target, golden])
        {
            return self.at_once((target, golden), room, &inputs);
        }
        let golden = self.golden(&mut sides.golden, &inputs)?;
        let target = match &mut sides.target {
            LoadedSide::Model(model) => model,
            LoadedSide::Dump(path) => {
                let target = self.open("target", path)?;
                return self.judged(target, golden, None);
            }
        };
        if self.arguments.first {
            let compared = self.target(target, &golden, &inputs, true)?;
            if let Some(compared) = compared {
                return Ok(compared);
            }
            report!(
                "opscope: the first output beyond the limits is caused by its inputs: the target \
                 runs again, to the end"
            );
        }
        let compared = self.target(target, &golden, &inputs, false)?;
        // Only a run with `stops` may end without a result.
        compared.ok_or_else(|| CommandFailure::silent(INTERRUPTED))
    }

    /// The inputs of the models, made before either runs.
    fn inputs(&self, sides: &DiffSides) -> CommandResult<SideInputs> {
        let inputs = match (&sides.target, &sides.golden) {
            (LoadedSide::Model(target), LoadedSide::Model(golden)) => {
                let signatures = [target.model.signature(), golden.model.signature()];
                SideInputs::of_models(self.arguments, signatures)?
            }
            (LoadedSide::Model(model), LoadedSide::Dump(dump))
            | (LoadedSide::Dump(dump), LoadedSide::Model(model)) => {
                let name = match &sides.target {
                    LoadedSide::Dump(_) => "target",
                    LoadedSide::Model(_) => "golden",
                };
                let dump = self.open(name, dump)?.dump;
                SideInputs::beside_dump(self.arguments, model.model.signature(), &dump)?
            }
            (LoadedSide::Dump(_), LoadedSide::Dump(_)) => {
                return Err(CommandFailure::message(USAGE, "no side is a model"));
            }
        };
        // Reports mistakes in the inputs before anything runs.
        for (side, loaded) in [(Side::Target, &sides.target), (Side::Golden, &sides.golden)] {
            if matches!(loaded, LoadedSide::Model(_)) {
                inputs.get(side, 0)?;
            }
        }
        Ok(inputs)
    }

    fn golden(&mut self, side: &mut LoadedSide, inputs: &SideInputs) -> CommandResult<KeptSide> {
        let model = match side {
            LoadedSide::Dump(path) => return self.open("golden", path),
            LoadedSide::Model(model) => model,
        };
        let store = self.place.begin("golden", model)?;
        let outcome = self.run(model, Side::Golden, store.sink(), inputs, None)?;
        if outcome.is_stopped {
            return Err(CommandFailure::silent(INTERRUPTED));
        }
        store.finish("golden", model, &outcome, self.request)
    }

    /// Runs the target and compares it with the golden side. With `stops` it ends at the first
    /// output beyond the limits; returns `None` if the comparison finds nothing wrong up to there.
    fn target(
        &mut self,
        model: &mut ModelSide,
        golden: &KeptSide,
        inputs: &SideInputs,
        stops: bool,
    ) -> CommandResult<Option<ComparedSides>> {
        let store = self.place.begin("target", model)?;
        let options = WatchOptions {
            difference: self.request.difference,
            stop_beyond: stops.then(|| self.request.judging.thresholds.clone()),
            notes_operators: false,
        };
        // Matching by name spares most pairs a second pass; the comparison after the run uses all
        // evidence.
        let slots = GoldenSlots::new(golden.dump.clone());
        let sink = Arc::new(ComparingSink::new(slots, store.target_store(), options));
        let as_sink: Arc<dyn Sink> = sink.clone();
        let outcome = self.run(model, Side::Target, as_sink, inputs, Some(&sink))?;
        if is_signalled() {
            return Err(CommandFailure::silent(INTERRUPTED));
        }
        let target = store.finish("target", model, &outcome, self.request)?;
        if let Some(beyond) = sink.first_beyond() {
            let part = self.first_part(&target, golden, (beyond, &sink))?;
            if part.comparison.summary.level == VerdictLevel::Fail {
                return Ok(Some(part));
            }
        }
        if outcome.is_stopped {
            target.discard()?;
            return Ok(None);
        }
        self.judged(target, golden.clone(), Some(&sink)).map(Some)
    }

    /// Compares everything up to the first output beyond the limits.
    fn first_part(
        &mut self,
        target: &KeptSide,
        golden: &KeptSide,
        (beyond, sink): (FirstBeyond, &ComparingSink),
    ) -> CommandResult<ComparedSides> {
        // A run does not stop at once, and how far it gets depends on the writer threads. The
        // result must not.
        let [target, golden] = [target, golden].map(|side| (side.path.clone(), &side.dump));
        let mut part = ComparedDump::clone(target.1);
        part.cut_after(beyond.step, beyond.timestamp_us);
        let mut golden_part = ComparedDump::clone(golden.1);
        // Operators that did not run are not a difference.
        golden_part.cut_behind(&part);
        let last = part.runs.last().map(|run| run.op_name.to_string());
        report!(
            "opscope: compared up to `{}`, the first operator with an output beyond the limits: \
             {} of {} operators",
            last.unwrap_or_default(),
            part.runs.len(),
            golden.1.runs.len()
        );
        let sides = [(target.0, part), (golden.0, golden_part)];
        let [target, golden] = sides.map(|(path, dump)| KeptSide {
            dump: Arc::new(dump),
            path,
        });
        self.judged(target, golden, Some(sink))
    }

    /// Whether both models may run at the same time: there are enough processors, neither needs
    /// device memory, and the target need not stop early.
    fn may_run_at_once(&self, sides: [&ModelSide; 2]) -> bool {
        let mut providers = sides
            .map(|side| &side.engine.load_options().providers)
            .into_iter();
        self.arguments.n_threads() > 1
            && !self.arguments.first
            && providers.all(|providers| providers.is_empty())
    }

    /// Runs both models at the same time: one computes while the other waits for its values to be
    /// read.
    fn at_once(
        &mut self,
        (target, golden): (&mut ModelSide, &mut ModelSide),
        room: &Arc<HeldRoom>,
        inputs: &SideInputs,
    ) -> CommandResult<ComparedSides> {
        let message = "running both sides";
        // Both sides share the memory limit.
        let [held, golden_held] = [0, 1].map(|_| Arc::new(HeldDump::new(room.clone())));
        let running = Arc::new(RunningGolden::new(golden_held.clone(), &*golden.model));
        let options = WatchOptions {
            difference: self.request.difference,
            ..WatchOptions::default()
        };
        let slots = GoldenSlots::of_run(running.clone());
        let store = TargetStore::Held(held.clone());
        let sink = Arc::new(ComparingSink::new(slots, store, options));
        let as_sink: Arc<dyn Sink> = sink.clone();
        // Called before either run has a flag, so that a first signal does not count as the second.
        stop_on_signal(Arc::default());
        let runs = RunFlags::default();
        let start = Instant::now();
        let (of_target, of_golden) = progress::with_spinner(message, || {
            std::thread::scope(|scope| {
                // Only the target waits, so the golden side needs nothing from this thread.
                let of_golden = scope.spawn(|| {
                    let _end = running.end();
                    runs.run(golden, Side::Golden, running.clone(), inputs)
                });
                let of_target = runs.run(target, Side::Target, as_sink, inputs);
                (of_target, of_golden.join())
            })
        });
        let of_golden = of_golden.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.times.push((message, start.elapsed()));
        if is_signalled() {
            return Err(CommandFailure::silent(INTERRUPTED));
        }
        // The failed run stopped the other, so the other's error is meaningless.
        let (of_golden, of_target) = match (of_golden, of_target) {
            (Err(failure), _) | (Ok(_), Err(failure)) => return Err(failure),
            (Ok(golden), Ok(target)) => (golden, target),
        };
        report_warnings(golden);
        report_warnings(target);
        let store = SideStore::Held(golden_held);
        let kept_golden = store.finish("golden", golden, &of_golden, self.request)?;
        let store = SideStore::Held(held);
        let kept_target = store.finish("target", target, &of_target, self.request)?;
        std::thread::scope(|scope| {
            // Sessions of large models take a while to free their memory.
            scope.spawn(|| [golden, target].map(|side| side.model.rest()));
            self.judged(kept_target, kept_golden, Some(&sink))
        })
    }

    fn run(
        &mut self,
        model: &mut ModelSide,
        side: Side,
        sink: Arc<dyn Sink>,
        inputs: &SideInputs,
        comparing: Option<&ComparingSink>,
    ) -> CommandResult<RunOutcome> {
        let message = match side {
            Side::Target => "running the target",
            Side::Golden => "running the golden side",
        };
        let outcome = progress::with_spinner(message, || {
            run_side(model, side, sink, inputs, |flag| {
                let flag = stop_on_signal(flag);
                if let Some(comparing) = comparing {
                    comparing.set_stop_flag(flag);
                }
            })
        })?;
        report_warnings(model);
        self.times.push((message, outcome.time));
        Ok(outcome)
    }

    fn open(&self, side: &'static str, path: &Path) -> CommandResult<KeptSide> {
        let mut dump = ComparedDump::open(path, self.request.n_threads)?;
        run::narrow(side, &mut dump, self.request).map_err(compare::failure)?;
        Ok(KeptSide {
            dump: Arc::new(dump),
            path: Some(path.to_owned()),
        })
    }

    fn judged(
        &mut self,
        target: KeptSide,
        golden: KeptSide,
        measured: Option<&ComparingSink>,
    ) -> CommandResult<ComparedSides> {
        let dumps = OpenedDumps {
            target: &target.dump,
            golden: &golden.dump,
            reference: None,
            measured: measured.map(ComparingSink::measured),
            experimenter: None,
        };
        // A finished session counts as stopped, so a signal would end the process at once and leave
        // its temporary dumps.
        stop_on_signal(Arc::default());
        let start = Instant::now();
        let compare = |experimenter: Option<&dyn Experimenter>| {
            let dumps = OpenedDumps {
                experimenter,
                ..dumps
            };
            progress::with_comparing_bar(self.request.progress.as_deref(), || {
                run::run_opened(self.request, dumps)
            })
        };
        let compared = match &self.experiments {
            Some(plan) => plan.with(|experiments| compare(Some(experiments)))?,
            None => compare(None),
        };
        self.times.push(("comparing", start.elapsed()));
        if is_signalled() {
            return Err(CommandFailure::silent(INTERRUPTED));
        }
        Ok(ComparedSides {
            comparison: compared.map_err(compare::failure)?,
            target,
            golden,
        })
    }

    /// Prints to standard error how long each phase took, and how much was held.
    pub(super) fn report_costs(&self) {
        let times: Vec<String> = (self.times.iter())
            .map(|(what, time)| format!("{what} {}", format::duration(*time)))
            .collect();
        let times = times.join(", ");
        let KeepingPlace::Process(room) = self.place else {
            report!("opscope: {times}");
            return;
        };
        let [in_memory, in_file] = room.n_bytes().map(format::bytes);
        report!("opscope: {times}; held {in_memory} in memory, {in_file} in a temporary file");
    }
}

/// Stop flags of two concurrent runs, each of which stops the other if it fails.
#[derive(Default)]
struct RunFlags([OnceLock<Arc<AtomicBool>>; 2]);

impl RunFlags {
    fn run(
        &self,
        model: &mut ModelSide,
        side: Side,
        sink: Arc<dyn Sink>,
        inputs: &SideInputs,
    ) -> CommandResult<RunOutcome> {
        let [own, other] = match side {
            Side::Target => [0, 1],
            Side::Golden => [1, 0],
        };
        let outcome = run_side(model, side, sink, inputs, |flag| {
            stop_too_on_signal(self.0[own].get_or_init(|| flag).clone());
        });
        if outcome.is_err()
            && let Some(flag) = self.0[other].get()
        {
            flag.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// Runs a model for all steps; `begin` receives the flag that stops the run.
fn run_side(
    model: &mut ModelSide,
    side: Side,
    sink: Arc<dyn Sink>,
    inputs: &SideInputs,
    begin: impl FnOnce(Arc<AtomicBool>),
) -> CommandResult<RunOutcome> {
    let id = model.id.clone();
    run_steps(
        (&mut *model.model, &id),
        sink,
        SessionOptions::default(),
        &inputs.steps,
        |nth| inputs.get(side, nth),
        |session| begin(session.stop_flag()),
    )
}

/// Some engines report incomplete values only after a run.
fn report_warnings(side: &mut ModelSide) {
    for warning in side.model.take_warnings() {
        report!("opscope: warning: {warning}");
    }
}
