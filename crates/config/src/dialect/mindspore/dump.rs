//! The dump that a configuration asks for.

use std::path::PathBuf;

use opscope_capture::{Purpose, SlotSides, Steps};
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::tree::mindspore::TreeTarget;

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeDumpPlan {
    /// Whose directories and names are used.
    pub target: TreeTarget,
    /// Absolute directory below which everything is written. It may not exist yet.
    pub path: PathBuf,
    /// Name of the network, which becomes a directory.
    pub net_name: String,
    /// The iterations to keep, numbered as in directories: from `initial_iteration` on.
    pub iteration: Steps,
    /// Number of the first iteration.
    pub initial_iteration: u64,
    /// Which sides of an operator.
    pub sides: SlotSides,
    /// The property that makes an operator worth keeping: [`Purpose::Values`],
    /// [`Purpose::Overflow`] or [`Purpose::Failures`].
    pub purpose: Purpose,
    /// Which operators and parameters.
    pub kernels: DumpedKernels,
    /// The parts of a tensor that are written.
    pub saved: SavedParts,
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
    /// The devices that dump; see [`MindSporeDumpPlan::is_device_selected`].
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
pub enum DumpedKernels {
    /// All of them.
    Every,
    /// Those that match a rule; there is at least one. Sorted by their text, in which order
    /// MindSpore tries regexes, then names, then types.
    Listed(Vec<KernelEntry>),
    /// Those that the model marks.
    BySetDump,
}

/// One entry of `kernels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// The entry as JSON, without quotes and spaces: a backslash stands twice. Regexes with
    /// `name-regex(` and `)`; see [`KernelEntry::pattern`].
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
pub struct SavedParts {
    /// Its values.
    pub tensors: bool,
    /// These columns of its statistics, which may be none.
    pub statistics: Option<Vec<StatisticCategory>>,
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
pub(super) const REGEX_MARKS: (&str, &str) = ("name-regex(", ")");

impl MindSporeDumpPlan {
    /// Whether a device dumps. On the CPU every one does, whatever `support_device` says.
    pub fn is_device_selected(&self, device: u32) -> bool {
        // MindSpore does not look at the list on a CPU.
        self.target == TreeTarget::Cpu || self.devices.contains(&device)
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

impl KernelEntry {
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
