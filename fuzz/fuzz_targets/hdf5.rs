//! Any bytes are a file of datasets or refused, and each dataset is read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::hdf5;

fuzz_target!(|bytes: &[u8]| {
    for array in hdf5::decode(bytes.to_vec().into()).unwrap_or_default() {
        let _ = array.read();
    }
});
