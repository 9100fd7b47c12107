//! MindSpore's data dump: the file that `MINDSPORE_DUMP_CONFIG` names.
//!
//! `docs/config/mindspore.md` lists every key. Files are refused for the same reasons and in the
//! same order as by MindSpore 2.10 on each kind of device; settings that it silently ignores cause
//! a warning here.

mod config;
mod dump;
mod explain;
mod idle;
mod iteration;
mod kernels;
mod lower;
mod plan;
mod regex_syntax;
mod section;
mod settings;

use std::path::Path;

use opscope_store::tree::mindspore::TreeTarget;

use self::section::{COMMON, ConfigSection, E2E};
use self::settings::{COMMON_KEYS, DeviceBackend, E2E_KEYS, SettingsReader};
use super::findings::{IssueCollector, nearest_hint, top_level_warning};
use crate::json::{self, JsonNode, JsonValue};
use crate::text_position::TextPosition;
use crate::{ConfigEnvironment, ConfigIssue, Severity};

pub use config::MindSporeConfig;
pub use dump::{
    DevicePrecision, DumpedKernels, FileFormat, KernelEntry, MindSporeDumpPlan, RuleKind,
    SavedParts,
};
pub use explain::explain;
pub use settings::{MindSporeSettings, SavedData};

/// The suffix of a configuration's name.
const FILE_NAME_END: &str = "json";

/// Checks `text` and lowers it to a dump that Opscope makes. No file is opened.
///
/// It follows MindSpore except for `dump_mode` 2, which it accepts on every target. [`check`] has
/// the verdict of MindSpore.
///
/// # Errors
/// The issues, if any is an error; errors come first.
pub fn load(
    text: &str,
    target: TreeTarget,
    env: &ConfigEnvironment,
) -> Result<MindSporeConfig, Vec<ConfigIssue>> {
    read(text, target, env, true)
}

/// The same as [`load`], with MindSpore's verdict on `dump_mode` 2: refused on all targets but
/// Ascend.
///
/// # Errors
/// The issues, if any is an error; errors come first.
pub fn check(
    text: &str,
    target: TreeTarget,
    env: &ConfigEnvironment,
) -> Result<MindSporeConfig, Vec<ConfigIssue>> {
    read(text, target, env, false)
}

/// Checks the name of a configuration as MindSpore does for the one in `MINDSPORE_DUMP_CONFIG`: a
/// file that exists, whose name ends in `.json`.
///
/// # Errors
/// An issue with the reason for the refusal.
pub fn check_file_name(path: &Path) -> Result<(), Box<ConfigIssue>> {
    let (message, text) = if !path.exists() {
        ("there is no such file", "Get dump config file failed")
    } else if path.is_dir() {
        ("it is a directory", "Invalid json file name")
    } else if path.extension().is_none_or(|end| end != FILE_NAME_END) {
        (
            "its name does not end in `.json`",
            "suffix only supports json!",
        )
    } else {
        return Ok(());
    };
    let start = TextPosition { line: 1, column: 1 };
    Err(Box::new(ConfigIssue {
        found: Some(path.display().to_string()),
        expected: Some("a file with a name that ends in `.json`".to_owned()),
        vendor_text: Some(text.to_owned()),
        ..ConfigIssue::of_file(Severity::Error, start, message)
    }))
}

fn read(
    text: &str,
    target: TreeTarget,
    env: &ConfigEnvironment,
    is_lenient: bool,
) -> Result<MindSporeConfig, Vec<ConfigIssue>> {
    // MindSpore's parser reads from a stream and stops after the first value.
    let (root, after) = json::parse_first(text).map_err(|issue| {
        vec![ConfigIssue {
            // MindSpore has no codes, only printed lines.
            report: None,
            vendor_text: Some("Parse dump json failed, error:".to_owned()),
            ..*issue
        }]
    })?;
    let mut findings = IssueCollector::default();
    warn_unknown(&root, &mut findings);
    if let Some(place) = after {
        let message = "text after the first value is ignored, as in MindSpore";
        findings.warn(ConfigIssue::of_file(Severity::Warning, place, message));
    }
    let reader = SettingsReader {
        backend: DeviceBackend::for_target(target),
        is_graph: lower::is_graph(target),
        env,
        is_lenient,
    };
    let loaded = reader.read(&root, &mut findings).and_then(|settings| {
        let dump = lower::dump(text, target, &settings, &mut findings)?;
        // Settings without effect are known only once all settings are.
        idle::warn(&root, target, &settings, &mut findings);
        Ok((settings, dump))
    });
    let issues = findings.into_issues();
    match loaded {
        Ok((settings, dump)) => Ok(MindSporeConfig {
            dump,
            settings,
            issues,
        }),
        Err(_) => Err(issues),
    }
}

fn warn_unknown(root: &JsonNode, findings: &mut IssueCollector) {
    if let JsonValue::Object(members) = &root.value {
        for member in members {
            let name = member.name.as_str();
            if ![COMMON, E2E].contains(&name) {
                let message = "unknown key, it has no effect".to_owned();
                let mut issue = top_level_warning(name, member.place, message);
                issue.hint = nearest_hint(name, &[COMMON, E2E]);
                findings.warn(issue);
            }
        }
    }
    for (name, keys) in [(COMMON, &COMMON_KEYS[..]), (E2E, &E2E_KEYS[..])] {
        if let Some(section) = ConfigSection::find(root, name) {
            section.warn_unknown(keys, findings);
        }
    }
}

/// The default target: the graph engine if the variable requests it.
pub fn default_target(env: &ConfigEnvironment) -> TreeTarget {
    if env.has_ge_dump {
        TreeTarget::GraphEngine
    } else {
        // Our engines run on the CPU, so its tree is the closest.
        TreeTarget::Cpu
    }
}

#[cfg(test)]
mod tests;
