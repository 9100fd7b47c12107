//! Comparisons of dumps that were made to keep them busy end, within a bound of memory.
//!
//! The work is done in a child process: a comparison that went on for ever, or took all memory,
//! would take the test with it. The deadline is far from what the work takes; it is there to end a
//! hang and measures nothing.

mod large;
mod trees;

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use trees::{Choices, compare_pair};

/// Instructs the child.
const WORK: &str = "OPSCOPE_TEST_HOSTILE_WORK";
/// Address space of the child, in KiB.
const MEMORY_KIB_MAX: u64 = 4 << 20;
const DEADLINE: Duration = Duration::from_secs(600);

/// Runs a test of this binary again, in a process with bounds; true in that process, which has to
/// do the work.
fn is_child(test: &str) -> bool {
    if env::var(WORK).is_ok_and(|name| name == test) {
        return true;
    }
    let limited = format!("ulimit -v {MEMORY_KIB_MAX}; exec \"$0\" \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .arg(env::current_exe().unwrap())
        .args(["--exact", &format!("hostile::{test}"), "--test-threads=1"])
        .env(WORK, test)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (done, is_done) = mpsc::channel::<()>();
    let pid = child.id().to_string();
    let watchdog = thread::spawn(move || {
        if is_done.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
        }
    });
    let status = child.wait().unwrap();
    drop(done);
    watchdog.join().unwrap();
    assert!(status.success(), "{test}: {status}");
    false
}

/// Numbers that look like chance and are the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[test]
fn whole_comparisons_end() {
    if !is_child("whole_comparisons_end") {
        return;
    }
    const N_PAIRS: u64 = 1500;
    for seed in 0..N_PAIRS {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..128).flat_map(|_| random.next().to_le_bytes()).collect();
        let dir = tempfile::tempdir().unwrap();
        compare_pair(&mut Choices(&bytes), dir.path());
    }
}
