//! Helpers that tests of whole trees share.

pub(crate) mod sha256;
pub(crate) mod tree;

use std::fs;
use std::path::Path;

/// Copies a directory with everything below it.
pub(crate) fn copy_dir(source: &Path, target: &Path) {
    copy_dir_renamed(source, target, &str::to_owned);
}

/// [`copy_dir`] with other names for files.
pub(crate) fn copy_dir_renamed(source: &Path, target: &Path, rename: &dyn Fn(&str) -> String) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_dir_renamed(&entry.path(), &target.join(name), rename);
        } else {
            fs::copy(entry.path(), target.join(rename(&name))).unwrap();
        }
    }
}
