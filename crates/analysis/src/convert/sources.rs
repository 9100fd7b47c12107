//! The files to convert.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::{self, PassReason, PassedOver};
use opscope_store::file_format::npy_zst;
use opscope_store::reader::reader_of;
use opscope_store::tree::mindspore::TensorFileName;

/// One file to convert, and where its results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertSource {
    /// The file.
    pub path: PathBuf,
    /// The file's name, which its results' names begin with.
    pub file_name: String,
    /// The name that `mapping.csv` gives for it, if the real one was too long.
    pub real_name: Option<String>,
    /// Whether that name says which tensor of the operator the file holds, as MindSpore's do. What the
    /// results' names begin with is then without the suffix.
    pub names_its_tensor: bool,
    /// Directory below the output directory.
    pub subdir: PathBuf,
    /// Size in bytes.
    pub n_bytes: u64,
}

impl ConvertSource {
    /// The name that says what the file holds.
    pub fn telling_name(&self) -> &str {
        self.real_name.as_deref().unwrap_or(&self.file_name)
    }

    fn with_tensor_name(mut self) -> ConvertSource {
        // Without a dtype the name may be that of a result of ours.
        let name = TensorFileName::parse(self.telling_name());
        if name.is_some_and(|name| name.dtype.is_some()) {
            self.file_name = without_suffix(self.file_name);
            self.real_name = self.real_name.map(without_suffix);
            self.names_its_tensor = true;
        }
        self
    }
}

/// The files at a path, by what becomes of them.
#[derive(Debug, Default)]
pub struct FoundSources {
    /// Files to convert.
    pub sources: Vec<ConvertSource>,
    /// Files that hold nothing to convert.
    pub passed_over: Vec<PassedOver>,
    /// Files and directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// Lists what to convert: a file as it is, a directory with everything below it, keeping its
/// structure. Files that the reader of the dump takes for results of converting are passed over; so are statistics,
/// graphs and lists.
pub fn sources(path: &Path) -> FoundSources {
    if !path.is_dir() {
        let mut found = FoundSources::default();
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
        };
        source.with_tensor_name()
    };
    let reader = reader_of(&listing);
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

impl FoundSources {
    fn pass(&mut self, entry: dump::DumpEntry, reason: PassReason) {
        let path = entry.path;
        self.passed_over.push(PassedOver { path, reason });
    }
}

/// Two sources whose results would have the same names, if there are any.
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
    let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let source = ConvertSource {
        path: path.to_owned(),
        file_name,
        real_name,
        names_its_tensor: false,
        subdir: PathBuf::new(),
        n_bytes,
    };
    Ok(source.with_tensor_name())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
