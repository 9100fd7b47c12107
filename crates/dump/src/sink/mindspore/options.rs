//! Options of a dump in MindSpore's form.

use std::path::PathBuf;

use opscope_capture::{Purpose, SlotSides};
use opscope_config::dialect::mindspore::{DevicePrecision, FileFormat, MindSporeDumpPlan};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::file_format::zstd;
use opscope_store::record::SlotSide;
use opscope_store::tree::mindspore::TreeTarget;

use crate::sink::FileSharing;

/// Which files to write, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeOptions {
    /// Whose tree.
    pub target: TreeTarget,
    /// The root directory of the dump.
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
    pub statistics: Option<Vec<StatisticCategory>>,
    /// Statistics as a device computes them: without counts, some types without values. `None` is
    /// the host's way.
    pub device_statistics: Option<DevicePrecision>,
    /// How many of the first elements are kept of a tensor that has more.
    pub n_samples: Option<u64>,
    /// Whether tensors use the host's layout.
    pub has_host_layout: bool,
    /// Whether whole graphs have one file for each operator instead of one for each tensor.
    pub is_bin: bool,
    /// Which tensors share a file.
    pub dedup: FileSharing,
    /// How hard array files are compressed, if they are to be. MindSpore's are not.
    pub compression: Option<zstd::CompressionLevel>,
    /// Whether the attributes of operators are written.
    pub has_kernel_args: bool,
    /// Whether only parameters are written, so that no execution is listed.
    pub has_parameters_only: bool,
    /// The mode passed to the runtime below whole graphs.
    pub runtime: RuntimeMode,
    /// The configuration, byte for byte.
    pub configuration: Vec<u8>,
    /// Local time, `YYYYMMDDhhmmss`.
    pub time: String,
    /// Permissions.
    pub modes: PermissionModes,
}

impl MindSporeOptions {
    /// The options of a dump that a configuration asks for. `time` names directories of whole
    /// graphs, `YYYYMMDDhhmmss`.
    pub fn new(
        dump: MindSporeDumpPlan,
        rank: u32,
        modes: PermissionModes,
        time: String,
    ) -> MindSporeOptions {
        MindSporeOptions {
            has_parameters_only: dump.has_parameters_only(),
            target: dump.target,
            path: dump.path,
            rank,
            net_name: dump.net_name,
            first_iteration: dump.initial_iteration,
            has_tensors: dump.saved.tensors,
            statistics: dump.saved.statistics,
            device_statistics: dump.device_precision,
            n_samples: dump.n_samples,
            has_host_layout: dump.trans_flag,
            is_bin: dump.file_format == FileFormat::Bin,
            dedup: FileSharing::default(),
            compression: None,
            has_kernel_args: dump.saves_kernel_args,
            runtime: match dump.purpose {
                Purpose::Values | Purpose::Watch => RuntimeMode::Values(side_word(dump.sides)),
                Purpose::Overflow | Purpose::NonFinite => RuntimeMode::Overflow,
                Purpose::Failures(_) => RuntimeMode::Exceptions,
            },
            configuration: dump.text.into_bytes(),
            time,
            modes,
        }
    }

    /// Threads that may write: rows of statistics keep their order with one only.
    pub fn n_writers_max(&self) -> usize {
        match self.statistics {
            Some(_) => 1,
            None => usize::MAX,
        }
    }

    /// Whether a dump that was begun with these options can go on with `other`: they ask for the
    /// same files in the same place, whatever their text and time.
    pub fn is_same_dump(&self, other: &MindSporeOptions) -> bool {
        let other = MindSporeOptions {
            configuration: self.configuration.clone(),
            time: self.time.clone(),
            ..other.clone()
        };
        *self == other
    }
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

/// The keyword that selects the sides the runtime writes.
fn side_word(sides: SlotSides) -> &'static str {
    match sides {
        SlotSides::Both => "all",
        SlotSides::Inputs => SlotSide::Input.name(),
        SlotSides::Outputs => SlotSide::Output.name(),
    }
}
