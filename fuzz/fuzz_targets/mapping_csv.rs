//! Any text is read; written lines round-trip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::mapping_csv;

fuzz_target!(|text: &str| {
    for (short, real) in mapping_csv::parse(text) {
        let line = mapping_csv::line(short, real);
        assert_eq!(mapping_csv::parse(&line).next(), Some((short, real)));
    }
});
