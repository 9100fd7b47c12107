//! Any bytes are records of a part or refused, and yield at most as many facts as bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_analysis::compare::parts::part_file::count_facts;

fuzz_target!(|bytes: &[u8]| {
    if let Some(n) = count_facts(bytes) {
        assert!(n <= bytes.len());
    }
});
