//! Finds records and the dumps of their operators.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use opscope_store::dump::{self, DumpEntry, PassedOver};
use opscope_store::file_format::op_debug::{self, OverflowRecord};
use opscope_store::file_format::{dump_data, stats_csv};
use opscope_store::reader::{DumpTerm, TensorFile};
use opscope_store::record::SlotSide;
use opscope_store::tree::acl::DumpFileName;
use opscope_store::tree::mindspore::TensorFileName;
use opscope_store::{StoreError, regular_file, remote};
use opscope_tensor::DType;
use thiserror::Error;

use super::{Finding, findings, order};
use crate::job;

/// All records of a directory.
#[derive(Debug, Default)]
pub struct OverflowScan {
    /// Records of an overflow, sorted by step, then by time.
    pub overflows: Vec<OverflowReport>,
    /// Number of files in the dump.
    pub n_files: u64,
    /// Files that hold records, by name or content.
    pub n_record_files: u64,
    /// Record files that could be read.
    pub n_read_files: u64,
    /// Skipped files and directories.
    pub passed_over: Vec<PassedOver>,
    /// Files and directories that could not be read.
    pub errors: Vec<ScanError>,
}

/// A record of an overflow.
#[derive(Clone, Debug)]
pub struct OverflowReport {
    /// The file.
    pub path: PathBuf,
    /// Its name; the real name if the file has a numeric one.
    pub file_name: String,
    /// The step, from the name of the directory.
    pub step: Option<u64>,
    /// Digits from the file name; 16 digits are microseconds since 1970-01-01 UTC.
    pub timestamp: String,
    /// The record.
    pub record: OverflowRecord,
    /// The units that overflowed, with causes; at least one.
    pub findings: Vec<Finding>,
    /// The dump of the operator that overflowed, if any.
    pub operator: Option<OperatorDump>,
}

/// The dump of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDump {
    /// One file with all of its tensors, or one file per tensor; at least one.
    pub files: Vec<OverflowOperatorFile>,
    /// The operator's type.
    pub op_type: String,
}

/// A file with tensors of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverflowOperatorFile {
    /// Its path.
    pub path: PathBuf,
    /// Its name; the real name if the file has a numeric one.
    pub file_name: String,
}

/// A file or directory that could not be read.
#[derive(Debug, Error)]
pub enum ScanError {
    /// A file or directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record file contains no record.
    #[error("`{}` holds no overflow record", .0.display())]
    NoRecord(PathBuf),
    /// The real name of a file with a numeric name is unknown, and it may hold records.
    #[error("`{}` has a numeric name, `mapping.csv` does not list it, and it may hold overflow records", path.display())]
    NoName {
        /// The file.
        path: PathBuf,
        /// Why it could not be read.
        source: StoreError,
    },
}

/// Reads all records below `path`, or in one file.
pub fn scan(path: &Path, n_threads: usize) -> OverflowScan {
    let is_dir = remote::is_dir(path);
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = if is_dir {
        path
    } else {
        parent.unwrap_or(Path::new("."))
    };
    // A single record is listed with its directory, which holds the operator's dump.
    let mut listing = dump::list(dir);
    let mut scan = OverflowScan::default();
    let looked_into: Vec<DumpEntry> = match is_dir {
        true => {
            scan.passed_over = std::mem::take(&mut listing.passed_over);
            scan.errors = listing.errors.drain(..).map(ScanError::from).collect();
            let entries = listing.entries.iter().filter(|entry| {
                // A file with a numeric name that `mapping.csv` lacks may be a record.
                op_debug::is_record_name(&entry.real_name) || entry.has_lost_name()
            });
            entries.cloned().collect()
        }
        // A file that the user names explicitly is treated as a record.
        false => {
            let named = dump::list_file(path);
            scan.errors = named.errors.into_iter().map(ScanError::from).collect();
            named.entries
        }
    };
    scan.n_files = if is_dir {
        listing.entries.len()
    } else {
        looked_into.len()
    } as u64;
    let results = job::map(&looked_into, n_threads, |entry| look_into(entry, !is_dir));
    for (entry, result) in looked_into.iter().zip(results) {
        match result {
            Ok(None) => continue,
            Ok(Some(records)) if records.is_empty() => {
                scan.errors.push(ScanError::NoRecord(entry.path.clone()));
            }
            Ok(Some(records)) => {
                let overflows = records.into_iter();
                let overflows = overflows.filter_map(|record| overflow(entry, record));
                scan.overflows.extend(overflows);
                scan.n_read_files += 1;
            }
            Err(error) => scan.errors.push(error),
        }
        scan.n_record_files += 1;
    }
    if !is_dir && looked_into.is_empty() && scan.errors.is_empty() {
        scan.errors.push(ScanError::NoRecord(path.to_owned()));
    }
    scan.overflows.sort_by_cached_key(sort_key);
    // Indexed by task once; otherwise each record would scan all files of the dump.
    let operators = TaskFiles::of_entries(&listing.entries);
    for overflow in &mut scan.overflows {
        overflow.operator = operators.find(overflow);
    }
    scan
}

/// The records of a file. `None` if it is something else, which is only allowed for a file without
/// a recognizable name.
fn look_into(entry: &DumpEntry, is_named: bool) -> Result<Option<Vec<OverflowRecord>>, ScanError> {
    if is_named || op_debug::is_record_name(&entry.real_name) {
        return Ok(Some(read(entry)?));
    }
    let file = match TensorFile::open(&entry.path, &entry.real_name) {
        Ok(file) => file,
        Err(source) => return look_for_json_or_table(entry, source),
    };
    // Records of the first layout have no magic number; the operator in the header identifies them.
    let is_record = file.tensors().all(|stored| {
        stored.side == SlotSide::Output
            && stored.dtype == DumpTerm::Known(DType::U8)
            && (is_record_op(&file.facts().op_name)
                || (file.elements(stored)).is_ok_and(|part| op_debug::has_magic(part.as_ref())))
    });
    if !is_record || file.tensors().next().is_none() {
        return Ok(None);
    }
    let records = records(&entry.path, &file)?;
    Ok(Some(
        records.into_iter().map(|(_, record)| record).collect(),
    ))
}

/// A file without tensors may still be statistics or a record in JSON.
fn look_for_json_or_table(
    entry: &DumpEntry,
    source: StoreError,
) -> Result<Option<Vec<OverflowRecord>>, ScanError> {
    // Files of any kind and size come here, so check the size before reading.
    let json_limit = op_debug::JSON_BYTES_MAX as u64;
    if entry.n_bytes <= json_limit
        && let Ok(bytes) = regular_file::read_in_dump(&entry.path, json_limit)
        && let Ok(record) = op_debug::from_json(&bytes)
    {
        return Ok(Some(vec![record]));
    }
    match stats_csv::read_if_table(&entry.path) {
        Ok(Some(_)) => Ok(None),
        Ok(None) | Err(_) => Err(ScanError::NoName {
            path: entry.path.clone(),
            source,
        }),
    }
}

/// Whether a header names the operator that writes records.
fn is_record_op(op_name: &str) -> bool {
    op_name.eq_ignore_ascii_case(dump_data::RECORD_OP_NAME)
}

fn sort_key(overflow: &OverflowReport) -> (u64, (usize, String), PathBuf) {
    let step = overflow.step.unwrap_or(u64::MAX);
    (step, order(&overflow.timestamp), overflow.path.clone())
}

fn read(entry: &DumpEntry) -> Result<Vec<OverflowRecord>, StoreError> {
    let file = TensorFile::open(&entry.path, &entry.real_name)?;
    records(&entry.path, &file).map(|records| records.into_iter().map(|(_, r)| r).collect())
}

/// The records in a file, with their output indices.
pub(crate) fn records(
    path: &Path,
    file: &TensorFile,
) -> Result<Vec<(usize, OverflowRecord)>, StoreError> {
    let outputs = file.tensors().filter(|t| t.side == SlotSide::Output);
    let records = outputs.map(|stored| {
        let record = OverflowRecord::decode(file.elements(stored)?.as_ref());
        let record = record.map_err(|error| StoreError::Corrupt {
            format: op_debug::FORMAT_NAME,
            path: path.to_owned(),
            source: error.shifted(stored.start()),
        });
        Ok((stored.index, record?))
    });
    records.collect()
}

fn overflow(entry: &DumpEntry, record: OverflowRecord) -> Option<OverflowReport> {
    let findings = findings(&record);
    let parent = entry.path.parent().and_then(Path::file_name);
    let timestamp = match &entry.name {
        Some(name) => name.timestamp.clone(),
        None => longest_number(&entry.real_name),
    };
    (!findings.is_empty()).then(|| OverflowReport {
        path: entry.path.clone(),
        file_name: entry.real_name.clone(),
        step: parent.and_then(|name| name.to_str()?.parse().ok()),
        timestamp,
        record,
        findings,
        operator: None,
    })
}

/// For an unknown name pattern, the number that is most likely the time.
fn longest_number(name: &str) -> String {
    let fields = name.split(|c: char| !c.is_ascii_digit());
    fields
        .max_by_key(|field| field.len())
        .unwrap_or_default()
        .to_owned()
}

/// Files with tensors, indexed by task.
struct TaskFiles<'a> {
    by_task: HashMap<u64, Vec<OperatorCandidate<'a>>>,
}

/// A file that may belong to an overflowing operator.
struct OperatorCandidate<'a> {
    entry: &'a DumpEntry,
    name: DumpFileName,
    /// The file's only tensor, if the name identifies it.
    slot: Option<(SlotSide, u32)>,
}

impl<'a> TaskFiles<'a> {
    fn of_entries(entries: &'a [DumpEntry]) -> TaskFiles<'a> {
        let mut by_task: HashMap<u64, Vec<OperatorCandidate<'a>>> = HashMap::new();
        let entries = entries.iter();
        for entry in entries.filter(|entry| !op_debug::is_record_name(&entry.real_name)) {
            if let Some(candidate) = OperatorCandidate::of_entry(entry) {
                let of_task = by_task.entry(candidate.name.task_id.into());
                of_task.or_default().push(candidate);
            }
        }
        TaskFiles { by_task }
    }

    /// The earliest dump of the task in the record's directory, else below it. In a record with
    /// several sections, the last one names the task.
    fn find(&self, overflow: &OverflowReport) -> Option<OperatorDump> {
        let dir = overflow.path.parent().unwrap_or(Path::new("."));
        let finding = overflow.findings.last()?;
        let of_task = self.by_task.get(&finding.task_id)?.iter();
        let candidates: Vec<&OperatorCandidate<'_>> = of_task
            .filter(|candidate| {
                candidate.entry.path.starts_with(dir) && finding.is_of(&candidate.name)
            })
            .collect();
        let first = *candidates.iter().min_by_key(|candidate| {
            let parent = candidate.entry.path.parent();
            (parent != Some(dir), order(&candidate.name.timestamp))
        })?;
        // The earliest file of each tensor.
        let mut by_slot: BTreeMap<Option<(SlotSide, u32)>, &OperatorCandidate<'_>> =
            BTreeMap::new();
        for candidate in candidates
            .iter()
            .filter(|candidate| candidate.is_beside(first))
        {
            let known = by_slot.entry(candidate.slot).or_insert(candidate);
            if order(&candidate.name.timestamp) < order(&known.name.timestamp) {
                *known = candidate;
            }
        }
        let file = |candidate: &OperatorCandidate<'_>| OverflowOperatorFile {
            path: candidate.entry.path.clone(),
            file_name: candidate.entry.real_name.clone(),
        };
        let files = match first.slot {
            None => vec![file(first)],
            Some(_) => by_slot.into_values().map(file).collect(),
        };
        Some(OperatorDump {
            files,
            op_type: first.name.op_type.clone(),
        })
    }
}

impl<'a> OperatorCandidate<'a> {
    fn of_entry(entry: &'a DumpEntry) -> Option<OperatorCandidate<'a>> {
        if let Some(name) = entry.name.clone() {
            let slot = None;
            return Some(OperatorCandidate { entry, name, slot });
        }
        let array = TensorFileName::parse(&entry.real_name)?;
        Some(OperatorCandidate {
            entry,
            slot: Some((array.side, array.slot)),
            name: DumpFileName {
                op_type: array.op_type,
                op_name: array.op_name,
                task_id: array.task_id,
                stream_id: Some(array.stream_id),
                timestamp: array.timestamp.to_string(),
                sub_task: array.sub_task,
            },
        })
    }

    /// Whether both files hold single tensors of the same operator.
    fn is_beside(&self, other: &OperatorCandidate<'_>) -> bool {
        let (own, others) = (&self.name, &other.name);
        self.entry.path.parent() == other.entry.path.parent()
            && (&own.op_type, &own.op_name) == (&others.op_type, &others.op_name)
            && (own.stream_id, &own.sub_task) == (others.stream_id, &others.sub_task)
            && self.slot.is_some() == other.slot.is_some()
    }
}
