//! Many files, several at a time.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::failure::Failure;
use super::super::log;
use super::{Context, convert_file};

/// A file larger than this share of the memory is converted alone, after the others.
const MEMORY_SHARE: u64 = 4;
/// Assumed where the system does not tell.
const MEMORY_BYTES: u64 = 4 << 30;
const PROGRESS_PLACES: usize = 50;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Converts all files and returns the failure that the reference would report: that of the last
/// large file, else that of the first other file. Exceptions count only if nothing else failed, so
/// that the status does not depend on the order in which the file system lists the files.
pub(super) fn run(context: &Context, paths: &[PathBuf], n_entries: usize) -> Result<(), Failure> {
    let n_workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(paths.len())
        .max(1);
    let limit = memory_bytes() / n_workers as u64 / MEMORY_SHARE;
    let is_large = |path: &Path| path.metadata().is_ok_and(|m| m.len() > limit);
    let (large, small): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().partition(|path| is_large(path));
    let batch = Batch {
        context,
        progress: Progress::new(n_entries),
        failures: Mutex::default(),
    };
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                while let Some(path) = small.get(next.fetch_add(1, Ordering::Relaxed)) {
                    batch.convert(path);
                }
            });
        }
    });
    let mut failures = batch.take_failures(&small);
    for path in &large {
        batch.convert(path);
    }
    let last_large = batch.take_failures(&large).pop();
    if let Some(failure) = last_large {
        failures.insert(0, failure);
    }
    let list = context.output.failed_list();
    if failures
        .iter()
        .any(|failure| !matches!(failure, Failure::Unexpected(_)))
    {
        log::info(&format!(
            "The list of files that failed to be converted has been written to {}.",
            log::quoted(&list)
        ));
    }
    let coded = failures
        .iter()
        .position(|failure| !matches!(failure, Failure::Unexpected(_)));
    match coded.or((!failures.is_empty()).then_some(0)) {
        Some(i) => Err(failures.swap_remove(i)),
        None => Ok(()),
    }
}

struct Batch<'a> {
    context: &'a Context,
    progress: Progress,
    failures: Mutex<Vec<(PathBuf, Failure)>>,
}

impl Batch<'_> {
    fn convert(&self, path: &Path) {
        let result = convert_file(self.context, path);
        if let Err(failed) = result {
            let failure = failed.failure.logged();
            // The reference loses the names of files that end with an exception.
            if !matches!(failure, Failure::Unexpected(_)) {
                self.context.output.note_failed(path, &failed.tensors);
            }
            if let Ok(mut failures) = self.failures.lock() {
                failures.push((path.to_owned(), failure));
            }
        }
        self.progress.advance();
    }

    /// The failures since the last call, in the order of `paths`.
    fn take_failures(&self, paths: &[&PathBuf]) -> Vec<Failure> {
        let mut failures = self
            .failures
            .lock()
            .map(|mut failures| std::mem::take(&mut *failures))
            .unwrap_or_default();
        failures.sort_by_key(|(path, _)| paths.iter().position(|other| *other == path));
        failures.into_iter().map(|(_, failure)| failure).collect()
    }
}

/// The line that shows how far the command is, at most once a second.
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

/// Memory that can be had without swapping.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kibibytes.map_or(MEMORY_BYTES, |n| n.saturating_mul(1024))
}
