//! Any bytes are a tensor of the right size or refused, and every accepted tensor has the tensor's
//! fields.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::onnx_tensor::{self, OnnxElements};

fuzz_target!(|bytes: &[u8]| {
    let Ok(tensor) = onnx_tensor::decode(bytes) else {
        return;
    };
    assert!(onnx_tensor::is_tensor(bytes));
    let n_bytes = match tensor.elements {
        OnnxElements::InFile(range) => bytes[range].len(),
        OnnxElements::Decoded(elements) => elements.len(),
    };
    if let Ok(expected) = tensor.shape.n_bytes(tensor.dtype) {
        assert_eq!(n_bytes, expected);
    }
});
