//! What to convert.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::{self, mindspore};
use opscope_store::file_format::npy_zst;
use opscope_store::tree::mindspore::TensorFileName;

/// One file to convert, and where its results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
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

impl Source {
    /// The name that says what the file holds.
    pub fn telling_name(&self) -> &str {
        self.real_name.as_deref().unwrap_or(&self.file_name)
    }

    fn with_tensor_name(mut self) -> Source {
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

/// Lists what to convert: a file as it is, a directory with everything below it, keeping its
/// structure. In directories, `.npy` and `.npy.zst` files are passed over, since they are results
/// already, unless MindSpore dumped them; what lies beside the tensors of such a dump is passed over too.
/// Directories that cannot be listed are returned beside the sources.
pub fn sources(path: &Path) -> (Vec<Source>, Vec<StoreError>) {
    if !path.is_dir() {
        return (vec![single_source(path)], Vec::new());
    }
    let listing = dump::list(path);
    let source = |entry: dump::Entry| {
        let parent = entry.path.parent().unwrap_or(path);
        let source = Source {
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
    let is_mindspore = listing.entries.iter().any(mindspore::is_mindspore);
    let is_result = |entry: &dump::Entry| {
        let is_array = npy_zst::split_name(&file_name(&entry.path)).is_some();
        match is_mindspore {
            true => !mindspore::holds_tensors(entry),
            false => is_array,
        }
    };
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

fn without_suffix(name: String) -> String {
    match npy_zst::split_name(&name) {
        Some((stem, _)) => stem.to_owned(),
        None => name,
    }
}

fn single_source(path: &Path) -> Source {
    let file_name = file_name(path);
    let parent = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let real_name = dump::read_mapping(parent).remove(&file_name);
    let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let source = Source {
        path: path.to_owned(),
        file_name,
        real_name,
        names_its_tensor: false,
        subdir: PathBuf::new(),
        n_bytes,
    };
    source.with_tensor_name()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
