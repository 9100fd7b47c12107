//! Any bytes are a dump file or refused; an accepted file can be written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::dump_data::{DumpFile, DumpHeader};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = DumpFile::from_bytes(bytes.to_vec()) {
        let n_payload: usize = file
            .pieces()
            .iter()
            .map(|piece| file.bytes_of(piece).len())
            .sum();
        assert!(n_payload <= bytes.len());
        let mut header = file.header().clone();
        for entry in header.inputs.iter_mut().chain(&mut header.outputs) {
            // Bytes inside the header are counted but not stored.
            entry.n_inline_bytes = 0;
        }
        assert_eq!(
            DumpHeader::decode(&header.encode(), 8).as_ref(),
            Ok(&header)
        );
    }
});
