//! The dumps on the page and the findings about their operators.

mod operator_facts;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use opscope_analysis::compare::result::{Comparison, OperatorName, SlotKey, VerdictLevel};
use opscope_analysis::compare::run::{self, CompareError, ComparisonRequest};
use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot};
use opscope_analysis::events::{self, DumpEvent, DumpEvents, EventKind};
use opscope_analysis::overflow::Finding;
use opscope_analysis::scalars::{ScalarOutput, scalar_outputs};
use opscope_analysis::survey::DumpSurvey;
use opscope_store::StoreError;
use opscope_store::record::SlotSide;

pub(crate) use self::operator_facts::OperatorFacts;
use self::operator_facts::{compared_facts, surveyed_facts};
use crate::links::OperatorLinks;

/// One dump, or a target and a golden dump.
pub struct ViewedRuns {
    /// The dump under test.
    pub target: Arc<ViewedDump>,
    /// The reference dump.
    pub golden: Option<Arc<ViewedDump>>,
    /// A third dump, whose tensors are shown next to those of a pair.
    pub reference: Option<Arc<ViewedDump>>,
    /// The comparison or the survey of the operators.
    pub findings: Findings,
    /// Version of the program.
    pub program: String,
    /// Whether this is a saved comparison, without its dumps.
    pub is_saved: bool,
}

/// A dump of the page.
pub struct ViewedDump {
    /// Its path.
    pub path: PathBuf,
    /// Its operators and tensors.
    pub dump: ComparedDump,
    /// Dataflow between operators.
    pub(crate) links: OperatorLinks,
    /// Executions by their names in a comparison; empty for a single dump.
    by_name: HashMap<OperatorName, usize>,
    /// For each target execution, the operator of the comparison.
    operators: Vec<Option<usize>>,
    /// Overflows, overwritten values and similar events.
    pub(crate) events: DumpEvents,
    /// Executions with an overflow record.
    overflowed: HashSet<usize>,
    /// Scalar outputs, computed on first use.
    scalars: OnceLock<Vec<ScalarOutput>>,
}

/// A finding of a command about an operator.
#[derive(Clone, Debug)]
pub struct OperatorFinding {
    /// The operator.
    pub operator: OperatorName,
    /// The finding, as a sentence.
    pub text: String,
}

/// The source of the findings.
pub enum Findings {
    /// The comparison of two dumps.
    Compared(Box<Comparison>),
    /// The survey of one dump.
    Surveyed(DumpSurvey),
}

/// The side of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownSide {
    /// The dump under test.
    Target,
    /// The reference dump.
    Golden,
    /// The third dump.
    Reference,
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
        /// Path of the dump.
        path: PathBuf,
        /// Unreadable files, with the reasons.
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
        /// The cause.
        source: std::io::Error,
    },
}

fn because(problems: &[String]) -> String {
    match problems.first() {
        None => String::new(),
        Some(first) => format!(": {first}"),
    }
}

impl ViewedRuns {
    /// One dump with its survey.
    pub(crate) fn surveyed(
        target: Arc<ViewedDump>,
        survey: DumpSurvey,
        program: &str,
    ) -> ViewedRuns {
        ViewedRuns {
            target,
            golden: None,
            reference: None,
            findings: Findings::Surveyed(survey),
            program: program.to_owned(),
            is_saved: false,
        }
    }

    /// Compares two dumps with the defaults of `opscope compare`. A third one is the yardstick, as
    /// with `--reference` there, and its tensors are shown next to theirs.
    ///
    /// # Errors
    ///
    /// [`ViewError`] if they cannot be compared.
    pub fn open_two(
        [target, golden]: [&Path; 2],
        reference: Option<&Path>,
        n_threads: usize,
        program: &str,
    ) -> Result<ViewedRuns, ViewError> {
        let program = program.to_owned();
        let mut request = ComparisonRequest::with_defaults(target, golden, n_threads, program);
        request.reference = reference.map(Path::to_owned);
        let comparison = run::run(&request, None)?;
        let mut runs = ViewedRuns::open_compared(comparison, [target, golden], n_threads)?;
        if let Some(path) = reference {
            // Not part of the comparison, so its operators are looked up by their names.
            let dump = ViewedDump::open(path, n_threads)?.with_names();
            runs.reference = Some(Arc::new(dump.without_models()));
        }
        Ok(runs)
    }

    /// Opens the dumps of an existing comparison.
    ///
    /// # Errors
    ///
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
        // Maps executions back to operators, for dataflow edges.
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
            reference: None,
            findings: Findings::Compared(Box::new(comparison)),
            program,
            is_saved: false,
        })
    }

    /// A saved comparison, without tensors.
    pub fn of_saved(comparison: Comparison) -> ViewedRuns {
        let config = &comparison.config;
        let [target, golden] = [&config.target, &config.golden]
            .map(|path| Arc::new(ViewedDump::with_nothing(Path::new(path))));
        ViewedRuns {
            target,
            golden: Some(golden),
            reference: None,
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

    /// The facts of an operator; `None` for an unknown number.
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
                    // Integer outputs and saturated floats show no trace of an overflow. Later
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

    /// Messages about records and lists of events, except those already in the dump.
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

    /// Number of unreadable files and tensors.
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
            ShownSide::Reference => self.reference.as_deref(),
        }
    }

    /// The operator's executions on a side, in order: several if fused on the other.
    pub fn executions(&self, id: usize, side: ShownSide) -> Vec<usize> {
        match (&self.findings, side) {
            (Findings::Surveyed(_), ShownSide::Target) => vec![id],
            (Findings::Surveyed(_), _) => Vec::new(),
            (Findings::Compared(comparison), _) => {
                let (Some(operator), Some(dump)) = (comparison.operators.get(id), self.side(side))
                else {
                    return Vec::new();
                };
                let names = match side {
                    ShownSide::Target => &operator.target,
                    ShownSide::Golden | ShownSide::Reference => &operator.golden,
                };
                let runs = names.iter().filter_map(|name| match side {
                    ShownSide::Reference => dump.by_name.get(&without_model(name)),
                    _ => dump.by_name.get(name),
                });
                runs.copied().collect()
            }
        }
    }

    /// The operator that contains a target execution.
    pub fn operator_of(&self, run: usize) -> Option<usize> {
        match &self.findings {
            Findings::Surveyed(_) => Some(run),
            Findings::Compared(_) => self.target.operators.get(run).copied().flatten(),
        }
    }

    /// The slot of an operator on a side, if it exists. `key` is the target's slot.
    pub fn slot(&self, id: usize, key: SlotKey, side: ShownSide) -> Option<&ExecutionSlot> {
        let dump = self.side(side)?;
        let compared = self.comparison().and_then(|comparison| {
            let slots = &comparison.operators.get(id)?.slots;
            slots.iter().find(|slot| slot.slot == key)
        });
        let key = match (compared, side) {
            (Some(pair), ShownSide::Golden | ShownSide::Reference) => {
                pair.golden_slot.unwrap_or(pair.slot)
            }
            // Uncompared operators have no matching slots.
            (None, ShownSide::Golden | ShownSide::Reference) if self.comparison().is_some() => {
                return None;
            }
            _ => key,
        };
        let summary = compared.map(|pair| match side {
            ShownSide::Target => &pair.target,
            ShownSide::Golden | ShownSide::Reference => &pair.golden,
        });
        let runs = self.executions(id, side);
        // Ignores runs that the dump has lost since.
        let runs = runs.iter().filter_map(|&run| dump.dump.runs.get(run));
        let slots: Vec<&ExecutionSlot> = runs
            .filter_map(|run| run.slot(key.side, key.index))
            .collect();
        // Slots of grouped operators share numbers; the shape identifies the compared one.
        let mut compared = slots.iter().filter(|slot| {
            summary.is_some_and(|summary| slot.shape.as_deref() == Some(summary.shape.as_slice()))
        });
        // Among several, inputs belong to the first operator, and outputs to the last.
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
            // A set, because every row queries it.
            overflowed: overflows.filter_map(|event| event.run).collect(),
            events,
            scalars: OnceLock::new(),
        }
    }

    /// An empty dump, for saved results.
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

    /// Puts findings before the events.
    pub(crate) fn with_findings(mut self, findings: Vec<OperatorFinding>) -> ViewedDump {
        let runs = self.dump.runs.iter().enumerate();
        // Most dumps are opened without findings, and need no names.
        let runs: HashMap<OperatorName, usize> = runs
            .filter(|_| !findings.is_empty())
            .map(|(index, run)| (OperatorName::for_execution(run), index))
            .collect();
        let findings = findings.into_iter().map(|finding| DumpEvent {
            path: self.path.clone(),
            run: runs.get(&finding.operator).copied(),
            op_type: finding.operator.op_type.to_string(),
            op_name: finding.operator.op_name.to_string(),
            rank: finding.operator.rank,
            step: finding.operator.step,
            time_us: None,
            task_id: None,
            stream_id: None,
            kind: EventKind::Finding(finding.text),
        });
        self.events.events.splice(0..0, findings);
        self
    }

    /// The findings of a command, with the operators that the dump has.
    pub(crate) fn findings(&self) -> impl Iterator<Item = (&DumpEvent, &str)> {
        self.events
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Finding(text) => Some((event, text.as_str())),
                _ => None,
            })
    }

    fn with_names(mut self) -> ViewedDump {
        let runs = self.dump.runs.iter().enumerate();
        // Among several with one name the last wins; comparisons distinguish them by repetition.
        let names = runs.map(|(index, run)| (OperatorName::for_execution(run), index));
        self.by_name = names.collect();
        self
    }

    /// Forgets the models' names, which differ between dumps of one network.
    fn without_models(mut self) -> ViewedDump {
        let names = self.by_name.drain();
        self.by_name = names
            .map(|(name, run)| (without_model(&name), run))
            .collect();
        self
    }

    /// The execution that a comparison names.
    pub(crate) fn run_of(&self, name: &OperatorName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// All read errors: of files, then of single tensors.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let of_files = self.dump.problems.iter().map(String::as_str);
        let slots = self.dump.runs.iter().flat_map(|run| &run.slots);
        of_files.chain(slots.filter_map(|slot| slot.problem.as_deref()))
    }

    /// Its scalar outputs.
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

fn without_model(name: &OperatorName) -> OperatorName {
    OperatorName {
        model: None,
        ..name.clone()
    }
}
