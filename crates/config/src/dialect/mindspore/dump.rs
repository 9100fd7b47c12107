//! The dump of a configuration.

use std::path::PathBuf;

use opscope_capture::{Purpose, SlotSides, Steps};
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::tree::mindspore::TreeTarget;

/// A dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeDumpPlan {
    /// The target whose directories and names are used.
    pub target: TreeTarget,
    /// Absolute directory of the whole dump. It may not exist yet.
    pub path: PathBuf,
    /// Name of the network, used as a directory.
    pub net_name: String,
    /// The selected iterations, numbered as in directories: from `initial_iteration` on.
    pub iteration: Steps,
    /// Number of the first iteration.
    pub initial_iteration: u64,
    /// The sides of an operator.
    pub sides: SlotSides,
    /// The property by which operators are selected: [`Purpose::Values`], [`Purpose::Overflow`] or
    /// [`Purpose::Failures`].
    pub purpose: Purpose,
    /// The selected operators and parameters.
    pub kernels: DumpedKernels,
    /// The parts of a tensor that are written.
    pub saved: SavedParts,
    /// Maximum number of overflowing operators in the whole process; `None` means all.
    pub overflow_number: Option<u64>,
    /// The form of tensor files of whole graphs on Ascend; elsewhere they are npy.
    pub file_format: FileFormat,
    /// How a device computes the statistics; `None` means like the host.
    pub device_precision: Option<DevicePrecision>,
    /// Whether tensors are written in the host's layout rather than the device's.
    pub trans_flag: bool,
    /// Number of leading elements of a tensor to keep; `None` means all.
    pub n_samples: Option<u64>,
    /// Whether arguments of operators are written too.
    pub saves_kernel_args: bool,
    /// The devices that dump; see [`MindSporeDumpPlan::is_device_selected`].
    pub devices: Vec<u32>,
    /// The text of the configuration.
    pub text: String,
}

/// Precision of statistics on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePrecision {
    /// Means and norms in float32.
    High,
    /// Everything in the tensor's dtype.
    Low,
}

/// Which operators and parameters are dumped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpedKernels {
    /// All of them.
    Every,
    /// Those that match a rule; there is at least one. Sorted by text, in which order MindSpore
    /// tries regexes, then names, then types.
    Listed(Vec<KernelEntry>),
    /// Those that the model marks.
    BySetDump,
}

/// One entry of `kernels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// The entry as JSON, without quotes and spaces: backslashes are doubled. Regexes include
    /// `name-regex(` and `)`; see [`KernelEntry::pattern`].
    pub text: String,
    /// How it is matched.
    pub kind: RuleKind,
}

/// How an entry of `kernels` is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// Against the full name, exactly.
    Name,
    /// Against a part of the operator's type, ignoring case.
    Type,
    /// Against the whole full name, as an ECMAScript regular expression.
    Regex,
}

/// The parts of a tensor that are written; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedParts {
    /// Its values.
    pub tensors: bool,
    /// These columns of its statistics, possibly none.
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

/// The markers before and after a regular expression in `kernels`.
pub(super) const REGEX_MARKS: (&str, &str) = ("name-regex(", ")");

impl MindSporeDumpPlan {
    /// Whether a device dumps. On the CPU every device does, regardless of `support_device`.
    pub fn is_device_selected(&self, device: u32) -> bool {
        // MindSpore ignores the list on a CPU.
        self.target == TreeTarget::Cpu || self.devices.contains(&device)
    }

    /// A short name of the dump's subject.
    pub fn mode_name(&self) -> &'static str {
        match self.purpose {
            Purpose::Values | Purpose::Watch => "operator",
            Purpose::Overflow | Purpose::NonFinite => "overflow",
            Purpose::Failures(_) => "exception",
        }
    }
}

impl KernelEntry {
    /// The text to match: of a regex the text in the parentheses.
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
