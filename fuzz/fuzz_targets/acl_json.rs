//! Any text is a configuration or refused with issues that have a place.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use opscope_config::dialect::acl;

fuzz_target!(|text: &str| {
    if let Err(issues) = acl::load(text, Path::new("/")) {
        assert!(!issues.is_empty());
        assert!(
            issues
                .iter()
                .all(|issue| issue.place.line > 0 && issue.place.column > 0)
        );
    }
});
