//! Any bytes are a database of SQLite or refused, also with a journal. A value has the right size,
//! and reading it alone or with the others yields the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::ort_trace::OrtTrace;
use opscope_tensor::DType;

/// Maximum number of values that are read alone.
const N_ALONE_MAX: usize = 16;

fuzz_target!(|input: (usize, &[u8])| {
    let (n_journal, bytes) = input;
    // The last bytes form the journal, if there are enough.
    let (file, journal) = bytes.split_at(bytes.len() - n_journal.min(bytes.len()));
    let journal = (!journal.is_empty()).then(|| FileBytes::from(journal.to_vec()));
    let Ok(trace) = OrtTrace::from_bytes(file.to_vec().into(), journal) else {
        return;
    };
    let mut first = Vec::new();
    let visited = trace.visit(|value| {
        assert!(!value.uses.is_empty());
        if value.dtype != DType::String
            && let Ok(expected) = value.shape.n_bytes(value.dtype)
        {
            assert_eq!(value.elements.len(), expected);
        }
        if first.len() < N_ALONE_MAX {
            first.push((value.position, value.elements.to_vec()));
        }
        Ok(())
    });
    for (position, elements) in first.into_iter().filter(|_| visited.is_ok()) {
        // Keys of a damaged tree may point past a row that its leaves have.
        let _ = trace.visit_one(position, |value| {
            assert_eq!(value.elements, elements);
            Ok(())
        });
    }
});
