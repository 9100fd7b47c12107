//! Any bytes are a file of tensors or refused, and each tensor is inside the file or is gathered
//! from it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::torch_save;
use opscope_store::file_parts::FileParts;

fuzz_target!(|bytes: &[u8]| {
    let parts = FileParts::from(bytes.to_vec());
    let Ok(file) = torch_save::decode(&parts) else {
        return;
    };
    assert!(torch_save::is_file(&parts));
    let tensors = file.tensors;
    if torch_save::n_copied_bytes(&tensors, bytes.len()).is_err() {
        return;
    }
    for tensor in tensors {
        if let Some(place) = tensor.place() {
            assert_eq!(bytes[place].len(), tensor.n_bytes());
        }
        assert_eq!(
            tensor.read(&parts).map(|read| read.len()),
            Ok(tensor.n_bytes())
        );
    }
});
