//! Any text is a filter, or has a mistake at a place inside of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_view::mistake_in;

fuzz_target!(|text: &str| {
    if let Some((place, message)) = mistake_in(text) {
        // There are at most as many characters as bytes.
        assert!(place.start <= place.end && place.end <= text.len());
        assert!(!message.is_empty());
    }
});
