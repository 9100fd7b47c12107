//! Finding records and the dumps of their operators.

use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::{self, Entry};
use opscope_store::file_format::dump_data::PayloadKind;
use opscope_store::file_format::op_debug::{self, OverflowRecord};
use thiserror::Error;

use super::{Finding, findings, order};
use crate::job;
use crate::tensor_file::TensorFile;

/// All records of a directory.
#[derive(Debug, Default)]
pub struct Scan {
    /// Records of an overflow, earliest first: by step, then by time.
    pub overflows: Vec<Overflow>,
    /// Files whose names say that they hold records.
    pub n_record_files: u64,
    /// What could not be read.
    pub errors: Vec<ScanError>,
}

/// A record of an overflow.
#[derive(Clone, Debug)]
pub struct Overflow {
    /// The file.
    pub path: PathBuf,
    /// Its name; the real one where the file goes by digits.
    pub file_name: String,
    /// Which execution of the model: the number that the directory is called.
    pub step: Option<u64>,
    /// Digits from the file's name; microseconds since 1970-01-01 UTC if there are 16 of them.
    pub timestamp: String,
    /// The record.
    pub record: OverflowRecord,
    /// Which units overflowed, and why; at least one.
    pub findings: Vec<Finding>,
    /// The dump of the operator that overflowed, if there is one.
    pub operator: Option<OperatorDump>,
}

/// The dump of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorDump {
    /// The file.
    pub path: PathBuf,
    /// Its name; the real one where the file goes by digits.
    pub file_name: String,
    /// The operator's type.
    pub op_type: String,
}

/// What could not be read.
#[derive(Debug, Error)]
pub enum ScanError {
    /// A file or directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file with records has none.
    #[error("`{}` holds no overflow record", .0.display())]
    NoRecord(PathBuf),
}

/// Reads all records below `path`, or one file.
pub fn scan(path: &Path, n_threads: usize) -> Scan {
    let dir = match path.is_dir() {
        true => path,
        false => path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new(".")),
    };
    let listing = dump::list(dir);
    // A file that is named is taken for what the user says it is.
    let is_named = |entry: &Entry| {
        entry.path.parent() == Some(dir) && entry.path.file_name() == path.file_name()
    };
    let is_wanted = |entry: &&Entry| match path.is_dir() {
        true => op_debug::is_record_name(&entry.real_name),
        false => is_named(entry),
    };
    let record_files: Vec<&Entry> = listing.entries.iter().filter(is_wanted).collect();
    let mut scan = Scan {
        n_record_files: record_files.len() as u64,
        errors: listing.errors.into_iter().map(ScanError::from).collect(),
        ..Scan::default()
    };
    let results = job::map(&record_files, n_threads, |entry| read(entry));
    for (entry, result) in record_files.iter().zip(results) {
        match result {
            Ok(records) if records.is_empty() => {
                scan.errors.push(ScanError::NoRecord(entry.path.clone()));
            }
            Ok(records) => {
                let overflows = records
                    .into_iter()
                    .filter_map(|record| overflow(entry, record));
                scan.overflows.extend(overflows);
            }
            Err(error) => scan.errors.push(error.into()),
        }
    }
    scan.overflows.sort_by_cached_key(sort_key);
    for overflow in &mut scan.overflows {
        overflow.operator = operator(overflow, &listing.entries);
    }
    scan
}

fn sort_key(overflow: &Overflow) -> (u64, (usize, String), PathBuf) {
    let step = overflow.step.unwrap_or(u64::MAX);
    (step, order(&overflow.timestamp), overflow.path.clone())
}

fn read(entry: &Entry) -> Result<Vec<OverflowRecord>, StoreError> {
    let file = TensorFile::open(&entry.path, &entry.real_name)?;
    records(&entry.path, &file).map(|records| records.into_iter().map(|(_, r)| r).collect())
}

/// The records in a file, with the positions of their outputs.
pub(crate) fn records(
    path: &Path,
    file: &TensorFile,
) -> Result<Vec<(usize, OverflowRecord)>, StoreError> {
    let outputs = file.tensors().filter(|t| t.kind == PayloadKind::Output);
    let records = outputs.map(|tensor| {
        let record = OverflowRecord::decode(tensor.bytes);
        let record = record.map_err(|error| StoreError::Corrupt {
            format: op_debug::FORMAT_NAME,
            path: path.to_owned(),
            source: error.shifted(file.output_offset(tensor.index)),
        });
        Ok((tensor.index, record?))
    });
    records.collect()
}

fn overflow(entry: &Entry, record: OverflowRecord) -> Option<Overflow> {
    let findings = findings(&record);
    let parent = entry.path.parent().and_then(Path::file_name);
    let timestamp = match &entry.name {
        Some(name) => name.timestamp.clone(),
        None => longest_number(&entry.real_name),
    };
    (!findings.is_empty()).then(|| Overflow {
        path: entry.path.clone(),
        file_name: entry.real_name.clone(),
        step: parent.and_then(|name| name.to_str()?.parse().ok()),
        timestamp,
        record,
        findings,
        operator: None,
    })
}

/// What is most likely the time in a name of an unknown pattern.
fn longest_number(name: &str) -> String {
    let fields = name.split(|c: char| !c.is_ascii_digit());
    fields
        .max_by_key(|field| field.len())
        .unwrap_or_default()
        .to_owned()
}

/// The earliest dump of the task in the record's directory, else below it. A record with several
/// sections names the task in the last one.
fn operator(overflow: &Overflow, entries: &[Entry]) -> Option<OperatorDump> {
    let dir = overflow.path.parent().unwrap_or(Path::new("."));
    let finding = overflow.findings.last()?;
    let candidates = entries.iter().filter_map(|entry| {
        let name = entry.name.as_ref()?;
        let is_near = entry.path.starts_with(dir);
        let is_operator = !op_debug::is_record_name(&entry.real_name) && finding.is_of(name);
        let key = (entry.path.parent() != Some(dir), order(&name.timestamp));
        (is_near && is_operator).then_some((key, entry, name))
    });
    let (_, entry, name) = candidates.min_by(|a, b| a.0.cmp(&b.0))?;
    Some(OperatorDump {
        path: entry.path.clone(),
        file_name: entry.real_name.clone(),
        op_type: name.op_type.clone(),
    })
}
