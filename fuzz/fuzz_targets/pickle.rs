//! Any bytes are a pickle of plain values or refused, and every value refers to values inside of
//! it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::torch_save::pickle::{self, PickleValue};

fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = pickle::decode(bytes, |_| true) else {
        return;
    };
    let mut at = found.root();
    // Values may contain themselves, so the descent is limited.
    for _ in 0..1000 {
        let next = match found.value(at) {
            PickleValue::Tuple(items) | PickleValue::List(items) | PickleValue::Set(items) => {
                items.last().copied()
            }
            PickleValue::Dict(pairs) => pairs.last().map(|(_, value)| *value),
            PickleValue::Call(call) => Some(call.args),
            PickleValue::Persistent(id) => Some(*id),
            _ => None,
        };
        let Some(next) = next else {
            return;
        };
        at = next;
    }
});
