//! Any text is read as fusion rules, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_analysis::msaccucmp;

fuzz_target!(|text: &str| {
    msaccucmp::is_fusion_rule(text);
});
