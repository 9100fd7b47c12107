//! Any bytes are a list of overwritten values or refused, and no more entries are listed than were counted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::overwrites_json;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(list) = overwrites_json::parse(bytes) {
        assert!(list.overwrites.len() as u64 <= list.n_overwrites);
    }
});
