//! Any bytes are a file of named tensors or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::safetensors;

fuzz_target!(|bytes: &[u8]| {
    let found = safetensors::decode(bytes);
    for tensor in found.into_iter().flatten() {
        assert!(bytes.get(tensor.range).is_some());
    }
});
