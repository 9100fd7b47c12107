//! Two small dumps made from any bytes are compared in every way, and the comparison terminates.
//!
//! Run it with `-timeout=10 -rss_limit_mb=1024`: exceeding either limit is a finding.

#![no_main]

#[path = "../../crates/analysis/tests/it/hostile/trees.rs"]
mod trees;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let dir = std::env::temp_dir().join(format!("opscope-fuzz-compare-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    trees::compare_pair(&mut trees::Choices(bytes), &dir);
    let _ = std::fs::remove_dir_all(&dir);
});
