//! `saved_data` and `statistic_category`.

use opscope_store::file_format::statistic_csv::StatisticCategory;

use super::debug::FAILURES;
use super::reader::{DeviceBackend, SettingsReader};
use super::values::{MindSporeSettings, SavedData};
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::dialect::mindspore::dump::FileFormat;
use crate::dialect::mindspore::section::ConfigSection;
use crate::json::JsonValue;

/// Names of categories, as MindSpore lists them.
const CATEGORY_NAMES: &str = "['max', 'min', 'avg', 'count', 'negative zero count', 'positive zero \
                              count', 'nan count', 'negative inf count', 'positive inf count', 'zero \
                              count', 'md5', 'l2norm', 'hash', 'hash:sha1', 'hash:md5']";
/// Those that devices compute.
const DEVICE_CATEGORY_NAMES: &str = "['max', 'min', 'avg', 'l2norm']";
impl SettingsReader<'_> {
    pub(super) fn saved_data(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let Some(item) = section.item("saved_data") else {
            return Ok(());
        };
        let word = item.text(findings)?;
        let found = [SavedData::Tensor, SavedData::Statistic, SavedData::Full]
            .into_iter()
            .find(|saved| saved.name() == word);
        // A dump of failures kernel by kernel saves tensors regardless of this key, so no word is
        // an error.
        let is_replaced = settings.is_e2e_enabled && settings.op_debug_mode == FAILURES;
        if is_replaced && found != Some(SavedData::Tensor) {
            findings.warn(
                item.vendor_warning(
                    "it is read as `tensor`, because `op_debug_mode` is 4",
                    "E2e exception dump only support save tensor, saved_data is set to tensor"
                        .to_owned(),
                ),
            );
            return Ok(());
        }
        let Some(saved) = found else {
            let text = format!(
                "Dump Json parse failed, saved_data only supports statistic, tensor, or full, but \
                 got: {word}. Please set saved_data to either statistic, tensor, or full"
            );
            return Err(findings.refuse(item.unexpected(word, "full/statistic/tensor", text)));
        };
        settings.saved_data = saved;
        if !saved.has_statistics() {
            return Ok(());
        }
        if self.backend == DeviceBackend::Cpu {
            let text = "Dump Json parse failed, storing statistic dump is only supported on GPU and \
                        Ascend, please set saved_data to tensor or use a GPU or Ascend device";
            let message = "MindSpore saves statistics on a GPU and on Ascend, not on a CPU";
            let mut issue = item.error(message, text.to_owned());
            issue.found = Some(word.to_owned());
            issue.expected = Some("tensor".to_owned());
            return Err(findings.refuse(issue));
        }
        let is_npy = settings.file_format == FileFormat::Npy;
        // Whole graphs in CANN's format have no file for statistics.
        if self.backend == DeviceBackend::Ascend && !settings.is_e2e_enabled && !is_npy {
            let text = "Dump Json parse failed, storing statistic dump is only supported on Ascend \
                        when file_format is set to 'npy'.";
            let message = "statistics need a `file_format` of `npy`";
            return Err(findings.refuse(item.error(message, text.to_owned())));
        }
        Ok(())
    }

    /// Reads the columns, if statistics are saved.
    pub(super) fn statistic_category(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let item = section.item("statistic_category");
        if !settings.saved_data.has_statistics() {
            if let Some(item) = item {
                findings.warn(item.warning("it has no effect: no statistics are saved"));
            }
            return Ok(());
        }
        let Some(item) = item else {
            settings.categories = StatisticCategory::DEFAULT.to_vec();
            return Ok(());
        };
        let (mut unknown, mut host_only) = (String::new(), String::new());
        for (i, node) in item.array(findings)?.iter().enumerate() {
            let entry = item.element(i, node);
            let JsonValue::String(name) = &node.value else {
                return Err(findings.refuse(entry.wrong_element("string")));
            };
            match StatisticCategory::from_name(name) {
                None => unknown += &format!("{name}, "),
                Some(category) if settings.is_stat_on_device && !category.is_on_device() => {
                    host_only += &format!("{name}, ");
                }
                Some(category) if settings.categories.contains(&category) => {
                    findings.warn(entry.warning(format!("`{name}` appears twice")));
                    // Devices write such a column twice.
                    if settings.is_stat_on_device {
                        settings.categories.push(category);
                    }
                }
                Some(category) => settings.categories.push(category),
            }
        }
        if !host_only.is_empty() {
            let names = host_only.trim_end_matches(", ");
            findings.warn(item.vendor_warning(
                format!("devices do not compute {names}, which is ignored"),
                format!(
                    "The following statistic_category only support to be compute on host:\
                     {host_only}the valid statistic_category on device are as follows:\
                     {DEVICE_CATEGORY_NAMES}"
                ),
            ));
        }
        // Unknown names are collected, because MindSpore prints all of them in one line.
        if unknown.is_empty() {
            return Ok(());
        }
        let text = format!(
            "The following statistic_category is invalid:{unknown}the valid statistic_category are as \
             follows:{CATEGORY_NAMES}"
        );
        let found = unknown.trim_end_matches(", ");
        let expected = CATEGORY_NAMES.trim_matches(['[', ']']);
        Err(findings.refuse(item.unexpected(found, expected, text)))
    }
}
