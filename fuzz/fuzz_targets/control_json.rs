//! Any text is a control file, or is refused with issues that have a place; an inline configuration
//! has the control file's places.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_config::dialect::acl;
use opscope_config::{ConfigEnvironment, ControlConfig, ControlRequests, Severity};

fuzz_target!(|text: &str| {
    let env = ConfigEnvironment {
        current_dir: "/".into(),
        ..ConfigEnvironment::default()
    };
    let n_lines = text.split('\n').count();
    match ControlRequests::parse(text, &env) {
        Err(issues) => {
            assert!(!issues.is_empty());
            for issue in issues {
                assert_eq!(issue.severity, Severity::Error);
                assert!(issue.place.line > 0 && issue.place.column > 0);
            }
        }
        Ok(ControlRequests { config, .. }) => match config {
            Some(ControlConfig::Inline(inline)) => {
                assert_eq!(inline.split('\n').count(), n_lines);
                assert!(inline.trim_start().starts_with('{'));
                let _ = acl::load(&inline, &env);
            }
            Some(ControlConfig::File(path)) => assert!(path.is_absolute()),
            None => {}
        },
    }
});
