//! Converts many files, several at a time.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use opscope_analysis::job;

use super::file_converter::FileConverter;
use crate::failure::ToolFailure;
use crate::log;

/// A file larger than this share of the memory is converted alone, after the others.
const MEMORY_SHARE: u64 = 4;
/// Assumed if the system does not report it.
const MEMORY_BYTES: u64 = 4 << 30;
const PROGRESS_PLACES: usize = 50;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Converts all files and returns the failure that the reference would report: that of the last
/// large file, else that of the first other file. Exceptions count only if nothing else failed, so
/// that the status does not depend on the order of the directory listing.
pub(super) fn run(
    converter: &FileConverter,
    paths: &[PathBuf],
    n_entries: usize,
) -> Result<(), ToolFailure> {
    let n_workers = job::default_jobs();
    // Every worker may hold a file and its converted form at the same time.
    let limit = memory_bytes() / n_workers as u64 / MEMORY_SHARE;
    let (large, small): (Vec<&PathBuf>, Vec<&PathBuf>) = paths
        .iter()
        .partition(|path| path.metadata().is_ok_and(|m| m.len() > limit));
    let progress = Progress::new(n_entries);
    let convert = |path: &Path| {
        let failure = convert_one_of_many(converter, path);
        progress.advance();
        failure
    };
    let results = job::map(&small, n_workers, |path| convert(path));
    let mut failures: Vec<ToolFailure> = results.into_iter().flatten().collect();
    // Large files come after the others, one by one, so that no two share the memory.
    let mut large_failures: Vec<ToolFailure> =
        large.iter().filter_map(|path| convert(path)).collect();
    if let Some(failure) = large_failures.pop() {
        failures.insert(0, failure);
    }
    let coded = failures
        .iter()
        .position(|failure| !matches!(failure, ToolFailure::Unexpected(_)));
    // Exceptions are not listed, so if there was nothing else, this run wrote no list.
    if coded.is_some() {
        log::info(&format!(
            "The list of files that failed to be converted has been written to {}.",
            log::quoted(&converter.output.failed_list())
        ));
    }
    match coded.or((!failures.is_empty()).then_some(0)) {
        Some(i) => Err(failures.swap_remove(i)),
        None => Ok(()),
    }
}

/// Converts a file and records its name on failure.
fn convert_one_of_many(converter: &FileConverter, path: &Path) -> Option<ToolFailure> {
    let failed = converter.convert(path).err()?;
    let failure = failed.failure.logged();
    // The reference does not list files that end with an exception.
    if !matches!(failure, ToolFailure::Unexpected(_)) {
        converter.output.note_failed(path, &failed.tensors);
    }
    Some(failure)
}

/// The progress line, printed at most once a second.
struct Progress {
    n_entries: usize,
    state: Mutex<(usize, Option<Instant>)>,
}

impl Progress {
    fn new(n_entries: usize) -> Progress {
        let state = Mutex::new((0, None));
        Progress { n_entries, state }
    }

    fn advance(&self) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        state.0 += 1;
        let is_last = state.0 >= self.n_entries;
        if is_last
            || state
                .1
                .is_none_or(|shown| shown.elapsed() >= PROGRESS_INTERVAL)
        {
            state.1 = Some(Instant::now());
            let percent = state.0 * 100 / self.n_entries.max(1);
            let bar = ">".repeat(percent * PROGRESS_PLACES / 100);
            log::info(&format!("[ {bar:<PROGRESS_PLACES$} {percent}%]"));
        }
    }
}

/// Memory that is available without swapping.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kibibytes.map_or(MEMORY_BYTES, |n| n.saturating_mul(1024))
}
