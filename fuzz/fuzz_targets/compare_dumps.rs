//! Two small dumps that any bytes make are compared in every way, and the comparison ends.
//!
//! Run it with `-timeout=10 -rss_limit_mb=1024`: an input that takes longer, or more, is a finding.

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
