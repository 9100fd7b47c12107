//! Any bytes are a table of tensors or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::slot_table::SlotTable;

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = SlotTable::from_bytes(bytes.to_vec().into()) else {
        return;
    };
    for group in 0..table.n_groups() {
        let _ = table.read_group(group);
    }
});
