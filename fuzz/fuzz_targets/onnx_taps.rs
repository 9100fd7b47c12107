//! ONNX models: decoding, checking, and putting taps into them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_engine::onnx::with_taps;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tapped) = with_taps(bytes) {
        // What was written is a model again, and can be read by the same rules.
        assert!(with_taps(&tapped).is_ok());
    }
});
