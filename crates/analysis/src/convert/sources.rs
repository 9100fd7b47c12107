//! What to convert.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump;

/// One file to convert, and where its results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The file's name, which its results' names begin with.
    pub file_name: String,
    /// The name that `mapping.csv` gives for it, if the real one was too long.
    pub real_name: Option<String>,
    /// Directory below the output directory.
    pub subdir: PathBuf,
    /// Size in bytes.
    pub n_bytes: u64,
}

impl Source {
    /// The name that says what the file holds.
    pub fn telling_name(&self) -> &str {
        self.real_name.as_deref().unwrap_or(&self.file_name)
    }
}

/// Lists what to convert: a file as it is, a directory with everything below it, keeping its
/// structure. In directories, `.npy` files are passed over: they are results already. Directories
/// that cannot be listed are returned beside the sources.
pub fn sources(path: &Path) -> (Vec<Source>, Vec<StoreError>) {
    if !path.is_dir() {
        return (vec![single_source(path)], Vec::new());
    }
    let listing = dump::list(path);
    let source = |entry: dump::Entry| {
        let parent = entry.path.parent().unwrap_or(path);
        Source {
            subdir: parent
                .strip_prefix(path)
                .unwrap_or(Path::new(""))
                .to_owned(),
            file_name: file_name(&entry.path),
            real_name: entry.is_mapped().then(|| entry.real_name.clone()),
            n_bytes: entry.n_bytes,
            path: entry.path,
        }
    };
    let is_result = |entry: &dump::Entry| entry.path.extension() == Some(OsStr::new("npy"));
    let entries = listing.entries.into_iter();
    (
        entries
            .filter(|entry| !is_result(entry))
            .map(source)
            .collect(),
        listing.errors,
    )
}

/// Two sources whose results would have the same names, if there are any.
pub fn collision(sources: &[Source]) -> Option<(&Source, &Source)> {
    let mut by_place: HashMap<(&Path, &str), &Source> = HashMap::new();
    sources.iter().find_map(|source| {
        let place = (source.subdir.as_path(), source.file_name.as_str());
        let first = by_place.insert(place, source)?;
        Some((first, source))
    })
}

fn single_source(path: &Path) -> Source {
    let file_name = file_name(path);
    let parent = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let real_name = dump::read_mapping(parent).remove(&file_name);
    let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    Source {
        path: path.to_owned(),
        file_name,
        real_name,
        subdir: PathBuf::new(),
        n_bytes,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
