//! Every recorded configuration gets the verdict, the reports and the meaning of the vendor's
//! checker.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use opscope_capture::SlotSides;
use opscope_config::dialect::acl::{self, AclConfig, AclContent, DumpLevel, DumpMode};
use opscope_config::{
    ConfigEnvironment, ConfigIssue, ErrorReport, RefusalReason, Severity, check_nesting,
};
use opscope_store::file_format::stats_csv::{StatsColumn, StatsColumns};
use serde_json::{Value, json};

/// The directories that the recorded configurations use.
struct Places {
    dir: tempfile::TempDir,
}

impl Places {
    fn new() -> Places {
        let dir = tempfile::tempdir().unwrap();
        for name in ["okdir", "cwd"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("file"), "x").unwrap();
        Places { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// The text with directories filled in, and values padded to the requested length.
    fn fill(&self, text: &str) -> String {
        let mut text = text
            .replace("@DIR@", &self.path("okdir"))
            .replace("@FILE@", &self.path("file"))
            .replace("@MISSING@", &self.path("missing"));
        for (mark, length) in [("@PAD512@", 512), ("@PAD513@", 513)] {
            let Some(value) = text.split('"').find(|value| value.contains(mark)) else {
                continue;
            };
            let padding = "/".repeat(length - value.replace(mark, "").len());
            text = text.replace(mark, &padding);
        }
        text
    }

    fn environment(&self) -> ConfigEnvironment {
        ConfigEnvironment {
            current_dir: PathBuf::from(self.path("cwd")),
            ..ConfigEnvironment::default()
        }
    }
}

#[test]
fn recorded_configurations() {
    let cases = include_str!("data/acl_json_cases.jsonl");
    let places = Places::new();
    let mut n_by_code = BTreeMap::<&str, usize>::new();
    let mut n_accepted = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let text = places.fill(case["config"].as_str().unwrap());
        let expected = &case["expect"];
        // The library checks the nesting before it calls the checker, whose answers these are.
        assert_eq!(check_nesting(&text).is_err(), id == "ge_testDump4", "{id}");
        match acl::check(&text, &places.environment()) {
            Ok(config) => {
                assert_eq!(expected["set_dump_returns"], "ACL_SUCCESS", "{id}");
                n_accepted += 1;
                check_meaning(id, &text, &config, expected);
            }
            Err(issues) => {
                let refused = "ACL_ERROR_INVALID_DUMP_CONFIG";
                assert_eq!(expected["set_dump_returns"], refused, "{id}: {issues:?}");
                let reports = issues.iter().filter(|i| i.severity == Severity::Error);
                let expected: Vec<Value> = expected["errors"].as_array().unwrap().clone();
                let expected: Vec<Value> = expected
                    .into_iter()
                    .map(|e| filled(&places, &text, e))
                    .collect();
                for issue in reports.clone() {
                    check_place(id, &text, issue);
                    *n_by_code.entry(issue.code().unwrap()).or_default() += 1;
                }
                assert_eq!(reports.map(report).collect::<Vec<_>>(), expected, "{id}");
            }
        }
    }
    let counts: Vec<(&str, usize)> = n_by_code.into_iter().collect();
    assert_eq!(n_accepted, 136);
    let expected = [
        ("EP0001", 73),
        ("EP0002", 26),
        ("EP0003", 56),
        ("EP0004", 2),
        ("EP0005", 33),
    ];
    assert_eq!(counts, expected);
}

/// A recorded error with the directories filled in.
fn filled(places: &Places, text: &str, mut error: Value) -> Value {
    if let Some(value) = error.get("value").and_then(Value::as_str) {
        // The record of the longest path omits its padding.
        let value = if value.ends_with("@PAD@") {
            let path = serde_json::from_str::<Value>(text).unwrap()["dump"]["dump_path"].clone();
            path.as_str().unwrap().to_owned()
        } else {
            places.fill(value)
        };
        error["value"] = value.into();
    }
    error
}

/// The issue's report in the format of the records.
fn report(issue: &ConfigIssue) -> Value {
    let code = issue.code();
    let report = issue.report.as_ref().unwrap();
    let file = report.placeholders("acl.json");
    assert!(file.contains(&"acl.json".to_owned()));
    match report {
        ErrorReport::Item { item, reason } => {
            assert_eq!(*item, issue.item);
            json!({"code": code, "item": item, "reason": reason_word(*reason)})
        }
        ErrorReport::Word {
            item,
            value,
            expected,
        } => json!({"code": code, "value": value, "item": item, "expected_value": expected}),
        ErrorReport::Value {
            item,
            value,
            reason,
        } => json!({"code": code, "value": value, "item": item, "reason": reason_word(*reason)}),
        ErrorReport::Syntax { .. } => json!({"code": code, "reason": "json_syntax"}),
        ErrorReport::Conflict(conflict) => {
            let (other, value) = &conflict.other;
            let when = if conflict.is_other_so {
                "when"
            } else {
                "when_not"
            };
            let item = match &conflict.value {
                Some(value) => json!({conflict.item.clone(): value}),
                None => json!(conflict.item),
            };
            json!({"code": code, when: {other.clone(): value}, "conflict": item})
        }
    }
}

fn reason_word(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::NotFound => "not_found",
        RefusalReason::Empty => "value_empty",
        RefusalReason::NotString => "must_be_string",
        RefusalReason::NotArray => "must_be_array",
        RefusalReason::NotObject => "must_be_object",
        RefusalReason::MemberNotString => "member_must_be_string",
        RefusalReason::MemberNotObject => "member_must_be_object",
        RefusalReason::PathTooLong => "path_too_long",
        RefusalReason::PathNotFound => "path_not_exist",
        RefusalReason::NotDirectory => "path_not_directory",
        RefusalReason::NoPermission => "path_no_permission",
        RefusalReason::PathInvalid => "path_invalid",
        RefusalReason::InvalidCharacters => "invalid_chars",
        RefusalReason::TooManySteps => "step_too_many",
        RefusalReason::StepFormat => "step_bad_format",
        RefusalReason::StepNotDigits => "step_not_digit",
        RefusalReason::StepReversed => "step_reversed",
        RefusalReason::TooManyExclusions => "blacklist_too_long",
        RefusalReason::RangeIncomplete => "range_incomplete",
    }
}

/// The pointer leads to a value, or for a missing one to the object that lacks it, and the position
/// is in the text.
fn check_place(id: &str, text: &str, issue: &ConfigIssue) {
    let line = text.lines().nth(issue.place.line - 1);
    let line = line.unwrap_or_else(|| panic!("{id}: {issue}"));
    assert!(
        issue.place.column <= line.chars().count() + 1,
        "{id}: {issue}"
    );
    let Ok(root) = serde_json::from_str::<Value>(text) else {
        assert_eq!(issue.code(), Some("EP0004"), "{id}");
        return;
    };
    let mut pointer = issue.pointer.as_str();
    if let Some(ErrorReport::Item {
        reason: RefusalReason::NotFound,
        ..
    }) = issue.report
    {
        pointer = pointer.rsplit_once('/').unwrap().0;
    }
    assert!(root.pointer(pointer).is_some(), "{id}: {issue}");
}

fn check_meaning(id: &str, text: &str, config: &AclConfig, expected: &Value) {
    let enabled = config.dump.as_ref().map(|dump| match dump.mode {
        // The vendor's checker treats a watch as a dump of values.
        DumpMode::Watcher => "operator",
        mode => mode.name(),
    });
    // According to the documentation an empty list selects single operators; the checker ignores
    // it.
    let enabled = enabled.filter(|mode| *mode != DumpMode::SingleOperators.name());
    assert_eq!(json!(enabled), expected["enabled"], "{id}");
    let errors = config
        .issues
        .iter()
        .filter(|i| i.severity == Severity::Error);
    assert_eq!(errors.count(), 0, "{id}");
    let Some(settings) = &config.settings else {
        assert!(config.dump.is_none(), "{id}");
        return;
    };
    if let Some(kernel_data) = &settings.kernel_data {
        assert_eq!(json!(kernel_data), expected["kernel_data"], "{id}");
    } else {
        assert!(!text.contains("dump_kernel_data"), "{id}");
    }
    let Some(dump) = config.dump.as_ref().filter(|_| enabled.is_some()) else {
        return;
    };
    let mode = match settings.sides {
        SlotSides::Inputs => "input",
        SlotSides::Outputs => "output",
        SlotSides::Both => "all",
    };
    assert_eq!(mode, expected["mode"], "{id}");
    let level = match settings.level {
        DumpLevel::Operators => "op",
        DumpLevel::Kernels => "kernel",
        DumpLevel::All => "all",
    };
    assert_eq!(level, expected["level"], "{id}");
    let data = if settings.is_statistics {
        "stats"
    } else {
        "tensor"
    };
    let recorded = expected["data"].as_str().unwrap();
    assert_eq!(data, recorded.trim_end_matches(" (default)"), "{id}");
    let columns = settings.columns.iter().flatten().copied();
    let stats: Vec<&str> = columns.clone().map(column_word).collect();
    assert_eq!(json!(stats), expected["stats"], "{id}");
    if enabled == Some("operator") {
        assert_eq!(dump.plan.sides, settings.sides, "{id}");
        let content = match (data, stats.is_empty()) {
            ("tensor", _) => AclContent::Tensors,
            (_, true) => AclContent::Statistics(StatsColumns::Plain),
            (_, false) => {
                let mut columns: Vec<StatsColumn> = columns.collect();
                columns.sort();
                columns.dedup();
                AclContent::Statistics(StatsColumns::Chosen(columns))
            }
        };
        assert_eq!(dump.content, content, "{id}");
    }
}

fn column_word(column: StatsColumn) -> &'static str {
    match column {
        StatsColumn::Max => "Max",
        StatsColumn::Min => "Min",
        StatsColumn::Average => "Avg",
        StatsColumn::NanCount => "Nan",
        StatsColumn::NegativeInfCount => "Negative Inf",
        StatsColumn::PositiveInfCount => "Positive Inf",
        StatsColumn::L2Norm => "L2norm",
    }
}
