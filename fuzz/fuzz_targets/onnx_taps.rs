//! ONNX models: decoding, checking, and putting taps into them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_engine::onnx::with_taps;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tapped) = with_taps(bytes) {
        // A decoded model is encoded again; a model without a graph is refused.
        assert!(!tapped.is_empty());
    }
});
