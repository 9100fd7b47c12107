//! The values of the keys.

use opscope_store::file_format::statistic_csv::StatisticCategory;

use super::reader::DeviceBackend;
use crate::dialect::mindspore::dump::{FileFormat, KernelEntry};
use crate::dialect::mindspore::iteration;

/// The settings that MindSpore uses after reading a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeSettings {
    /// Whether operators are dumped individually.
    pub is_e2e_enabled: bool,
    /// Whether whole graphs are dumped.
    pub is_async_enabled: bool,
    /// `enable`: whether it waits for each operator.
    pub is_sync: bool,
    /// `trans_flag`.
    pub trans_flag: bool,
    /// `save_kernel_args`.
    pub saves_kernel_args: bool,
    /// `stat_calc_mode`: whether the device computes statistics.
    pub is_stat_on_device: bool,
    /// `device_stat_precision_mode`: whether it uses high precision.
    pub is_stat_precise: bool,
    /// `sample_mode`.
    pub sample_mode: u32,
    /// `sample_num`.
    pub sample_num: u32,
    /// `dump_mode`.
    pub dump_mode: u32,
    /// `path`.
    pub path: String,
    /// `net_name`.
    pub net_name: String,
    /// `iteration`.
    pub iteration: String,
    /// `input_output`.
    pub input_output: u32,
    /// `kernels`, if `dump_mode` uses them.
    pub kernels: Vec<KernelEntry>,
    /// `support_device`, without duplicates.
    pub devices: Vec<u32>,
    /// `op_debug_mode`.
    pub op_debug_mode: u32,
    /// `file_format`.
    pub file_format: FileFormat,
    /// The same for dumps of whole graphs here, which also use it together with
    /// `e2e_dump_settings`.
    pub graph_file_format: FileFormat,
    /// `overflow_number`; 0 means no limit.
    pub overflow_number: u32,
    /// `saved_data`.
    pub saved_data: SavedData,
    /// `initial_iteration`.
    pub initial_iteration: u32,
    /// `statistic_category`, if statistics are saved.
    pub categories: Vec<StatisticCategory>,
}

/// The words of `saved_data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedData {
    /// Tensors.
    Tensor,
    /// Their statistics.
    Statistic,
    /// Both.
    Full,
}

impl SavedData {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            SavedData::Tensor => "tensor",
            SavedData::Statistic => "statistic",
            SavedData::Full => "full",
        }
    }

    /// Whether tensors are saved.
    pub fn has_tensors(self) -> bool {
        self != SavedData::Statistic
    }

    /// Whether statistics are.
    pub fn has_statistics(self) -> bool {
        self != SavedData::Tensor
    }
}

impl MindSporeSettings {
    /// Returns the default settings.
    pub(super) fn defaults(backend: DeviceBackend, has_e2e: bool) -> MindSporeSettings {
        let is_ascend = backend == DeviceBackend::Ascend;
        MindSporeSettings {
            // Without the section, all targets but Ascend use its defaults.
            is_e2e_enabled: has_e2e || !is_ascend,
            is_async_enabled: is_ascend && !has_e2e,
            is_sync: false,
            // The default of the section, which a file for whole graphs lacks.
            trans_flag: has_e2e || !is_ascend,
            saves_kernel_args: false,
            is_stat_on_device: false,
            is_stat_precise: true,
            sample_mode: 0,
            sample_num: 100,
            dump_mode: 0,
            path: String::new(),
            net_name: String::new(),
            iteration: iteration::ALL.to_owned(),
            input_output: 0,
            kernels: Vec::new(),
            devices: Vec::new(),
            op_debug_mode: 0,
            // CANN's format is the default of the graph's dump.
            file_format: FileFormat::Bin,
            graph_file_format: FileFormat::Bin,
            overflow_number: 0,
            saved_data: SavedData::Tensor,
            initial_iteration: 0,
            categories: Vec::new(),
        }
    }
}
