//! Any bytes are a compressed array or refused; an accepted array round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::npy::{self, ItemForm, NpyHeader};
use opscope_store::file_format::{npy_zst, zstd};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = npy_zst::decode(bytes) {
        // Text may have invalid characters, and void items may be anything.
        let header = NpyHeader::decode(&content);
        if header.is_ok_and(|(header, _)| header.items == ItemForm::Numbers) {
            npy::from_bytes(content.clone()).unwrap();
        }
        let mut written = Vec::new();
        zstd::write(&mut written, &[&content], zstd::CompressionLevel::default()).unwrap();
        assert_eq!(npy_zst::decode(&written).unwrap(), content);
    }
});
