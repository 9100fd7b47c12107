//! Lists the contents of a directory of dump files, nano dumps and arrays.

use std::collections::BTreeMap;
use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::{self, PassedOver};
use opscope_store::file_format::dump_data::PayloadKind;
use opscope_store::file_format::op_debug;

use crate::job;
use crate::tensor_file::TensorFile;

/// A directory of dump files.
#[derive(Debug, Default)]
pub struct Overview {
    /// Operators in the order of their first file.
    pub operators: Vec<OperatorOverview>,
    /// Number of dump files.
    pub n_files: u64,
    /// Number of files with overflow records among them.
    pub n_record_files: u64,
    /// Bytes of all dump files.
    pub n_bytes: u64,
    /// Directories that hold dump files, relative to the listed one, in order.
    pub dirs: Vec<String>,
    /// Files and directories that are not read as a part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// Files that are no dump files, or damaged ones, and directories that could not be listed.
    pub errors: Vec<StoreError>,
}

/// All files of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorOverview {
    /// Its type, from the file names.
    pub op_type: String,
    /// Its name, from the headers where they have one.
    pub op_name: String,
    /// Position in execution order, from the file names.
    pub task_id: Option<u32>,
    /// Number of its files.
    pub n_files: u64,
    /// Number of inputs in all files.
    pub n_inputs: u64,
    /// Number of outputs in all files.
    pub n_outputs: u64,
    /// Bytes of its files.
    pub n_bytes: u64,
    /// Whether the files hold overflow records instead of tensors.
    pub is_record: bool,
}

/// The facts that the header of one file gives.
struct HeaderSummary {
    op_name: String,
    n_inputs: u64,
    n_outputs: u64,
}

/// Which files belong to one operator: directory of the model, type, name, task.
type Key = (String, String, String, Option<u32>);

/// Lists the dump files below `dir`, reading their headers on `n_threads` threads.
pub fn directory(dir: &Path, n_threads: usize) -> Overview {
    overview(dir, dump::list(dir), n_threads)
}

/// Describes a listing of `dir`, reading headers on `n_threads` threads.
pub fn overview(dir: &Path, listing: dump::Listing, n_threads: usize) -> Overview {
    let headers = job::map(&listing.entries, n_threads, read_header);
    let mut overview = Overview {
        passed_over: listing.passed_over,
        errors: listing.errors,
        ..Overview::default()
    };
    let mut by_key: BTreeMap<Key, usize> = BTreeMap::new();
    for (entry, header) in listing.entries.iter().zip(headers) {
        match header {
            Ok(header) => overview.add(dir, entry, header, &mut by_key),
            Err(error) => overview.errors.push(error),
        }
    }
    overview
}

fn read_header(entry: &dump::Entry) -> Result<HeaderSummary, StoreError> {
    let file = TensorFile::open(&entry.path, &entry.real_name)?;
    let count = |kind| file.tensors().filter(|tensor| tensor.kind == kind).count() as u64;
    Ok(HeaderSummary {
        op_name: file.header().op_name.clone(),
        n_inputs: count(PayloadKind::Input),
        n_outputs: count(PayloadKind::Output),
    })
}

impl Overview {
    fn add(
        &mut self,
        dir: &Path,
        entry: &dump::Entry,
        header: HeaderSummary,
        by_key: &mut BTreeMap<Key, usize>,
    ) {
        let parent = entry.path.parent().unwrap_or(dir);
        let model_dir = parent
            .parent()
            .unwrap_or(dir)
            .to_string_lossy()
            .into_owned();
        let subdir = parent
            .strip_prefix(dir)
            .unwrap_or(parent)
            .to_string_lossy()
            .into_owned();
        if self.dirs.last() != Some(&subdir) {
            self.dirs.push(subdir);
        }
        let (op_type, file_op_name, task_id) = match &entry.name {
            Some(name) => (
                name.op_type.clone(),
                name.op_name.clone(),
                Some(name.task_id),
            ),
            None => (String::new(), entry.real_name.clone(), None),
        };
        let op_name = if header.op_name.is_empty() {
            file_op_name
        } else {
            header.op_name
        };
        let is_record = op_debug::is_record_name(&entry.real_name);
        self.n_record_files += u64::from(is_record);
        let key = (model_dir, op_type.clone(), op_name.clone(), task_id);
        let index = *by_key.entry(key).or_insert_with(|| {
            self.operators.push(OperatorOverview {
                op_type,
                op_name,
                task_id,
                n_files: 0,
                n_inputs: 0,
                n_outputs: 0,
                n_bytes: 0,
                is_record,
            });
            self.operators.len() - 1
        });
        let operator = &mut self.operators[index];
        operator.n_files += 1;
        operator.n_inputs += header.n_inputs;
        operator.n_outputs += header.n_outputs;
        operator.n_bytes += entry.n_bytes;
        self.n_files += 1;
        self.n_bytes += entry.n_bytes;
    }
}
