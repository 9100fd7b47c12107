//! Any bytes are a compressed array or refused; what is accepted comes back after compressing again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::{npy, npy_zst, zstd};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = npy_zst::decode(bytes) {
        npy::from_bytes(content.clone()).unwrap();
        let mut written = Vec::new();
        zstd::write(&mut written, &[&content], zstd::Level::default()).unwrap();
        assert_eq!(npy_zst::decode(&written).unwrap(), content);
    }
});
