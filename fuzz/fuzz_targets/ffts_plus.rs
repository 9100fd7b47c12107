//! Any text is an FFTS+ attribute or refused; an accepted attribute round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::ffts_plus::FftsPlus;
use opscope_store::record::SlotSide;

fuzz_target!(|text: &str| {
    if let Ok(attribute) = FftsPlus::parse(text) {
        let _ = attribute.shapes(SlotSide::Input, 0);
        let _ = attribute.shapes(SlotSide::Output, 1);
        assert_eq!(FftsPlus::parse(&attribute.to_text()), Ok(attribute));
    }
});
