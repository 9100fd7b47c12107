//! MindSpore's data dump: the file that `MINDSPORE_DUMP_CONFIG` names.
//!
//! `docs/config/mindspore.md` lists every key. Which files are refused, why and in which order, is what
//! MindSpore 2.10 does for each kind of device; what it accepts without a word although it has no effect
//! is warned about here.

use std::path::PathBuf;

use opscope_capture::{Purpose, Sides, Steps};
use opscope_store::file_format::statistic_csv::Category;
use opscope_store::tree::mindspore::Target;

use crate::Issue;

/// What a configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing.
    pub dump: Option<MindSporeDump>,
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
    /// What makes an operator worth keeping: [`Purpose::Values`], [`Purpose::Overflow`] or
    /// [`Purpose::Failures`].
    pub purpose: Purpose,
    /// Which operators and parameters.
    pub kernels: Kernels,
    /// What is written of a tensor.
    pub saved: Saved,
    /// How many overflowing operators are kept in the whole process; `None` is all.
    pub overflow_number: Option<u64>,
    /// The form of tensor files of whole graphs on Ascend; everywhere else they are npy.
    pub file_format: FileFormat,
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

/// Which operators and parameters are dumped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// All of them.
    Every,
    /// Those that match a rule; there is at least one. Texts differ, in the order of the file.
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

/// What is written of a tensor; at least one of both.
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

/// What stands before and after a regular expression in `kernels`.
const REGEX_MARKS: (&str, &str) = ("name-regex(", ")");

impl MindSporeDump {
    /// Whether a device dumps. On the CPU every one does, whatever `support_device` says.
    pub fn is_device_selected(&self, device: u32) -> bool {
        self.target == Target::Cpu || self.devices.contains(&device)
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
