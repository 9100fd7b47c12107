//! A directory of dumps: the files of each operator.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::TEMPORARY_PREFIX;
use opscope_store::decimal::is_digits;
use opscope_store::dump::read_mapping;
use opscope_store::file_format::mapping_csv;
use opscope_store::tree::run::RUN_DIR;

use super::dump::ComparedFile;
use super::ffts;
use super::file_name::{self, DumpFileKind, SortBy, TaskMode};
use super::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;
use crate::paths::{self, PathKind};

const FAILED_LIST: &str = "convert_failed_file_list.txt";
/// Substrings of the names of quantising and dequantising operators.
pub(super) const QUANT_MARKS: [&str; 8] = [
    "_quant_layer",
    "_anti_quant_layer",
    "AscendQuant",
    "AscendWeightQuant",
    "AntiQuant",
    "_quant",
    "_weight_quant",
    "_anti_quant",
];
pub(super) const DEQUANT_MARKS: [&str; 3] = ["_dequant_layer", "AscendDequant", "_dequant"];

/// The files of a directory by operator.
pub(super) struct DumpDir {
    pub(super) path: PathBuf,
    /// Never [`DumpFileKind::Numpy`]: arrays count as quantised originals or plain ones.
    pub(super) kind: DumpFileKind,
    pub(super) is_quantised: bool,
    /// Sorted by file name.
    pub(super) operators: Vec<OperatorFiles>,
    by_key: HashMap<String, usize>,
    pub(super) mapping: HashMap<String, String>,
    /// Real names of files named by numbers, as far as sorting knows them.
    sort_mapping: HashMap<String, String>,
}

/// The files of one operator, or of one output of an original.
pub(super) struct OperatorFiles {
    pub(super) key: String,
    pub(super) files: Vec<PathBuf>,
    pub(super) mode: TaskMode,
}

/// How keys are built.
#[derive(Clone, Copy)]
pub(super) struct KeyNaming {
    /// Whether slices stay separate.
    pub(super) keeps_slices: bool,
    /// Whether there is a fusion rule.
    pub(super) has_rule: bool,
}

impl DumpDir {
    /// Reads a directory. Names without a known pattern are skipped.
    pub(super) fn open(path: &Path, naming: KeyNaming) -> Result<DumpDir, CompareStop> {
        paths::check_input(path, PathKind::Directory)?;
        let mut dir = DumpDir {
            path: path.to_owned(),
            kind: DumpFileKind::Offline,
            is_quantised: false,
            operators: Vec::new(),
            by_key: HashMap::new(),
            mapping: read_mapping(path),
            sort_mapping: HashMap::new(),
        };
        let mut kind = None;
        for name in file_names(path)? {
            dir.add(&name, naming, &mut kind)?;
        }
        dir.kind = match kind {
            None => {
                let path = log::quoted(path);
                let message = format!("No valid dump files in the path {path}.");
                return Err(CompareStop::coded(ErrorCode::DumpFile, message));
            }
            Some(DumpFileKind::Numpy) if dir.is_quantised => DumpFileKind::Quant,
            Some(DumpFileKind::Numpy) => DumpFileKind::Standard,
            Some(kind) => kind,
        };
        Ok(dir)
    }

    fn add(
        &mut self,
        name: &str,
        naming: KeyNaming,
        kind: &mut Option<DumpFileKind>,
    ) -> Result<(), CompareStop> {
        let mut real = name;
        // Too long names are replaced by numbers, and a table holds the real ones.
        if is_digits(name.strip_suffix(".npy").unwrap_or(name)) {
            let table = self.path.join(mapping_csv::FILE_NAME);
            match self.mapping.get(name) {
                Some(found) => real = found,
                // An exception in the reference, which ends the command.
                None if table.exists() && self.mapping.is_empty() => {
                    return Err(CompareStop::Fatal(format!(
                        "{} is empty",
                        log::quoted(&table)
                    )));
                }
                None => {
                    log::warning(&format!(
                        "The name \"{name}\" is not in {}.",
                        log::quoted(&table)
                    ));
                    return Ok(());
                }
            }
        }
        let Some((found, key)) = file_name::parse(real) else {
            log::warning(&format!("The file name \"{real}\" is passed over."));
            return Ok(());
        };
        let key = if naming.keeps_slices {
            key
        } else {
            match file_name::without_marks(&key, naming.has_rule)? {
                Some(key) => key,
                None => return Ok(()),
            }
        };
        let Some(mode) = file_name::task_mode(real) else {
            return Err(CompareStop::bare(ErrorCode::TaskType));
        };
        let mut marks = QUANT_MARKS.iter().chain(&DEQUANT_MARKS);
        if matches!(found, DumpFileKind::Offline | DumpFileKind::Numpy)
            && marks.any(|mark| key.contains(mark))
        {
            self.is_quantised = true;
        }
        // The first file determines the kind of the directory.
        if *kind.get_or_insert(found) != found {
            let path = log::quoted(&self.path);
            let message = format!(
                "Not all files in the path {path} are of the same type, such as \"{real}\"."
            );
            return Err(CompareStop::coded(ErrorCode::DumpFile, message));
        }
        let at = *self.by_key.entry(key).or_insert_with_key(|key| {
            self.operators.push(OperatorFiles {
                key: key.clone(),
                files: Vec::new(),
                mode,
            });
            self.operators.len() - 1
        });
        let operator = &mut self.operators[at];
        operator.files.push(self.path.join(name));
        // The last file determines the mode, as in the reference.
        operator.mode = mode;
        Ok(())
    }

    /// Makes real names available for sorting; the reference does so only without fusion rules.
    pub(super) fn sort_with(&mut self, mapping: HashMap<String, String>) {
        self.sort_mapping = mapping;
    }

    /// The operator named `op_name`, or output `index` of it.
    fn find(&self, op_name: &str, index: Option<i64>) -> Result<&OperatorFiles, CompareStop> {
        // The dump writer replaced these characters, which are invalid in file names or separate
        // fields.
        let mut key = op_name.replace(['/', '.'], "_");
        if let Some(index) = index {
            key = format!("{key}.{index}");
        }
        match self.by_key.get(&key) {
            Some(&at) => Ok(&self.operators[at]),
            None => Err(CompareStop::bare(ErrorCode::NoDumpFile)),
        }
    }

    /// The files of an operator, the newest last.
    pub(super) fn files(
        &self,
        op_name: &str,
        index: Option<i64>,
    ) -> Result<(Vec<PathBuf>, TaskMode), CompareStop> {
        let operator = self.find(op_name, index)?;
        Ok((self.sorted(operator)?, operator.mode))
    }

    /// The files of an operator, the newest last.
    pub(super) fn sorted(&self, operator: &OperatorFiles) -> Result<Vec<PathBuf>, CompareStop> {
        let mut files = operator.files.clone();
        if files.len() > 1 {
            let orders: &[SortBy] = match operator.mode {
                TaskMode::Normal => &[SortBy::Time],
                TaskMode::Automatic => &[SortBy::SliceTime, SortBy::Thread],
                TaskMode::Manual => &[SortBy::SliceTime, SortBy::Slice],
            };
            // Each sort is stable, so the last key decides and earlier ones break ties.
            for &by in orders {
                files = self.sort(files, by)?;
            }
        }
        Ok(files)
    }

    fn sort(&self, files: Vec<PathBuf>, by: SortBy) -> Result<Vec<PathBuf>, CompareStop> {
        let keyed = files
            .into_iter()
            .map(|path| Ok((file_name::sort_key(&path, by, &self.sort_mapping)?, path)));
        let mut keyed = keyed.collect::<Result<Vec<_>, CompareStop>>()?;
        keyed.sort_by_key(|(key, _)| *key);
        Ok(keyed.into_iter().map(|(_, path)| path).collect())
    }

    /// The time of the newest file of an operator.
    pub(super) fn newest(&self, files: &[PathBuf], mode: TaskMode) -> Result<u64, CompareStop> {
        let by = match mode {
            TaskMode::Normal => SortBy::Time,
            TaskMode::Automatic | TaskMode::Manual => SortBy::SliceTime,
        };
        let last = files.last().ok_or_else(CompareStop::index)?;
        file_name::sort_key(last, by, &self.sort_mapping)
    }

    /// The operator's dump: its newest file, or its merged slices. Every file is opened.
    pub(super) fn load(
        &self,
        op_name: &str,
        index: Option<i64>,
    ) -> Result<(String, ComparedFile), CompareStop> {
        let index = match (self.kind, index) {
            // Files of originals hold one output each, with its number in the name.
            (DumpFileKind::Quant, None) => Some(0),
            (_, index) => index,
        };
        let (files, mode) = self.files(op_name, index)?;
        load_files(&files, mode)
    }
}

/// The merged dump of an operator's files, and a representative path.
pub(super) fn load_files(
    files: &[PathBuf],
    mode: TaskMode,
) -> Result<(String, ComparedFile), CompareStop> {
    // All are opened although one is enough: in the reference a broken older file also fails the
    // operator.
    let mut dumps = files
        .iter()
        .map(|path| ComparedFile::open(path))
        .collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<String> = files.iter().map(|p| p.display().to_string()).collect();
    if mode != TaskMode::Normal {
        return ffts::merge(paths, dumps);
    }
    match (paths.into_iter().next_back(), dumps.pop()) {
        (Some(path), Some(dump)) => Ok((path, dump)),
        _ => Err(CompareStop::bare(ErrorCode::NoDumpFile)),
    }
}

/// Names of the possible dump files of a directory, sorted.
fn file_names(dir: &Path) -> Result<Vec<String>, CompareStop> {
    let mut names = Vec::new();
    let entries = fs::read_dir(dir).map_err(|error| CompareStop::Fatal(error.to_string()))?;
    for entry in entries {
        let entry = entry.map_err(|error| CompareStop::Fatal(error.to_string()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name == RUN_DIR || name.starts_with(TEMPORARY_PREFIX);
        let is_other = name == mapping_csv::FILE_NAME || name == FAILED_LIST;
        if !is_ours && !is_other && entry.path().is_file() {
            names.push(name);
        }
    }
    // The reference uses the order of the file system, so its results vary.
    names.sort_unstable();
    Ok(names)
}

/// Whether an unresolved path is an array file or a directory with one.
pub(super) fn has_arrays(path: &str) -> bool {
    let path = Path::new(path);
    if path.is_file() {
        return path.to_string_lossy().ends_with(".npy");
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().ends_with(".npy"))
}
