//! MindSpore's answers to configurations, on a CPU, a GPU and Ascend; see `data/README.md`.

use opscope_config::dialect::mindspore::{self, MindSporeConfig};
use opscope_config::{ConfigEnvironment, ConfigIssue, Severity};
use opscope_store::tree::mindspore::TreeTarget;
use serde_json::Value;

const TARGETS: [(&str, TreeTarget); 3] = [
    ("CPU", TreeTarget::Cpu),
    ("GPU", TreeTarget::Gpu),
    ("Ascend", TreeTarget::AscendKernels),
];

#[test]
fn recorded_configurations() {
    let matrix: Value =
        serde_json::from_str(include_str!("data/mindspore_config_matrix.json")).unwrap();
    let rows = matrix["rows"].as_array().unwrap();
    let (mut n_accepted, mut n_refused) = (0, 0);
    for row in rows {
        let text = match row.get("raw") {
            Some(raw) => raw.as_str().unwrap().to_owned(),
            None => row["config"].to_string(),
        };
        let env = ConfigEnvironment {
            diagnostic_data_path: row["env"]["MS_DIAGNOSTIC_DATA_PATH"]
                .as_str()
                .map(str::to_owned),
            device_id: u32::try_from(row["device_id"].as_u64().unwrap()).unwrap(),
            ..ConfigEnvironment::default()
        };
        for (name, target) in TARGETS {
            let Some(expected) = row["result"].get(name) else {
                continue;
            };
            let id = format!("{} on {name}", row["name"]);
            let answer = mindspore::check(&text, target, &env);
            if expected["ok"].as_bool().unwrap() {
                n_accepted += 1;
            } else {
                n_refused += 1;
            }
            compare(&id, &answer, expected);
        }
    }
    assert_eq!((rows.len(), n_accepted, n_refused), (210, 278, 307));
}

fn compare(id: &str, answer: &Result<MindSporeConfig, Vec<ConfigIssue>>, expected: &Value) {
    let issues = match answer {
        Ok(config) => {
            assert_eq!(config.settings.json(), expected["effective"], "{id}");
            &config.issues
        }
        Err(issues) => {
            let error = expected["error"].as_str().unwrap_or_default();
            let first = issues.first().unwrap();
            let text = first.vendor_text.as_deref().unwrap();
            assert_eq!(first.severity, Severity::Error, "{id}");
            // The parser's message about broken syntax is not compared.
            match text.strip_suffix("error:") {
                Some(_) => assert!(error.starts_with(text), "{id}: {error}"),
                None => assert_eq!(text, error, "{id}"),
            }
            issues
        }
    };
    assert_eq!(answer.is_ok(), expected["ok"], "{id}");
    let warnings = issues
        .iter()
        .filter(|issue| issue.severity == Severity::Warning);
    let mut warnings: Vec<_> = warnings
        .filter_map(|issue| issue.vendor_text.clone())
        .collect();
    warnings.sort_unstable();
    assert_eq!(warnings, logged(expected), "{id}");
}

/// The warnings that MindSpore printed, without repetitions.
fn logged(expected: &Value) -> Vec<String> {
    let lines = expected["log"].as_array().unwrap().iter();
    let warnings = lines.filter_map(|line| line.as_str()?.strip_prefix("warning: "));
    let mut warnings: Vec<String> = warnings
        .map(|line| match line.strip_prefix("[Dump Alert ") {
            Some(rest) => rest.split_once("]: ").map_or(rest, |(_, text)| text),
            None => line,
        })
        .map(str::to_owned)
        .collect();
    warnings.sort_unstable();
    warnings.dedup();
    warnings
}
