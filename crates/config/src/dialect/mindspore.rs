//! MindSpore's data dump: the file that `MINDSPORE_DUMP_CONFIG` names.
//!
//! `docs/config/mindspore.md` lists every key. Which files are refused, why and in which order, is what
//! MindSpore 2.10 does for each kind of device; what it accepts without a word although it has no effect
//! is warned about here.

mod explain;
mod idle;
mod iteration;
mod kernels;
mod lower;
mod plan;
mod regex_syntax;
mod section;
mod settings;

use std::path::{Path, PathBuf};

use opscope_capture::{Purpose, Sides, Steps};
use opscope_store::file_format::statistic_csv::Category;
use opscope_store::tree::mindspore::Target;

use self::section::{COMMON, E2E, Section};
use self::settings::{Backend, COMMON_KEYS, E2E_KEYS, Reader};
use super::findings::{Findings, nearest_hint, top_level_warning};
use crate::json::{self, Node, Value};
use crate::load::Place;
use crate::{Environment, Issue, Severity};

pub use explain::explain;
pub use settings::{SavedData, Settings};

/// A configuration after it was checked: the dump to make, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing.
    pub dump: Option<MindSporeDump>,
    /// The settings that MindSpore would have in force.
    pub settings: Settings,
    /// Warnings; no errors.
    pub issues: Vec<Issue>,
}

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeDump {
    /// Whose directories and names are used.
    pub target: Target,
    /// Absolute directory below which everything is written. It may not exist yet.
    pub path: PathBuf,
    /// Name of the network, which becomes a directory.
    pub net_name: String,
    /// The iterations to keep, numbered as in directories: from `initial_iteration` on.
    pub iteration: Steps,
    /// Number of the first iteration.
    pub initial_iteration: u64,
    /// Which sides of an operator.
    pub sides: Sides,
    /// The property that makes an operator worth keeping: [`Purpose::Values`],
    /// [`Purpose::Overflow`] or [`Purpose::Failures`].
    pub purpose: Purpose,
    /// Which operators and parameters.
    pub kernels: Kernels,
    /// The parts of a tensor that are written.
    pub saved: Saved,
    /// How many overflowing operators are kept in the whole process; `None` is all.
    pub overflow_number: Option<u64>,
    /// The form of tensor files of whole graphs on Ascend; everywhere else they are npy.
    pub file_format: FileFormat,
    /// How a device computes the statistics; `None` is the host's way.
    pub device_precision: Option<DevicePrecision>,
    /// Whether tensors are written as the host has them, not as the device has.
    pub trans_flag: bool,
    /// How many of a tensor's first elements are kept; `None` is all.
    pub n_samples: Option<u64>,
    /// Whether arguments of operators are written too.
    pub saves_kernel_args: bool,
    /// The devices that dump; see [`MindSporeDump::is_device_selected`].
    pub devices: Vec<u32>,
    /// The configuration itself, byte for byte.
    pub text: String,
}

/// How exactly a device computes statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePrecision {
    /// Means and norms in float32.
    High,
    /// Everything in the tensor's own type.
    Low,
}

/// Which operators and parameters are dumped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// All of them.
    Every,
    /// Those that match a rule; there is at least one. Sorted by their text, in which order
    /// MindSpore tries regexes, then names, then types.
    Listed(Vec<KernelRule>),
    /// Those that the model marks.
    BySetDump,
}

/// One entry of `kernels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRule {
    /// The entry as JSON, without quotes and spaces: a backslash stands twice. Regexes with
    /// `name-regex(` and `)`; see [`KernelRule::pattern`].
    pub text: String,
    /// How it is compared.
    pub kind: RuleKind,
}

/// How an entry of `kernels` is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// With the full name, exactly.
    Name,
    /// With a part of the operator's type, letter case apart.
    Type,
    /// With the whole full name, as an ECMAScript regular expression.
    Regex,
}

/// The parts of a tensor that are written; at least one of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Its values.
    pub tensors: bool,
    /// These columns of its statistics, which may be none.
    pub statistics: Option<Vec<Category>>,
}

/// The form of tensor files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One npy file for each tensor.
    Npy,
    /// One file for each operator, in CANN's format.
    Bin,
}

/// The marks before and after a regular expression in `kernels`.
const REGEX_MARKS: (&str, &str) = ("name-regex(", ")");

/// The ending of a configuration's name.
const FILE_NAME_END: &str = "json";

/// Checks `text` and lowers it to a dump that Opscope makes. No file is looked at.
///
/// It follows MindSpore but for `dump_mode` 2, which it takes on every target. [`check`] has the
/// verdict of MindSpore.
///
/// # Errors
/// The issues, if any of them is an error; errors come first.
pub fn load(text: &str, target: Target, env: &Environment) -> Result<MindSporeConfig, Vec<Issue>> {
    read(text, target, env, true)
}

/// The same as [`load`], with MindSpore's verdict on `dump_mode` 2: refused on all targets but Ascend.
///
/// # Errors
/// The issues, if any of them is an error; errors come first.
pub fn check(text: &str, target: Target, env: &Environment) -> Result<MindSporeConfig, Vec<Issue>> {
    read(text, target, env, false)
}

/// Checks the name of a configuration as MindSpore does for the one in `MINDSPORE_DUMP_CONFIG`: a file
/// that exists, whose name ends in `.json`.
///
/// # Errors
/// An issue that says why the name is refused.
pub fn check_file_name(path: &Path) -> Result<(), Box<Issue>> {
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
    let start = Place { line: 1, column: 1 };
    Err(Box::new(Issue {
        found: Some(path.display().to_string()),
        expected: Some("a file with a name that ends in `.json`".to_owned()),
        vendor_text: Some(text.to_owned()),
        ..Issue::of_file(Severity::Error, start, message)
    }))
}

fn read(
    text: &str,
    target: Target,
    env: &Environment,
    is_lenient: bool,
) -> Result<MindSporeConfig, Vec<Issue>> {
    let (root, after) = json::parse_first(text).map_err(|issue| {
        vec![Issue {
            report: None,
            vendor_text: Some("Parse dump json failed, error:".to_owned()),
            ..*issue
        }]
    })?;
    let mut findings = Findings::default();
    warn_unknown(&root, &mut findings);
    if let Some(place) = after {
        let message = "what follows the first value is passed over, as MindSpore does";
        findings.warn(Issue::of_file(Severity::Warning, place, message));
    }
    let reader = Reader {
        backend: Backend::of(target),
        is_graph: lower::is_graph(target),
        env,
        is_lenient,
    };
    let loaded = reader.read(&root, &mut findings).and_then(|settings| {
        let dump = lower::dump(text, target, &settings, &mut findings)?;
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

fn warn_unknown(root: &Node, findings: &mut Findings) {
    if let Value::Object(members) = &root.value {
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
        if let Some(section) = Section::find(root, name) {
            section.warn_unknown(keys, findings);
        }
    }
}

/// Whose tree is meant where nothing else says it: the graph engine's if the variable asks for that.
pub fn default_target(env: &Environment) -> Target {
    if env.has_ge_dump {
        Target::GraphEngine
    } else {
        Target::Cpu
    }
}

impl MindSporeDump {
    /// Whether a device dumps. On the CPU every one does, whatever `support_device` says.
    pub fn is_device_selected(&self, device: u32) -> bool {
        self.target == Target::Cpu || self.devices.contains(&device)
    }

    /// A short name of what the dump is about.
    pub fn mode_name(&self) -> &'static str {
        match self.purpose {
            Purpose::Values | Purpose::Watch => "operator",
            Purpose::Overflow | Purpose::NonFinite => "overflow",
            Purpose::Failures(_) => "exception",
        }
    }
}

impl KernelRule {
    /// The text to compare with: of a regex what stands in the parentheses.
    pub fn pattern(&self) -> &str {
        let (begin, end) = REGEX_MARKS;
        match self.kind {
            RuleKind::Name | RuleKind::Type => &self.text,
            RuleKind::Regex => self
                .text
                .strip_prefix(begin)
                .and_then(|rest| rest.strip_suffix(end))
                .unwrap_or(&self.text),
        }
    }
}

#[cfg(test)]
mod tests;
