//! Our own files in a dump, in a directory that readers skip.

use std::path::{Path, PathBuf};

use super::acl::{clean_name, hash_file_name};

/// The directory's name, below the directory of the dump.
pub const OWN_DIR: &str = ".opscope";

/// Descriptions of graphs.
pub fn graphs_dir(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("graphs")
}

/// The description of a graph. A name that the file system would refuse becomes digits.
pub fn graph_file(root: &Path, name: &str) -> PathBuf {
    let name = format!("{}.json", clean_name(name));
    let name = match hash_file_name(&name) {
        Some(digits) => format!("{digits}.json"),
        None => name,
    };
    graphs_dir(root).join(name)
}

/// Tables of the dump.
pub fn index_dir(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("index")
}

/// The dump whose tables belong into `index`, if that is in a dump.
pub fn dump_of_index(index: &Path) -> Option<&Path> {
    let dump = index.parent()?.parent()?;
    (index == index_dir(dump)).then_some(dump)
}

/// The survey of the dump.
pub fn survey_file(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("survey")
}

/// Which graph was executed when, for dumps of models that came from no file.
pub fn executions_file(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("executions.json")
}

/// Where files are found by what they hold.
pub fn content_dir(root: &Path) -> PathBuf {
    root.join(OWN_DIR).join("content")
}
