//! The dumps that the page shows, and what is known of their operators.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::result::{
    Cause, Comparison, Conclusion, MetricId, OperatorName, OperatorResult, VerdictLevel,
};
use opscope_analysis::compare::run::{self, CompareError, ComparisonRequest};
use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution};
use opscope_analysis::events::{self, DumpEvents, EventKind};
use opscope_analysis::overflow::Finding;
use opscope_analysis::scalars::{ScalarOutput, scalar_outputs};
use opscope_analysis::survey::{self, DumpSurvey, SpreadRole, SurveyedExecution};
use opscope_store::StoreError;
use opscope_store::record::SlotSide;

use crate::links::OperatorLinks;

/// One dump, or two of which one is taken for right.
pub struct ViewedRuns {
    /// The dump that is examined.
    pub target: Arc<ViewedDump>,
    /// The dump that is taken for right.
    pub golden: Option<Arc<ViewedDump>>,
    /// The comparison or the survey of the operators.
    pub findings: Findings,
    /// Version of the program.
    pub program: String,
    /// Whether a comparison that was saved is shown, without its dumps.
    pub is_saved: bool,
}

/// A dump of the page.
pub struct ViewedDump {
    /// Where it is.
    pub path: PathBuf,
    /// Its operators and tensors.
    pub dump: ComparedDump,
    /// Values from operator to operator.
    pub(crate) links: OperatorLinks,
    /// Executions by their names in a comparison; empty of a dump alone.
    by_name: HashMap<OperatorName, usize>,
    /// For each execution of the target the operator of the comparison.
    operators: Vec<Option<usize>>,
    /// Overflows, overwritten values and the like.
    pub(crate) events: DumpEvents,
    /// Executions of which there is an overflow record.
    overflowed: HashSet<usize>,
    /// Outputs of one number, once they were asked for.
    scalars: OnceLock<Vec<ScalarOutput>>,
}

/// The source of everything that is said of the operators.
pub enum Findings {
    /// Of two dumps.
    Compared(Box<Comparison>),
    /// Of one.
    Surveyed(DumpSurvey),
}

/// The party that a tensor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownSide {
    /// The dump that is examined.
    Target,
    /// The dump that is taken for right.
    Golden,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The dump cannot be read.
    #[error(transparent)]
    Dump(#[from] StoreError),
    /// The dump has no tensors.
    #[error("`{}` has no tensors{}", path.display(), because(problems))]
    Empty {
        /// The dump.
        path: PathBuf,
        /// Files that could not be read, with the reasons.
        problems: Vec<String>,
    },
    /// The dumps cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The report cannot be made.
    #[error("cannot make the report")]
    Report(#[source] std::io::Error),
    /// The page cannot be served.
    #[error("cannot serve the page at {address}")]
    Serve {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
}

fn because(problems: &[String]) -> String {
    match problems.first() {
        None => String::new(),
        Some(first) => format!(": {first}"),
    }
}

/// Everything that a row tells of an operator.
#[derive(Clone, Debug)]
pub struct OperatorFacts<'a> {
    /// Its number: its place in the order of execution.
    pub id: usize,
    /// Its type.
    pub op_type: &'a str,
    /// Its name.
    pub op_name: &'a str,
    /// The process.
    pub rank: Option<u32>,
    /// The execution of the model.
    pub step: Option<u64>,
    /// Which execution of the operator in its step.
    pub call: usize,
    /// How good or bad it is.
    pub level: VerdictLevel,
    /// Whether it is where the computation goes wrong.
    pub is_at_fault: bool,
    /// Why its outputs are not what they should be, of two dumps.
    pub cause: Option<Cause>,
    /// The comparison's row.
    pub compared: Option<&'a OperatorResult>,
    /// The survey's row.
    pub surveyed: Option<&'a SurveyedExecution>,
    /// Whether there is an overflow record of it.
    pub has_overflow: bool,
}

impl OperatorFacts<'_> {
    /// Error of the outputs, what the operator added, and error of the inputs.
    pub fn errors(&self) -> [Option<f64>; 3] {
        let error = self.compared.and_then(|operator| operator.error);
        let inputs = error.filter(|error| error.has_inputs);
        [
            error.map(|error| error.outputs),
            error.map(|error| error.added),
            inputs.map(|error| error.inputs),
        ]
    }

    /// Elements of its outputs that are NaN, and that are infinite.
    pub fn non_finite(&self) -> [Option<u64>; 2] {
        match (self.surveyed, self.compared) {
            (Some(found), _) => [found.n_nan, found.n_inf],
            (None, Some(operator)) => {
                let outputs = operator.slots.iter().filter(|slot| slot.is_output());
                let count = |metrics: &[MetricId]| {
                    let counts = outputs.clone().map(|slot| {
                        let counts = metrics.iter().map(|metric| slot.metrics.get(*metric));
                        // Counts are whole.
                        counts.sum::<Option<f64>>().map(|n| n as u64)
                    });
                    counts.sum()
                };
                [
                    count(&[MetricId::TargetNanCount]),
                    count(&[
                        MetricId::TargetPositiveInfCount,
                        MetricId::TargetNegativeInfCount,
                    ]),
                ]
            }
            (None, None) => [None, None],
        }
    }

    /// The largest magnitude of its outputs: of the finite elements in a survey. In a comparison an
    /// infinity hides that of the others.
    pub fn max_abs(&self) -> Option<f64> {
        if let Some(found) = self.surveyed {
            return found.max_abs;
        }
        let slots = &self.compared?.slots;
        let outputs = slots.iter().filter(|slot| slot.is_output());
        let ends = outputs.flat_map(|slot| {
            let metrics = [MetricId::TargetMin, MetricId::TargetMax];
            metrics.map(|metric| slot.metrics.get(metric))
        });
        ends.flatten().map(f64::abs).reduce(f64::max)
    }

    /// The number that the table's bar and the trace show: the error of the outputs, or the largest
    /// magnitude where there is nothing to compare with.
    pub fn main_value(&self) -> Option<f64> {
        match self.surveyed {
            Some(_) => self.max_abs(),
            None => self.errors()[0],
        }
    }
}

impl ViewedRuns {
    /// One dump with what is known of its numbers.
    pub(crate) fn surveyed(
        target: Arc<ViewedDump>,
        survey: DumpSurvey,
        program: &str,
    ) -> ViewedRuns {
        ViewedRuns {
            target,
            golden: None,
            findings: Findings::Surveyed(survey),
            program: program.to_owned(),
            is_saved: false,
        }
    }

    /// Compares two dumps with the defaults of `opscope compare`.
    ///
    /// # Errors
    /// [`ViewError`] if they cannot be compared.
    pub fn open_two(
        [target, golden]: [&Path; 2],
        n_threads: usize,
        program: &str,
    ) -> Result<ViewedRuns, ViewError> {
        let program = program.to_owned();
        let request = ComparisonRequest::with_defaults(target, golden, n_threads, program.clone());
        let comparison = run::run(&request, None)?;
        ViewedRuns::open_compared(comparison, [target, golden], n_threads)
    }

    /// Opens the dumps of a comparison that was made already.
    ///
    /// # Errors
    /// [`ViewError`] if they cannot be read.
    pub fn open_compared(
        comparison: Comparison,
        [target, golden]: [&Path; 2],
        n_threads: usize,
    ) -> Result<ViewedRuns, ViewError> {
        let program = comparison.config.program.clone();
        let paths = [target, golden];
        let [target, golden] = run::open_again(&comparison, paths, n_threads)?;
        let mut target = ViewedDump::new(paths[0], target, n_threads).with_names();
        let golden = ViewedDump::new(paths[1], golden, n_threads).with_names();
        // From executions back to operators, for values that go from one to another.
        target.operators = vec![None; target.dump.runs.len()];
        for operator in &comparison.operators {
            for name in &operator.target {
                if let Some(&run) = target.by_name.get(name) {
                    target.operators[run] = Some(operator.index);
                }
            }
        }
        Ok(ViewedRuns {
            target: Arc::new(target),
            golden: Some(Arc::new(golden)),
            findings: Findings::Compared(Box::new(comparison)),
            program,
            is_saved: false,
        })
    }

    /// A saved comparison, whose tensors are not at hand.
    pub fn of_saved(comparison: Comparison) -> ViewedRuns {
        let dump = |path: &str| Arc::new(ViewedDump::with_nothing(Path::new(path)));
        ViewedRuns {
            target: dump(&comparison.config.target),
            golden: Some(dump(&comparison.config.golden)),
            program: comparison.config.program.clone(),
            findings: Findings::Compared(Box::new(comparison)),
            is_saved: true,
        }
    }

    /// The comparison, if there are two dumps.
    pub fn comparison(&self) -> Option<&Comparison> {
        match &self.findings {
            Findings::Compared(comparison) => Some(comparison),
            Findings::Surveyed(_) => None,
        }
    }

    /// The survey, if there is one dump.
    pub fn survey(&self) -> Option<&DumpSurvey> {
        match &self.findings {
            Findings::Surveyed(survey) => Some(survey),
            Findings::Compared(_) => None,
        }
    }

    /// Number of operators.
    pub fn n_operators(&self) -> usize {
        match &self.findings {
            Findings::Compared(comparison) => comparison.operators.len(),
            Findings::Surveyed(survey) => survey.executions.len(),
        }
    }

    /// The facts of an operator; `None` if there is none of this number.
    pub fn facts(&self, id: usize) -> Option<OperatorFacts<'_>> {
        match &self.findings {
            Findings::Compared(comparison) => {
                let overflowed = &self.target.overflowed;
                // Looking up executions takes time, and most dumps have no records.
                let has_overflow = !overflowed.is_empty() && {
                    let runs = self.executions(id, ShownSide::Target);
                    runs.iter().any(|run| overflowed.contains(run))
                };
                compared_facts(comparison, id, has_overflow)
            }
            Findings::Surveyed(survey) => {
                let run = self.target.dump.runs.get(id)?;
                let found = survey.executions.get(id)?;
                let mut facts = surveyed_facts(run, id, found)?;
                facts.has_overflow = self.target.overflowed.contains(&id);
                if facts.has_overflow && found.role.is_none() {
                    // Of integers, and where floats saturate, the outputs show nothing. Later
                    // overflows may follow from the first.
                    facts.level = VerdictLevel::Fail;
                    facts.is_at_fault = self.first_overflow().is_some_and(|(run, _)| run == id);
                }
                Some(facts)
            }
        }
    }

    /// The first overflow whose operator is in the dump: the execution, and the units that
    /// overflowed.
    pub fn first_overflow(&self) -> Option<(usize, &[Finding])> {
        self.overflows().next()
    }

    /// The first overflow record of an operator.
    pub fn overflow_of(&self, id: usize) -> Option<&[Finding]> {
        let mut overflows = self.overflows();
        let (_, found) = overflows.find(|(run, _)| self.operator_of(*run) == Some(id))?;
        Some(found)
    }

    /// Messages about records and lists of events, without those that the dump has already.
    pub fn event_problems(&self) -> impl Iterator<Item = &str> {
        let told: HashSet<&str> = self.target.problems().collect();
        let problems = self.target.events.problems.iter().map(String::as_str);
        problems.filter(move |problem| !told.contains(problem))
    }

    fn overflows(&self) -> impl Iterator<Item = (usize, &[Finding])> {
        let events = self.target.events.events.iter();
        events.filter_map(|event| match &event.kind {
            EventKind::Overflow(found) => Some((event.run?, &found[..])),
            _ => None,
        })
    }

    /// How many files and tensors could not be read.
    pub(crate) fn n_problems(&self) -> usize {
        let dumps = [Some(&*self.target), self.golden.as_deref()];
        let of_dumps = dumps.into_iter().flatten();
        let n = of_dumps.map(|dump| dump.problems().count()).sum::<usize>();
        let n = n + self.event_problems().count();
        n + self.survey().map_or(0, |survey| survey.problems.len())
    }

    /// The dump of a side.
    pub fn side(&self, side: ShownSide) -> Option<&ViewedDump> {
        match side {
            ShownSide::Target => Some(&self.target),
            ShownSide::Golden => self.golden.as_deref(),
        }
    }

    /// The operator's executions on a side, in order: several if they were fused on the other.
    pub fn executions(&self, id: usize, side: ShownSide) -> Vec<usize> {
        match (&self.findings, side) {
            (Findings::Surveyed(_), ShownSide::Target) => vec![id],
            (Findings::Surveyed(_), ShownSide::Golden) => Vec::new(),
            (Findings::Compared(comparison), _) => {
                let (Some(operator), Some(dump)) = (comparison.operators.get(id), self.side(side))
                else {
                    return Vec::new();
                };
                let names = match side {
                    ShownSide::Target => &operator.target,
                    ShownSide::Golden => &operator.golden,
                };
                let runs = names.iter().filter_map(|name| dump.by_name.get(name));
                runs.copied().collect()
            }
        }
    }

    /// The operator that an execution of the target is, or is a part of.
    pub fn operator_of(&self, run: usize) -> Option<usize> {
        match &self.findings {
            Findings::Surveyed(_) => Some(run),
            Findings::Compared(_) => self.target.operators.get(run).copied().flatten(),
        }
    }

    /// The slot of an operator on a side, where that has it. `key` is the target's slot.
    pub fn slot(&self, id: usize, key: SlotKey, side: ShownSide) -> Option<&ExecutionSlot> {
        let dump = self.side(side)?;
        let compared = self.comparison().and_then(|comparison| {
            let slots = &comparison.operators.get(id)?.slots;
            slots.iter().find(|slot| slot.slot == key)
        });
        let key = match (compared, side) {
            (Some(pair), ShownSide::Golden) => pair.golden_slot.unwrap_or(pair.slot),
            // What was not compared has a partner in no slot.
            (None, ShownSide::Golden) if self.comparison().is_some() => return None,
            _ => key,
        };
        let summary = compared.map(|pair| match side {
            ShownSide::Target => &pair.target,
            ShownSide::Golden => &pair.golden,
        });
        let runs = self.executions(id, side);
        // A run that the dump lost since is no run.
        let runs = runs.iter().filter_map(|&run| dump.dump.runs.get(run));
        let slots: Vec<&ExecutionSlot> = runs
            .filter_map(|run| run.slot(key.side, key.index))
            .collect();
        // Operators of a group have slots of one number: the extents tell which was compared.
        let is_it = |slot: &&&ExecutionSlot| {
            summary.is_some_and(|summary| slot.shape.as_deref() == Some(summary.shape.as_slice()))
        };
        let mut compared = slots.iter().filter(is_it);
        // Of several alike inputs are the first's, and outputs the last's.
        let found = match key.side {
            SlotSide::Input => compared.next().or(slots.first()),
            SlotSide::Output => compared.next_back().or(slots.last()),
        };
        found.copied()
    }
}

impl ViewedDump {
    pub(crate) fn open(path: &Path, n_threads: usize) -> Result<ViewedDump, StoreError> {
        let dump = ComparedDump::open(path, n_threads)?;
        Ok(ViewedDump::new(path, dump, n_threads))
    }

    fn new(path: &Path, dump: ComparedDump, n_threads: usize) -> ViewedDump {
        let events = events::events(&dump, n_threads);
        let overflows = events.events.iter();
        let overflows = overflows.filter(|event| matches!(event.kind, EventKind::Overflow(_)));
        ViewedDump {
            path: path.to_owned(),
            links: OperatorLinks::new(&dump),
            dump,
            by_name: HashMap::new(),
            operators: Vec::new(),
            // Every row asks, so that the list would be gone through for each.
            overflowed: overflows.filter_map(|event| event.run).collect(),
            events,
            scalars: OnceLock::new(),
        }
    }

    /// A dump of which nothing is at hand.
    pub(crate) fn with_nothing(path: &Path) -> ViewedDump {
        ViewedDump {
            path: path.to_owned(),
            dump: ComparedDump::default(),
            links: OperatorLinks::default(),
            by_name: HashMap::new(),
            operators: Vec::new(),
            events: DumpEvents::default(),
            overflowed: HashSet::new(),
            scalars: OnceLock::new(),
        }
    }

    fn with_names(mut self) -> ViewedDump {
        let runs = self.dump.runs.iter().enumerate();
        // Of several with one name the last wins; comparisons tell them apart by their repetition.
        let names = runs.map(|(index, run)| (OperatorName::for_execution(run), index));
        self.by_name = names.collect();
        self
    }

    /// The execution that a comparison names.
    pub(crate) fn run_of(&self, name: &OperatorName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Everything that could not be read: of files as a whole, then of single tensors.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let of_files = self.dump.problems.iter().map(String::as_str);
        let slots = self.dump.runs.iter().flat_map(|run| &run.slots);
        of_files.chain(slots.filter_map(|slot| slot.problem.as_deref()))
    }

    /// Its outputs of one number.
    pub(crate) fn scalars(&self) -> &[ScalarOutput] {
        self.scalars.get_or_init(|| scalar_outputs(&self.dump))
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        let path = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// Why an operator is at fault, if it is: it makes a difference of agreeing inputs, or is where a
/// weight or an input that differs enters. What is inherited, gradual or unknown accuses nobody.
fn fault_of(comparison: &Comparison, operator: &OperatorResult) -> Option<Cause> {
    // Nobody is accused of what came from before, or of what is not known.
    let is_fault = |cause: &Cause| matches!(cause, Cause::Own | Cause::Outside);
    let headline = comparison.summary.headline();
    // What the outputs do not show is nobody's fault.
    let conclusion = comparison.contract.conclusion;
    let accuses = !conclusion.is_good() && conclusion != Conclusion::Quantised;
    if comparison.contract.is_known() && !accuses {
        return None;
    }
    let named = headline.filter(|first| first.operator == operator.index);
    let mut partings = comparison.partings.iter();
    let parting = partings.find(|parting| parting.operator == operator.index);
    let own = operator.cause.filter(|cause| *cause == Cause::Own);
    named
        .map(|first| first.cause)
        .or(parting.map(|parting| parting.cause))
        .or(own.filter(|_| operator.level == VerdictLevel::Fail))
        .filter(is_fault)
}

fn compared_facts(
    comparison: &Comparison,
    id: usize,
    has_overflow: bool,
) -> Option<OperatorFacts<'_>> {
    let operator = comparison.operators.get(id)?;
    let name = operator.target.last().or(operator.golden.last())?;
    let fault = fault_of(comparison, operator);
    Some(OperatorFacts {
        id,
        op_type: &name.op_type,
        op_name: &name.op_name,
        rank: name.rank,
        step: name.step,
        call: name.repeat,
        level: operator.level,
        is_at_fault: fault.is_some(),
        cause: fault.or(operator.cause),
        compared: Some(operator),
        surveyed: None,
        has_overflow,
    })
}

fn surveyed_facts<'a>(
    run: &'a OperatorExecution,
    id: usize,
    found: &'a SurveyedExecution,
) -> Option<OperatorFacts<'a>> {
    let is_maker = matches!(
        found.role,
        Some(SpreadRole::MakesNan | SpreadRole::MakesInf)
    );
    // Numbers that are not known are no pass.
    let level = match (found.role, found.headroom) {
        (Some(SpreadRole::MayBeMask), _) => VerdictLevel::Warn,
        (Some(_), _) => VerdictLevel::Fail,
        (None, Some(headroom)) if headroom < survey::NEAR_EDGE => VerdictLevel::Warn,
        (None, _) if found.n_nan.is_none() => VerdictLevel::Skip,
        (None, _) => VerdictLevel::Pass,
    };
    Some(OperatorFacts {
        id,
        op_type: &run.op_type,
        op_name: &run.op_name,
        rank: run.place.rank,
        step: run.place.step,
        call: run.repeat,
        level,
        is_at_fault: is_maker,
        cause: None,
        compared: None,
        surveyed: Some(found),
        has_overflow: false,
    })
}
