//! Any text is parsed or refused as a mapping, in both forms; a parsed mapping round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_analysis::compare::matching::{Mapping, MappingForm};

fuzz_target!(|text: &str| {
    for form in [MappingForm::Json, MappingForm::Yaml] {
        if let Ok(mapping) = Mapping::parse(text, form) {
            // Rules about ranks are parsed or refused.
            let _ = mapping.check_ranks();
            for again in [MappingForm::Json, MappingForm::Yaml] {
                let written = mapping.to_text(again).unwrap();
                let read = Mapping::parse(&written, again).unwrap();
                // Similarities may be NaN, which is equal to nothing.
                assert_eq!(read.operators.len(), mapping.operators.len());
                assert_eq!(
                    (read.ignore, read.unmatched, read.ranks),
                    (
                        mapping.ignore.clone(),
                        mapping.unmatched.clone(),
                        mapping.ranks.clone()
                    )
                );
            }
        }
    }
});
