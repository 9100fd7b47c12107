//! Any bytes are an overflow record or refused; an accepted record round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::op_debug::OverflowRecord;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = OverflowRecord::decode(bytes) {
        assert_eq!(OverflowRecord::decode(&record.encode()), Ok(record.clone()));
        assert!(record.to_json_text().ends_with('}'));
    }
});
