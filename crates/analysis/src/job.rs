//! Runs many independent jobs on several threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::elements::open_files::keep_open;

/// Default number of threads: one per processor.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `work` for each item on `n_threads` threads. Results keep the order of the items.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || keep_open(|| take_items(&next, items, &work));
    let mut results = thread::scope(|scope| {
        let n_helpers = n_threads.min(items.len()).saturating_sub(1);
        let helpers: Vec<_> = (0..n_helpers).map(|_| scope.spawn(worker)).collect();
        let mut results = worker();
        for helper in helpers {
            match helper.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Processes unclaimed items until none remain.
fn take_items<T, R>(next: &AtomicUsize, items: &[T], work: &impl Fn(&T) -> R) -> Vec<(usize, R)> {
    let mut results = Vec::new();
    loop {
        // Items are claimed one at a time: file sizes vary too much for equal shares.
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(i) else {
            return results;
        };
        results.push((i, work(item)));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn order_is_kept() {
        for (n_items, n_threads) in [(0, 4), (1, 0), (1000, 7)] {
            let items: Vec<usize> = (0..n_items).collect();
            let doubled = super::map(&items, n_threads, |i| i * 2);
            assert_eq!(doubled, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        }
    }
}
