//! Any bytes are a record or refused; an accepted record round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::run_json;
use opscope_store::temporary::TemporaryName;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(name) = std::str::from_utf8(bytes)
        && let Some(parsed) = TemporaryName::parse(name)
    {
        assert_eq!(parsed.to_string(), name);
    }
    let Ok(record) = run_json::parse(bytes) else {
        return;
    };
    let text = run_json::encode(&record);
    if text.len() <= run_json::FILE_BYTES_MAX {
        let again = run_json::parse(text.as_bytes()).expect("what is written is a record");
        assert_eq!(run_json::encode(&again), text);
    }
});
