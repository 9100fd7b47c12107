//! Settings with MindSpore's names.

use opscope_store::file_format::statistic_csv::StatisticCategory;
use serde_json::{Value, json};

use super::values::MindSporeSettings;
use crate::dialect::mindspore::dump::FileFormat;

impl MindSporeSettings {
    /// The settings as one object, with the names of MindSpore's parser.
    pub fn json(&self) -> Value {
        let kernels = self.kernels.iter().map(|rule| rule.text.as_str());
        let categories = self.categories.iter().map(|category| match category {
            StatisticCategory::Sha1 => "sha1",
            other => other.name(),
        });
        json!({
            "async_dump_enabled": self.is_async_enabled,
            "device_stat_precision_mode": if self.is_stat_precise { "high" } else { "low" },
            "dump_mode": self.dump_mode,
            "e2e_dump_enabled": self.is_e2e_enabled,
            "e2e_sync_dump": self.is_sync,
            "file_format": if self.file_format == FileFormat::Npy { "npy" } else { "bin" },
            "initial_iteration": self.initial_iteration,
            "input_output": self.input_output,
            "iteration": self.iteration,
            "kernels": kernels.collect::<Vec<_>>(),
            "net_name": self.net_name,
            "op_debug_mode": self.op_debug_mode,
            "overflow_number": self.overflow_number,
            "path": self.path,
            "sample_mode": self.sample_mode,
            "sample_num": self.sample_num,
            "save_kernel_args": self.saves_kernel_args,
            "saved_data": self.saved_data.name(),
            "stat_calc_mode": if self.is_stat_on_device { "device" } else { "host" },
            "statistic_category": categories.collect::<Vec<_>>(),
            "trans_flag": self.trans_flag,
        })
    }
}
