//! Any bytes are a nano dump's header or refused; an accepted header round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::nano::NanoHeader;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, n_header)) = NanoHeader::decode(bytes) {
        let _ = header.check_size(n_header, bytes.len());
        let (again, _) = NanoHeader::decode(&header.encode()).unwrap();
        assert_eq!(again, header);
    }
});
