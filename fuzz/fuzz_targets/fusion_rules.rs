//! Any bytes are read or refused as fusion rules.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_analysis::compare::matching::FusionRules;

fuzz_target!(|json: &[u8]| {
    let _ = FusionRules::parse(json);
});
