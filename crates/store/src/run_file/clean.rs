//! Removing what killed runs left unfinished.
//!
//! Only if a record shows that a run was cut off, and only in directories that its tree can have.
//! Afterwards the record notes the removal, so that the search is not repeated.

use std::fs;
use std::path::Path;

use super::find::{end_of, times_below};
use super::{RunEnd, read, record_paths, turn};
use crate::StoreError;
use crate::atomic_file::{Creator, PermissionModes};
use crate::file_format::run_json::{self, CleanupNote, RunRecord};
use crate::temporary::{self, LeftOvers};
use crate::tree::acl::failure_root;
use crate::tree::run::{levels_below, run_dir};

/// Maximum number of directories searched for one dump; those with the highest numbers come first.
const N_DIRS_MAX: usize = 10_000;
/// Device, model, its number and the step are below the time.
const N_ACL_LEVELS: usize = 4;

/// Cleans what killed runs left in the trees of AscendCL in `dump_path`; `now` is the time that
/// their records get.
///
/// # Errors
/// [`StoreError::Io`] if a record cannot be replaced.
pub fn clean_acl(
    dump_path: &Path,
    modes: PermissionModes,
    now: &str,
) -> Result<LeftOvers, StoreError> {
    let mut sum = clean_failures(dump_path);
    for root in times_below(dump_path) {
        // A run that was killed while it wrote its record has none.
        let mut found = temporary::clean(&run_dir(&root));
        if has_cut_off_run(&root) {
            let mut n_dirs = N_DIRS_MAX;
            found = found + walk(&root, N_ACL_LEVELS, &mut n_dirs);
            note(dump_path, &root, modes, now, found)?;
        }
        sum = sum + found;
    }
    Ok(sum)
}

/// Cleans what killed runs left in the trees of MindSpore in `path`, as [`clean_acl`] does.
///
/// # Errors
/// [`StoreError::Io`] if a record cannot be replaced.
pub fn clean_mindspore(
    path: &Path,
    modes: PermissionModes,
    now: &str,
) -> Result<LeftOvers, StoreError> {
    // A run that was killed while it wrote its record has none.
    let mut found = temporary::clean(&run_dir(path));
    if !has_cut_off_run(path) {
        return Ok(found);
    }
    let mut n_dirs = N_DIRS_MAX;
    found = found + clean_failures(path) + temporary::clean(path);
    for name in dirs_in(path) {
        if let Some(n_levels) = levels_below(&name) {
            found = found + walk(&path.join(name), n_levels, &mut n_dirs);
        }
    }
    note(path, path, modes, now, found)?;
    Ok(found)
}

/// The directories of operators that failed: one for each device.
fn clean_failures(dump_path: &Path) -> LeftOvers {
    let mut n_dirs = N_DIRS_MAX;
    walk(&failure_root(dump_path), 1, &mut n_dirs)
}

fn walk(dir: &Path, n_levels: usize, n_dirs: &mut usize) -> LeftOvers {
    if *n_dirs == 0 || dir.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
        return LeftOvers::default();
    }
    *n_dirs -= 1;
    let mut found = temporary::clean(dir);
    if n_levels > 0 {
        for name in dirs_in(dir) {
            found = found + walk(&dir.join(name), n_levels - 1, n_dirs);
        }
    }
    found
}

/// Names of directories, the highest numbers first: killed runs were at work in the last ones.
fn dirs_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by_cached_key(|name| std::cmp::Reverse(name.parse().unwrap_or(u64::MAX)));
    names
}

fn is_cut_off(path: &Path, record: &RunRecord) -> bool {
    record.cleaned.is_none() && end_of(path, record) == RunEnd::CutOff
}

fn has_cut_off_run(root: &Path) -> bool {
    record_paths(&run_dir(root)).any(|path| {
        let record = read(&path);
        record.is_ok_and(|record| is_cut_off(&path, &record))
    })
}

/// Says in the records of the runs that were cut off that this was seen to.
fn note(
    dump_path: &Path,
    root: &Path,
    modes: PermissionModes,
    now: &str,
    found: LeftOvers,
) -> Result<(), StoreError> {
    let creator = Creator::in_dump(dump_path, modes);
    let dir = run_dir(root);
    let _turn = turn(&dir);
    for path in record_paths(&dir) {
        let Ok(mut record) = read(&path) else {
            continue;
        };
        if is_cut_off(&path, &record) {
            record.cleaned = Some(CleanupNote {
                at: now.to_owned(),
                left_overs: found,
            });
            let text = run_json::encode(&record);
            creator.replace_file(&path, &[text.as_bytes()])?;
        }
    }
    Ok(())
}
