//! Any bytes are an archive of arrays or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::npz;

fuzz_target!(|bytes: &[u8]| {
    let _ = npz::from_bytes(bytes);
});
