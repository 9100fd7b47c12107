//! A file name of MindSpore means the same after parsing and formatting.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::tree::mindspore::TensorFileName;

fuzz_target!(|name: &str| {
    if let Some(parsed) = TensorFileName::parse(name) {
        let again = TensorFileName::parse(&parsed.to_string());
        assert_eq!(again, Some(parsed));
    }
});
