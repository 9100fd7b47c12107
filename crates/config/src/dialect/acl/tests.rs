//! Loading configurations.

mod explanations;
mod failures;
mod findings;
mod places;
mod selection;

use std::path::PathBuf;

use opscope_capture::{
    Exclusion, FailureDetail, ModelSelection, NameRange, OperatorRule, OperatorSelection, Plan,
    Purpose, SlotSides,
};
use opscope_store::record::SlotSide;

use super::*;

/// A directory to dump into, and the result of loading a configuration with `@` replaced by that
/// directory.
fn load_in(config: &str) -> (tempfile::TempDir, Result<AclConfig, Vec<ConfigIssue>>) {
    let dir = tempfile::tempdir().unwrap();
    let text = config.replace('@', dir.path().to_str().unwrap());
    let env = ConfigEnvironment {
        current_dir: dir.path().to_owned(),
        ..ConfigEnvironment::default()
    };
    let result = load(&text, &env);
    (dir, result)
}

/// Loads a `dump` object with these members and a `dump_path`.
fn loaded(members: &str) -> AclConfig {
    let config = format!(r#"{{"dump": {{"dump_path": "@", {members}}}}}"#);
    let (_dir, result) = load_in(&config);
    result.unwrap_or_else(|issues| panic!("{config}: {issues:?}"))
}

fn dump_of(members: &str) -> AclDump {
    loaded(members).dump.unwrap()
}

fn named(names: &[&str]) -> OperatorSelection {
    OperatorSelection::named(names.iter().copied())
}

fn every() -> ModelSelection {
    ModelSelection::Every(OperatorSelection::every())
}

#[test]
fn keys_beside_the_dump_object() {
    let (_dir, result) = load_in(r#"{"dump_list": [], "max_opqueue_num": "1", "dunp": {}}"#);
    let issues = result.unwrap().issues;
    let told: Vec<String> = issues.iter().map(ToString::to_string).collect();
    assert!(told[1].ends_with("(`dump_list` belongs in the `dump` object)"));
    assert!(told[2].ends_with("(did you mean `dump`?)"));
    assert_eq!(told.len(), 3);
}

#[test]
fn whose_reports() {
    for (text, expected) in [
        ("", Some(ReportScope::Thread)),
        ("5", Some(ReportScope::Thread)),
        (r#"{"dump": {}}"#, Some(ReportScope::Thread)),
        (r#"{"err_msg_mode": "0"}"#, Some(ReportScope::Thread)),
        (r#"{"err_msg_mode": "1"}"#, Some(ReportScope::Process)),
        (r#"{"err_msg_mode": 1}"#, None),
        (r#"{"err_msg_mode": "2"}"#, None),
        (r#"{"err_msg_mode": ""}"#, None),
        ("{", None),
    ] {
        assert_eq!(report_scope(text).ok(), expected, "{text}");
    }
    let issue = report_scope(r#"{"err_msg_mode": "2"}"#).unwrap_err();
    assert_eq!(
        issue.to_string(),
        "1:18: error at `/err_msg_mode`: found `2`, expected the string `0` or `1`"
    );
}
