//! Options of a dump in MindSpore's form.

use std::path::PathBuf;

use opscope_store::atomic_file::Modes;
use opscope_store::file_format::statistic_csv::Category;
use opscope_store::file_format::zstd;
use opscope_store::tree::mindspore::Target;

use crate::sink::Dedup;

/// Which files to write, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeOptions {
    /// Whose tree.
    pub target: Target,
    /// The directory below which everything goes.
    pub path: PathBuf,
    /// The rank.
    pub rank: u32,
    /// Name of the network.
    pub net_name: String,
    /// Number of the first execution of a model.
    pub first_iteration: u64,
    /// Whether values are written.
    pub has_tensors: bool,
    /// Columns of statistics, if there are to be any.
    pub statistics: Option<Vec<Category>>,
    /// Statistics as a device computes them: without counts, some types without values. `None` is
    /// the host's way.
    pub device_statistics: Option<DevicePrecision>,
    /// How many of the first elements are kept of a tensor that has more.
    pub n_samples: Option<u64>,
    /// Whether tensors go by the layout that the host gives them.
    pub has_host_layout: bool,
    /// Whether whole graphs have one file for each operator instead of one for each tensor.
    pub is_bin: bool,
    /// Which tensors share a file.
    pub dedup: Dedup,
    /// How hard array files are compressed, if they are to be. MindSpore's are not.
    pub compression: Option<zstd::Level>,
    /// Whether the attributes of operators are written.
    pub has_kernel_args: bool,
    /// Whether only parameters are written, so that no execution is listed.
    pub has_parameters_only: bool,
    /// The mode that the runtime below whole graphs is told.
    pub runtime: RuntimeMode,
    /// The configuration, byte for byte.
    pub configuration: Vec<u8>,
    /// Local time, `YYYYMMDDhhmmss`.
    pub time: String,
    /// Permissions.
    pub modes: Modes,
}

impl MindSporeOptions {
    /// Whether a dump that was begun with these options can go on with `other`: they ask for the same
    /// files in the same place, whatever their text and time.
    pub fn is_same_dump(&self, other: &MindSporeOptions) -> bool {
        let other = MindSporeOptions {
            configuration: self.configuration.clone(),
            time: self.time.clone(),
            ..other.clone()
        };
        *self == other
    }
}

/// How exactly a device computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePrecision {
    /// Means and norms in float32.
    High,
    /// Everything in the tensor's own type.
    Low,
}

/// The mode of a dump of whole graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeMode {
    /// Values; `all`, `input` or `output`.
    Values(&'static str),
    /// Overflow.
    Overflow,
    /// Operators that fail.
    Exceptions,
}
