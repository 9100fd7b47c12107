//! Any text is a configuration, or is refused with issues that have a place.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_config::dialect::{acl, detect};
use opscope_config::{ConfigEnvironment, Severity, check_nesting};

fuzz_target!(|text: &str| {
    let env = ConfigEnvironment {
        current_dir: "/".into(),
        ..ConfigEnvironment::default()
    };
    let _ = (check_nesting(text), detect(text), acl::report_scope(text));
    let issues = match acl::load(text, &env) {
        Ok(config) => {
            acl::explain(&config, &env);
            config.issues
        }
        Err(issues) => {
            assert_eq!(
                issues.first().map(|issue| issue.severity),
                Some(Severity::Error)
            );
            issues
        }
    };
    assert!(
        issues
            .iter()
            .all(|issue| issue.place.line > 0 && issue.place.column > 0)
    );
});
