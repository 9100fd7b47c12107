//! Any bytes are rows of a step up to a truncation or damage, and rows round-trip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::slot_table::journal;

fuzz_target!(|bytes: &[u8]| {
    let mut content = journal::decode(bytes);
    assert!(content.n_unfinished <= bytes.len());
    let mut again = journal::MAGIC.to_vec();
    if journal::encode(&mut content.rows, &mut again).is_ok() {
        let read = journal::decode(&again);
        assert!(read.error.is_none() && read.rows.len() == content.rows.len());
    }
});
