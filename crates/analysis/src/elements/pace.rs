//! A limit to how fast elements are read, for the sake of others who use the same disks.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Most time that is made up for.
const MADE_UP_MAX: Duration = Duration::from_millis(100);

/// The pace of this process.
static PACE: Mutex<Pace> = Mutex::new(Pace {
    bytes_per_second: None,
    next: None,
});

struct Pace {
    bytes_per_second: Option<f64>,
    /// When the next bytes may be read.
    next: Option<Instant>,
}

/// Lets this process read no more than so many bytes of elements a second on average; none for as
/// many as it can. What is not above 0 is no limit.
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
        // Sleepers wake late, which is made up for; what a longer pause left is lost.
        let earliest = now.checked_sub(MADE_UP_MAX).unwrap_or(now);
        let start = pace.next.map_or(now, |next| next.max(earliest));
        let took = Duration::try_from_secs_f64(n_bytes as f64 / limit);
        pace.next = start.checked_add(took.unwrap_or(Duration::MAX));
        start
    };
    // Without the lock, so that other threads take their turns behind this one.
    thread::sleep(until.saturating_duration_since(Instant::now()));
}
