//! Any bytes are an array or refused; what is accepted comes back after writing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::npy;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tensor) = npy::from_bytes(bytes.to_vec()) {
        let mut written = npy::encode_header(tensor.dtype(), tensor.shape()).unwrap();
        written.extend_from_slice(tensor.bytes());
        let again = npy::from_bytes(written).unwrap();
        assert_eq!(again.bytes(), tensor.bytes());
        assert_eq!(again.shape(), tensor.shape());
    }
});
