//! Any bytes are a log of DebugMode, or refused, and every tensor of a call has hashes of different kinds.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::debug_mode;
use opscope_store::tree::debug_mode::base_name;

fuzz_target!(|bytes: &[u8]| {
    let _ = debug_mode::is_log(bytes);
    let Ok(log) = debug_mode::parse(bytes) else {
        return;
    };
    for call in &log.calls {
        let _ = base_name(&call.name);
        for tensor in call.inputs.iter().chain(&call.outputs) {
            let titles: HashSet<_> = tensor.hashes.iter().map(|(title, _)| title).collect();
            assert_eq!(titles.len(), tensor.hashes.len());
        }
    }
});
