//! The files to convert.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::dump::{self, PassReason, PassedOver};
use opscope_store::file_format::npy_zst;
use opscope_store::reader::{IndexedTensor, NATIVE_FORM, read_listing, reader_of};
use opscope_store::tree::acl::{DumpFileName, clean_name};
use opscope_store::tree::mindspore::TensorFileName;
use opscope_store::tree::native::StepFile;
use opscope_store::{StoreError, remote};

/// One file to convert, and the place of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertSource {
    /// The file.
    pub path: PathBuf,
    /// The file's name, used as the prefix of its results.
    pub file_name: String,
    /// The real name from `mapping.csv`, if it was too long for the file system.
    pub real_name: Option<String>,
    /// Whether the name already identifies the tensor, as MindSpore's names do. Results then drop
    /// the suffix from their prefix.
    pub names_its_tensor: bool,
    /// Directory below the output directory.
    pub subdir: PathBuf,
    /// Size in bytes.
    pub n_bytes: u64,
    /// The tensors of one execution, if the file is the table of a whole step.
    pub records: Vec<IndexedTensor>,
}

impl ConvertSource {
    /// The name that describes the file's content.
    pub fn telling_name(&self) -> &str {
        self.real_name.as_deref().unwrap_or(&self.file_name)
    }

    fn with_tensor_name(mut self) -> ConvertSource {
        // A name without a dtype may belong to one of our own results.
        let name = TensorFileName::parse(self.telling_name());
        if name.is_some_and(|name| name.dtype.is_some()) {
            self.file_name = without_suffix(self.file_name);
            self.real_name = self.real_name.map(without_suffix);
            self.names_its_tensor = true;
        }
        self
    }
}

/// The files below a path, sorted by outcome.
#[derive(Debug, Default)]
pub struct FoundSources {
    /// Files to convert.
    pub sources: Vec<ConvertSource>,
    /// Files with nothing to convert.
    pub passed_over: Vec<PassedOver>,
    /// Files and directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// Why a single file has nothing to convert; `None` if it may have. Results of a conversion can be
/// converted again when the user names them.
fn reason_without_tensors(listing: &dump::DumpListing) -> Option<PassReason> {
    let reader = reader_of(listing);
    if !listing.tables.is_empty() || !listing.step_tables.is_empty() {
        return Some(PassReason::Statistics);
    }
    let mut reasons = listing
        .entries
        .iter()
        .map(|entry| reader.reason_to_pass(entry));
    let reason = reasons.next().flatten();
    reason.filter(|reason| matches!(reason, PassReason::Statistics | PassReason::Graph))
}

/// Lists the sources: a single file as it is, or a directory recursively with its structure.
/// Conversion results, statistics, graphs and lists are skipped.
pub fn sources(path: &Path) -> FoundSources {
    let is_step = remote::absolute(path).is_ok_and(|path| StepFile::parse(&path).is_some());
    if is_step && !remote::is_dir(path) {
        return executions(
            path.parent().unwrap_or(Path::new(".")),
            dump::list_file(path),
        );
    }
    if !remote::is_dir(path) {
        let mut found = FoundSources::default();
        // Otherwise a log or a table would count as a damaged dump file.
        if let Some(reason) = reason_without_tensors(&dump::list_file(path)) {
            let path = path.to_owned();
            found.passed_over.push(PassedOver { path, reason });
            return found;
        }
        match single_source(path) {
            Ok(source) => found.sources.push(source),
            Err(error) => found.errors.push(error),
        }
        return found;
    }
    let listing = dump::list(path);
    let source = |entry: dump::DumpEntry| {
        let parent = entry.path.parent().unwrap_or(path);
        let source = ConvertSource {
            subdir: parent
                .strip_prefix(path)
                .unwrap_or(Path::new(""))
                .to_owned(),
            file_name: file_name(&entry.path),
            real_name: entry.is_mapped().then(|| entry.real_name.clone()),
            names_its_tensor: false,
            n_bytes: entry.n_bytes,
            path: entry.path,
            records: Vec::new(),
        };
        source.with_tensor_name()
    };
    let reader = reader_of(&listing);
    if reader.form() == NATIVE_FORM {
        return executions(path, listing);
    }
    let mut found = FoundSources {
        passed_over: listing.passed_over,
        errors: listing.errors,
        ..FoundSources::default()
    };
    for entry in listing.entries {
        match reader.reason_to_pass(&entry) {
            None => found.sources.push(source(entry)),
            Some(reason) => found.pass(entry, reason),
        }
    }
    for entry in listing.tables.into_iter().chain(listing.step_tables) {
        found.pass(entry, PassReason::Statistics);
    }
    found
}

/// The executions of a native dump. Each is a source with the file name and directory that
/// AscendCL's form would use.
fn executions(root: &Path, listing: dump::DumpListing) -> FoundSources {
    let index = read_listing(listing, &mut |_| Vec::new());
    let mut found = FoundSources {
        passed_over: index.passed_over,
        errors: index.errors,
        ..FoundSources::default()
    };
    let groups = index
        .tensors
        .chunk_by(|a, b| Arc::ptr_eq(&a.execution, &b.execution));
    for group in groups {
        let records: Vec<_> = group
            .iter()
            .filter(|tensor| tensor.elements.is_some())
            .cloned()
            .collect();
        if let Some(first) = records.first() {
            found.sources.push(ConvertSource {
                subdir: execution_dir(root, first),
                file_name: execution_name(first),
                real_name: None,
                names_its_tensor: false,
                n_bytes: records.iter().filter_map(|tensor| tensor.n_bytes).sum(),
                path: first.path.to_path_buf(),
                records,
            });
        }
    }
    // A row without elements carries the path of its table.
    let without = index
        .tensors
        .iter()
        .filter(|tensor| tensor.elements.is_none());
    let mut tables: Vec<_> = without.map(|tensor| tensor.path.clone()).collect();
    tables.dedup();
    let reason = PassReason::Statistics;
    let passed = tables.into_iter().map(|path| PassedOver {
        path: path.to_path_buf(),
        reason,
    });
    found.passed_over.extend(passed);
    found
}

/// `{time}/{rank}/{model}/{load}/{step}`, up to the last part that is known.
fn execution_dir(root: &Path, tensor: &IndexedTensor) -> PathBuf {
    let execution = &tensor.execution;
    let run = tensor.path.parent().and_then(Path::parent).unwrap_or(root);
    let run = run.strip_prefix(root).unwrap_or(Path::new(""));
    let mut dir = run.join(execution.rank.unwrap_or(0).to_string());
    if let (Some(model), Some(load)) = (&execution.model, execution.model_id) {
        dir = dir.join(clean_name(model)).join(load.to_string());
    }
    match execution.step {
        Some(step) => dir.join(step.to_string()),
        None => dir,
    }
}

fn execution_name(tensor: &IndexedTensor) -> String {
    let execution = &tensor.execution;
    let name = DumpFileName {
        op_type: clean_name(&execution.op_type),
        op_name: clean_name(&execution.op_name),
        task_id: tensor.task_id.unwrap_or(0),
        stream_id: Some(tensor.stream_id.unwrap_or(0)),
        timestamp: tensor.timestamp.unwrap_or(0).to_string(),
        sub_task: None,
    };
    name.to_string()
}

impl FoundSources {
    fn pass(&mut self, entry: dump::DumpEntry, reason: PassReason) {
        let path = entry.path;
        self.passed_over.push(PassedOver { path, reason });
    }
}

/// Two sources whose results would get the same names, if any.
pub fn collision(sources: &[ConvertSource]) -> Option<(&ConvertSource, &ConvertSource)> {
    let mut by_place: HashMap<(&Path, &str), &ConvertSource> = HashMap::new();
    sources.iter().find_map(|source| {
        let place = (source.subdir.as_path(), source.file_name.as_str());
        let first = by_place.insert(place, source)?;
        Some((first, source))
    })
}

fn without_suffix(name: String) -> String {
    match npy_zst::split_name(&name) {
        Some((stem, _)) => stem.to_owned(),
        None => name,
    }
}

fn single_source(path: &Path) -> Result<ConvertSource, StoreError> {
    let file_name = file_name(path);
    let real_name = dump::real_name_of(path)?;
    let n_bytes = remote::metadata(path).map_or(0, |metadata| metadata.len());
    let source = ConvertSource {
        path: path.to_owned(),
        file_name,
        real_name,
        names_its_tensor: false,
        subdir: PathBuf::new(),
        n_bytes,
        records: Vec::new(),
    };
    Ok(source.with_tensor_name())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
