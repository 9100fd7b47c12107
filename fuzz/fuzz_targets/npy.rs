//! Any bytes are an array or refused; an accepted array round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::npy::{self, ItemForm, NpyHeader};
use opscope_tensor::DType;

fuzz_target!(|bytes: &[u8]| {
    for wanted in [DType::BF16, DType::I4, DType::F8E4M3FNUZ] {
        if let Ok(tensor) = npy::from_bytes_as(bytes.to_vec(), Some(wanted)) {
            tensor.host_view().unwrap().check().unwrap();
        }
    }
    let Ok(tensor) = npy::from_bytes(bytes.to_vec()) else {
        return;
    };
    let written = match tensor.dtype() {
        DType::String => {
            let Ok((header, data)) = npy::text_array(tensor.host_view().unwrap()) else {
                return;
            };
            [header, data].concat()
        }
        // Names that are never written.
        DType::BF16 | DType::F8E5M2 => return,
        dtype => {
            let header = npy::encode_header(dtype, tensor.shape()).unwrap();
            [&header, tensor.host_bytes().unwrap()].concat()
        }
    };
    let (header, _) = NpyHeader::decode(&written).unwrap();
    assert!(!matches!(header.items, ItemForm::Void(_)));
    let again = npy::from_bytes(written).unwrap();
    assert_eq!(again.shape(), tensor.shape());
    assert_eq!(again.host_bytes().unwrap(), tensor.host_bytes().unwrap());
});
