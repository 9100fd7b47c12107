//! Any text is parsed as fusion rules, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    opscope_msaccucmp::is_fusion_rule(text);
});
