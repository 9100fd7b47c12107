//! Any text is a configuration, or is refused with issues that have a place, on every target.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_config::dialect::{detect, mindspore};
use opscope_config::{ConfigEnvironment, Severity};
use opscope_store::tree::mindspore::TreeTarget;

const TARGETS: [TreeTarget; 5] = [
    TreeTarget::Cpu,
    TreeTarget::Gpu,
    TreeTarget::AscendKernels,
    TreeTarget::AscendGraph,
    TreeTarget::GraphEngine,
];

fuzz_target!(|text: &str| {
    let env = ConfigEnvironment {
        current_dir: "/".into(),
        ..ConfigEnvironment::default()
    };
    let _ = detect(text);
    for target in TARGETS {
        // A configuration that MindSpore accepts is also accepted for a native dump.
        let is_accepted = mindspore::check(text, target, &env).is_ok();
        let issues = match mindspore::load(text, target, &env) {
            Ok(config) => {
                mindspore::explain(&config);
                config.issues
            }
            Err(issues) => {
                assert!(!is_accepted);
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
    }
});
