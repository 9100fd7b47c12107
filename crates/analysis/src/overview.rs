//! Counts the operators of a dump.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use opscope_store::SharedText;
use opscope_store::file_format::op_debug;
use opscope_store::reader::{DumpIndex, IndexedFile, OperatorInFile};

/// A dump, summarized by operator.
#[derive(Debug, Default)]
pub struct Overview {
    /// Operators, in the order of their first file.
    pub operators: Vec<OperatorOverview>,
    /// Number of readable files.
    pub n_files: u64,
    /// Number of them that hold overflow records.
    pub n_record_files: u64,
    /// Bytes of these files.
    pub n_bytes: u64,
    /// Directories with such files, relative to the dump, in order.
    pub dirs: Vec<String>,
    /// The ranks that wrote them, in ascending order.
    pub ranks: BTreeSet<u32>,
}

/// All files of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorOverview {
    /// Its type, from the file names.
    pub op_type: SharedText,
    /// Its name, from the headers if they have one.
    pub op_name: SharedText,
    /// Position in execution order, from the file names.
    pub task_id: Option<u32>,
    /// The ranks that executed it.
    pub ranks: BTreeSet<u32>,
    /// Number of its files.
    pub n_files: u64,
    /// Number of inputs in all files.
    pub n_inputs: u64,
    /// Number of outputs in all files.
    pub n_outputs: u64,
    /// Bytes of its files, or of its tensors if files hold several operators.
    pub n_bytes: u64,
    /// Whether the files hold overflow records, not tensors.
    pub is_record: bool,
}

/// Groups files by operator: number of the model directory (`None` for all ranks of a run), type,
/// name, task.
type OperatorKey = (Option<usize>, SharedText, SharedText, Option<u32>);

/// Numbers of the known model directories and operators.
#[derive(Default)]
struct KnownOperators {
    dirs: HashMap<String, usize>,
    positions: HashMap<OperatorKey, usize>,
}

impl Overview {
    /// Counts the operators of the dump in `dir`.
    pub fn new(dir: &Path, index: &DumpIndex) -> Overview {
        let mut overview = Overview::default();
        let mut known = KnownOperators::default();
        overview.ranks = index.files.iter().filter_map(|file| file.rank).collect();
        // A file without a known operator is damaged, and listed among the errors.
        for file in index.files.iter().filter(|file| !file.operators.is_empty()) {
            overview.add(dir, file, &mut known);
        }
        overview
    }

    fn add(&mut self, dir: &Path, file: &IndexedFile, known: &mut KnownOperators) {
        let parent = file.path.parent().unwrap_or(dir);
        // One level above the step, so that all executions of an operator count together.
        let model_dir = parent.parent().unwrap_or(dir).to_string_lossy();
        let subdir = parent.strip_prefix(dir).unwrap_or(parent).to_string_lossy();
        if self.dirs.last().is_none_or(|last| *last != subdir) {
            self.dirs.push(subdir.into_owned());
        }
        let n_dirs = known.dirs.len();
        let model_dir = *known.dirs.entry(model_dir.into_owned()).or_insert(n_dirs);
        // An operator that every rank executes counts once; otherwise large runs would repeat it
        // per rank.
        let is_of_many = file.rank.is_some() && self.ranks.len() > 1;
        let model_dir = (!is_of_many).then_some(model_dir);
        let is_record = op_debug::is_record_name(&file.real_name);
        for found in &file.operators {
            let OperatorInFile {
                op_type,
                op_name,
                task_id,
                ..
            } = found;
            let key = (model_dir, op_type.clone(), op_name.clone(), *task_id);
            let position = *known.positions.entry(key).or_insert_with(|| {
                self.operators.push(OperatorOverview {
                    op_type: op_type.clone(),
                    op_name: op_name.clone(),
                    task_id: *task_id,
                    ranks: BTreeSet::new(),
                    n_files: 0,
                    n_inputs: 0,
                    n_outputs: 0,
                    n_bytes: 0,
                    is_record,
                });
                self.operators.len() - 1
            });
            let operator = &mut self.operators[position];
            operator.ranks.extend(file.rank);
            operator.n_files += 1;
            operator.n_inputs += found.n_inputs;
            operator.n_outputs += found.n_outputs;
            // Sizes are what files claim.
            operator.n_bytes = operator.n_bytes.saturating_add(found.n_bytes);
        }
        self.n_record_files += u64::from(is_record);
        self.n_files += 1;
        self.n_bytes = self.n_bytes.saturating_add(file.n_bytes);
    }
}
