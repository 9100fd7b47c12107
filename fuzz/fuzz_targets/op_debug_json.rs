//! Any text is an overflow record or refused; an accepted record round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::op_debug;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = op_debug::from_json(bytes) {
        let text = record.to_json_text();
        assert_eq!(op_debug::from_json(text.as_bytes()), Ok(record));
    }
});
