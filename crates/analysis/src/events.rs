//! Events in the run that made a dump: overflows, overwritten memory, and the first NaN or
//! infinity.
//!
//! Overflows come from [`crate::overflow`], overwrites from `overwrites.json`, and the first NaN or
//! infinity from `run.json`. Each event is joined with its execution in the dump where possible.

mod changed_bytes;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::dump::PassReason;
use opscope_store::file_format::overwrites_json::{self, OverwriteEntry};
use opscope_store::file_format::run_json::NonFiniteFinding;
use opscope_store::tree::acl::DumpFileName;
use opscope_store::{StoreError, regular_file, run_file};

use crate::compare::side::{ComparedDump, OperatorExecution};
use crate::error_chain::chain;
use crate::overflow::{self, Finding, OverflowReport};

pub use changed_bytes::{ChangedBytes, ChangedElement, ChangedRange, changed_bytes};

/// Number of digits of a time in microseconds since 1970-01-01 UTC.
const N_TIME_DIGITS: usize = 16;

/// The events of a dump.
#[derive(Debug, Default)]
pub struct DumpEvents {
    /// Sorted by step, then by time; events with neither come last.
    pub events: Vec<DumpEvent>,
    /// Overwrites that were counted but not listed.
    pub n_unlisted: u64,
    /// Records and lists that could not be read.
    pub problems: Vec<String>,
}

/// Something that happened to an operator.
#[derive(Debug)]
pub struct DumpEvent {
    /// The file that reports it.
    pub path: PathBuf,
    /// Index into [`ComparedDump::runs`]. For an overwrite, the execution after which it was
    /// detected, or else the value as it was then. `None` if the dump lacks it or has several
    /// candidates.
    pub run: Option<usize>,
    /// Operator type; empty if unknown.
    pub op_type: String,
    /// Operator name; empty if unknown.
    pub op_name: String,
    /// The rank.
    pub rank: Option<u32>,
    /// The step.
    pub step: Option<u64>,
    /// Time, in microseconds since 1970-01-01 UTC.
    pub time_us: Option<u64>,
    /// Its task.
    pub task_id: Option<u64>,
    /// Its stream.
    pub stream_id: Option<u64>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of event.
#[derive(Debug)]
pub enum EventKind {
    /// A device set status registers: the units whose status is not zero, at least one.
    Overflow(Vec<Finding>),
    /// A watched value changed.
    Overwrite(Box<OverwriteEntry>),
    /// The first NaN or infinity of a capture that is not intentional.
    NonFinite(Box<NonFiniteFinding>),
    /// A finding of a command about the operator, as a sentence.
    Finding(String),
}

/// Collects the events of a dump. Records are read on `n_threads` threads.
pub fn events(dump: &ComparedDump, n_threads: usize) -> DumpEvents {
    let mut found = DumpEvents::default();
    let reasons: HashSet<PassReason> = dump.passed_over.iter().map(|file| file.reason).collect();
    // Listing a large dump again is only worth it if it has records.
    if reasons.contains(&PassReason::OverflowRecord) {
        found.add_overflows(dump, n_threads);
    }
    found.add_overwrites(dump);
    if reasons.contains(&PassReason::OwnRecords) {
        found.add_non_finite(dump);
    }
    // The sort is stable, so simultaneous events keep their reported order.
    found.events.sort_by_key(|event| {
        let step = event.step.unwrap_or(u64::MAX);
        (step, event.time_us.unwrap_or(u64::MAX))
    });
    found
}

impl DumpEvents {
    fn add_overflows(&mut self, dump: &ComparedDump, n_threads: usize) {
        let scan = overflow::scan(&dump.root, n_threads);
        self.problems
            .extend(scan.errors.iter().map(|error| chain(error)));
        let files = scan.overflows.iter().filter_map(operator_file);
        let runs = runs_of_files(dump, &files.collect());
        for report in scan.overflows {
            let run = operator_file(&report).and_then(|path| runs.get(path).copied());
            self.events.push(overflow_event(dump, report, run));
        }
    }

    fn add_overwrites(&mut self, dump: &ComparedDump) {
        let lists = dump.passed_over.iter();
        let lists = lists.filter(|file| file.reason == PassReason::Overwrites);
        for file in lists {
            match read_list(&file.path) {
                Ok(list) => {
                    let n_listed = list.overwrites.len() as u64;
                    self.n_unlisted += list.n_overwrites.saturating_sub(n_listed);
                    let entries = list.overwrites.into_iter();
                    let events = entries.map(|entry| overwrite_event(dump, &file.path, entry));
                    self.events.extend(events);
                }
                Err(error) => self.problems.push(chain(&error)),
            }
        }
    }

    fn add_non_finite(&mut self, dump: &ComparedDump) {
        let found = run_file::find(&dump.root);
        self.problems
            .extend(found.errors.iter().map(|error| chain(error)));
        for run in found.runs {
            let Some(finding) = run.record.first_non_finite else {
                continue;
            };
            let is_of_whole = !run.path.starts_with(&dump.root);
            let event = non_finite_event(dump, run.path, finding);
            // If only part of a dump was opened, the finding may concern the rest.
            if event.run.is_some() || !is_of_whole {
                self.events.push(event);
            }
        }
    }
}

fn read_list(path: &Path) -> Result<overwrites_json::OverwriteList, StoreError> {
    let limit = overwrites_json::FILE_BYTES_MAX as u64;
    let bytes = regular_file::read_in_dump(path, limit).map_err(StoreError::io("read", path))?;
    overwrites_json::parse(&bytes).map_err(|source| StoreError::Corrupt {
        format: overwrites_json::FORMAT_NAME,
        path: path.to_owned(),
        source,
    })
}

/// A file with tensors of the overflowing operator.
fn operator_file(report: &OverflowReport) -> Option<&Path> {
    let first = report.operator.as_ref()?.files.first()?;
    Some(&first.path)
}

/// The first execution in each of these files.
fn runs_of_files<'a>(dump: &'a ComparedDump, files: &HashSet<&Path>) -> HashMap<&'a Path, usize> {
    let mut runs = HashMap::new();
    for (index, run) in dump.runs.iter().enumerate() {
        for slot in &run.slots {
            let path = slot.facts().path.as_path();
            if files.contains(path) {
                runs.entry(path).or_insert(index);
            }
        }
    }
    runs
}

fn overflow_event(dump: &ComparedDump, report: OverflowReport, run: Option<usize>) -> DumpEvent {
    let execution = run.and_then(|run| dump.runs.get(run));
    // In a record with several sections, the last one names the task.
    let last = report.findings.last();
    let [task_id, stream_id] = [
        last.map(|finding| finding.task_id),
        last.map(|finding| finding.stream_id),
    ];
    let time = Some(&report.timestamp).filter(|digits| digits.len() == N_TIME_DIGITS);
    // File names have some letters replaced, but that beats no name if the dump cannot be read.
    let file = report
        .operator
        .as_ref()
        .and_then(|operator| operator.files.first());
    let named = file.and_then(|file| DumpFileName::parse(&file.file_name));
    let of_file = named
        .map(|name| (name.op_type, name.op_name))
        .unwrap_or_default();
    let (op_type, op_name) = execution.map_or(of_file, names);
    DumpEvent {
        run,
        op_type,
        op_name,
        rank: execution.and_then(|execution| execution.place.rank),
        step: execution
            .and_then(|execution| execution.place.step)
            .or(report.step),
        time_us: time.and_then(|digits| digits.parse().ok()),
        task_id,
        stream_id,
        kind: EventKind::Overflow(report.findings),
        path: report.path,
    }
}

fn overwrite_event(dump: &ComparedDump, path: &Path, entry: OverwriteEntry) -> DumpEvent {
    let written = changed_bytes::written_run(dump, path, &entry);
    let suspect = only_run(dump, path, |run| {
        run.place.step == entry.step
            && run.task_id == entry.seen_after_task_id
            && run.op_name.as_str() == entry.seen_after
            && is_type(run, &entry.seen_after_type)
    });
    // A watched operator has its real name in the dump.
    let run = suspect.or(written);
    let seen = written.or(run).and_then(|run| dump.runs.get(run));
    DumpEvent {
        path: path.to_owned(),
        run,
        op_type: entry.seen_after_type.clone(),
        op_name: entry.seen_after.clone(),
        rank: seen.and_then(|run| run.place.rank),
        step: entry.step,
        time_us: seen.and_then(|run| run.timestamp_us),
        task_id: entry.seen_after_task_id.map(u64::from),
        stream_id: None,
        kind: EventKind::Overwrite(Box::new(entry)),
    }
}

fn non_finite_event(dump: &ComparedDump, path: PathBuf, finding: NonFiniteFinding) -> DumpEvent {
    let is_it = |run: &&OperatorExecution| {
        run.place.step == Some(finding.step)
            && run.task_id.is_none_or(|task| task == finding.task_id)
            && run.op_name.as_str() == finding.op_name
            && is_type(run, &finding.op_type)
    };
    // Dumps identify models, and each PyTorch graph is a model: if several graphs have the
    // operator, that identifies it.
    // The record is in `.opscope`, next to the run's tensors.
    let dir = path.parent().unwrap_or(Path::new(""));
    let run = only_run(dump, dir, is_it).or_else(|| {
        only_run(dump, dir, |run| {
            let model = run.place.model.as_ref();
            is_it(run) && model.is_some_and(|model| model.as_str() == finding.graph)
        })
    });
    let execution = run.and_then(|run| dump.runs.get(run));
    DumpEvent {
        path,
        run,
        op_type: execution.map_or(finding.op_type.clone(), |run| run.op_type.to_string()),
        op_name: finding.op_name.clone(),
        rank: execution.and_then(|execution| execution.place.rank),
        step: Some(finding.step),
        time_us: execution.and_then(|execution| execution.timestamp_us),
        task_id: Some(finding.task_id.into()),
        stream_id: None,
        kind: EventKind::NonFinite(Box::new(finding)),
    }
}

/// The only matching execution below the directory of `file`; `None` if there are several.
fn only_run(
    dump: &ComparedDump,
    file: &Path,
    is_meant: impl Fn(&&OperatorExecution) -> bool,
) -> Option<usize> {
    let dir = file.parent()?;
    let runs = dump.runs.iter().enumerate();
    let mut meant = runs.filter(|(_, run)| is_meant(run) && is_below(run, dir));
    let (index, _) = meant.next()?;
    meant.next().is_none().then_some(index)
}

/// Whether an execution has this type. Dots are ignored: file names and dumps drop them.
fn is_type(run: &OperatorExecution, op_type: &str) -> bool {
    let letters = op_type.chars();
    let letters = letters.map(|letter| if letter == '.' { '_' } else { letter });
    run.op_type.chars().eq(letters)
}

fn is_below(run: &OperatorExecution, dir: &Path) -> bool {
    let mut slots = run.slots.iter();
    slots.any(|slot| slot.facts().path.as_path().starts_with(dir))
}

fn names(run: &OperatorExecution) -> (String, String) {
    (run.op_type.to_string(), run.op_name.to_string())
}
