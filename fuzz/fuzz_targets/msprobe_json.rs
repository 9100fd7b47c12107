//! Any bytes are a dump, modules and stacks of msProbe, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::msprobe;
use opscope_store::tree::msprobe::EntryName;

fuzz_target!(|bytes: &[u8]| {
    let _ = msprobe::is_dump(bytes);
    let _ = msprobe::parse_construct(bytes.to_vec());
    let _ = msprobe::parse_stack(bytes.to_vec());
    if let Ok(dump) = msprobe::parse_dump(bytes.to_vec()) {
        for entry in dump.entries {
            let _ = EntryName::parse(&entry.key);
        }
    }
});
