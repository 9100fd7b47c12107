//! Any name is parsed or skipped; no model's name leaves the tree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::tree::acl::{DumpFileName, clean_name};

fuzz_target!(|name: &str| {
    if let Some(parts) = DumpFileName::parse(name) {
        assert!(DumpFileName::parse(&parts.to_string()).is_some());
    }
    let clean = clean_name(name);
    assert!(!clean.contains(['/', '\0', '.', '\n']));
});
