//! Finding the library of ONNX Runtime.

use std::fs;
use std::path::{Path, PathBuf};

use super::library::{FILE_NAME, newest};
use super::python::{library_dirs_in, places};
use super::surroundings::SearchSurroundings;

/// A library, and the reason why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LibraryMatch {
    pub(super) path: PathBuf,
    /// Such as `found next to the Python package of VIRTUAL_ENV`.
    pub(super) how: String,
}

/// The library at a place that `named_by` names: a file, or a directory that is searched.
///
/// # Errors
/// Text that says what is there instead.
pub(super) fn named(path: &Path, named_by: &str) -> Result<LibraryMatch, String> {
    let wrong = |what: String| format!("{named_by} names `{}`: {what}", path.display());
    let metadata = fs::metadata(path).map_err(|error| {
        wrong(format!(
            "{error}; expected ONNX Runtime's `{FILE_NAME}`, or a directory that has it"
        ))
    })?;
    let found = if metadata.is_dir() {
        newest_in(path)
    } else {
        Some(path.to_owned())
    };
    let Some(found) = found else {
        return Err(wrong(format!(
            "there is no `{FILE_NAME}` in it, in its `lib` or `capi`, or in the Python package `onnxruntime` below it"
        )));
    };
    Ok(LibraryMatch {
        path: found,
        how: format!("named by {named_by}"),
    })
}

/// The newest library in a directory; if it has none itself, in one of those in which distributions
/// have it.
fn newest_in(dir: &Path) -> Option<PathBuf> {
    let own = [dir.to_owned(), dir.join("lib")];
    let all = own.into_iter().chain(library_dirs_in(dir));
    // Each directory is searched separately: an older library next to the named place wins over a
    // newer one far below it.
    all.into_iter().find_map(|dir| newest(&[dir]))
}

/// The library of a Python package in the environment.
///
/// # Errors
/// Text that lists where it was looked for.
pub(super) fn find(around: &SearchSurroundings) -> Result<LibraryMatch, String> {
    let mut looked_in = Vec::new();
    for place in places(around) {
        if let Some(path) = newest(&place.library_dirs()) {
            let how = if place.more.iter().any(|dir| path.parent() == Some(dir)) {
                format!("found in {}", place.whose)
            } else {
                format!("found next to the Python package of {}", place.whose)
            };
            return Ok(LibraryMatch { path, how });
        }
        // Packages before 1.19 have the runtime inside their Python module, where no other program
        // can load it.
        let remark = place.old_package().map(|old| {
            let version = old.version.map(|version| format!(" {version}"));
            format!(
                ", whose onnxruntime{} in `{}` has no separate library (1.19 and newer do)",
                version.unwrap_or_default(),
                old.dir.display()
            )
        });
        looked_in.push(format!(
            "{} `{}`{}",
            place.whose,
            place.root.display(),
            remark.unwrap_or_default()
        ));
    }
    Err(format!(
        "no library of ONNX Runtime was found (looked for the Python package of {})",
        looked_in.join(", ")
    ))
}

#[cfg(test)]
mod tests;
