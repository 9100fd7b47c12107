//! Any bytes are a file of arrays by runner and iteration or refused, and each array is read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::polygraphy_json;

fuzz_target!(|bytes: &[u8]| {
    for array in polygraphy_json::decode(bytes).unwrap_or_default() {
        let described = array.describe();
        let mut elements = Vec::new();
        if let Ok(read) = array.read(&mut elements) {
            assert_eq!(read.range, 0..elements.len());
            assert_eq!(described.map(|header| header.range), Ok(read.range));
        }
    }
});
