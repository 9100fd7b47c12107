//! What is in a directory of dump files.

use std::collections::BTreeMap;
use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump;
use opscope_store::file_format::dump_data::{DumpFile, PayloadKind};

use crate::job;

/// A directory of dump files.
#[derive(Debug, Default)]
pub struct Overview {
    /// Operators in the order of their first file.
    pub operators: Vec<OperatorOverview>,
    /// Number of dump files.
    pub n_files: u64,
    /// Bytes of all dump files.
    pub n_bytes: u64,
    /// Directories that hold dump files, relative to the listed one, in order.
    pub dirs: Vec<String>,
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
}

/// Lists the dump files below `dir`, reading their headers on `n_threads` threads.
pub fn directory(dir: &Path, n_threads: usize) -> Overview {
    let listing = dump::list(dir);
    let files = job::map(&listing.entries, n_threads, |entry| {
        DumpFile::open(&entry.path).map(|f| {
            let count = |kind| f.pieces().iter().filter(|piece| piece.kind == kind).count() as u64;
            (
                f.header().op_name.clone(),
                count(PayloadKind::Input),
                count(PayloadKind::Output),
            )
        })
    });
    let mut overview = Overview {
        errors: listing.errors,
        ..Overview::default()
    };
    let mut by_key: BTreeMap<(String, String, String, Option<u32>), usize> = BTreeMap::new();
    for (entry, file) in listing.entries.iter().zip(files) {
        let (header_name, n_inputs, n_outputs) = match file {
            Ok(file) => file,
            Err(error) => {
                overview.errors.push(error);
                continue;
            }
        };
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
        if overview.dirs.last() != Some(&subdir) {
            overview.dirs.push(subdir);
        }
        let (op_type, file_op_name, task_id) = match &entry.name {
            Some(name) => (
                name.op_type.clone(),
                name.op_name.clone(),
                Some(name.task_id),
            ),
            None => (String::new(), entry.real_name.clone(), None),
        };
        let op_name = if header_name.is_empty() {
            file_op_name
        } else {
            header_name
        };
        let key = (model_dir, op_type.clone(), op_name.clone(), task_id);
        let index = *by_key.entry(key).or_insert_with(|| {
            overview.operators.push(OperatorOverview {
                op_type,
                op_name,
                task_id,
                n_files: 0,
                n_inputs: 0,
                n_outputs: 0,
                n_bytes: 0,
            });
            overview.operators.len() - 1
        });
        let operator = &mut overview.operators[index];
        operator.n_files += 1;
        operator.n_inputs += n_inputs;
        operator.n_outputs += n_outputs;
        operator.n_bytes += entry.n_bytes;
        overview.n_files += 1;
        overview.n_bytes += entry.n_bytes;
    }
    overview
}
