//! Limits the rate at which elements are read, to spare other users of the same disks.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum lag that is caught up.
const MADE_UP_MAX: Duration = Duration::from_millis(100);

/// The rate limit of this process.
static PACE: Mutex<Pace> = Mutex::new(Pace {
    bytes_per_second: None,
    next: None,
});

struct Pace {
    bytes_per_second: Option<f64>,
    /// When the next bytes may be read.
    next: Option<Instant>,
}

/// Limits this process to `bytes_per_second` on average. `None`, or a value that is not above 0,
/// means no limit.
pub fn limit_reading(bytes_per_second: Option<f64>) {
    let mut pace = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    pace.bytes_per_second = bytes_per_second.filter(|limit| *limit > 0.0);
}

/// Waits until `n_bytes` more may be read.
pub(super) fn wait(n_bytes: usize) {
    let until = {
        let mut pace = PACE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = pace.bytes_per_second else {
            return;
        };
        let now = Instant::now();
        // Sleeping threads wake late; that lag is caught up, but longer pauses are not.
        let earliest = now.checked_sub(MADE_UP_MAX).unwrap_or(now);
        let start = pace.next.map_or(now, |next| next.max(earliest));
        let took = Duration::try_from_secs_f64(n_bytes as f64 / limit);
        pace.next = start.checked_add(took.unwrap_or(Duration::MAX));
        start
    };
    // Sleeps without the lock, so that other threads can queue behind this one.
    thread::sleep(until.saturating_duration_since(Instant::now()));
}
