//! `e2e_dump_settings`.

use super::values::MindSporeSettings;
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::dialect::mindspore::section::ConfigSection;

/// The keys, in the order in which they are read.
pub(crate) const KEYS: [&str; 7] = [
    "enable",
    "trans_flag",
    "save_kernel_args",
    "stat_calc_mode",
    "device_stat_precision_mode",
    "sample_mode",
    "sample_num",
];

pub(super) fn read(
    section: &ConfigSection<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    if let Some(item) = section.item("enable") {
        settings.is_sync = item.boolean(findings)?;
    }
    if let Some(item) = section.item("trans_flag") {
        settings.trans_flag = item.boolean(findings)?;
    }
    if let Some(item) = section.item("save_kernel_args") {
        settings.saves_kernel_args = item.boolean(findings)?;
    }
    settings.is_stat_on_device = word(section, "stat_calc_mode", ["host", "device"], findings)?;
    let words = ["high", "low"];
    settings.is_stat_precise = !word(section, "device_stat_precision_mode", words, findings)?;
    samples(section, settings, findings)
}

/// Whether the second of two words is given; the first is the default.
fn word(
    section: &ConfigSection<'_>,
    name: &'static str,
    [default, other]: [&str; 2],
    findings: &mut IssueCollector,
) -> Result<bool, ConfigRefusal> {
    let Some(item) = section.item(name) else {
        return Ok(false);
    };
    let found = item.text(findings)?;
    if found == default || found == other {
        return Ok(found == other);
    }
    // MindSpore's message uses the second name for every key.
    let text = format!(
        "Dump Json parse failed, '{name}' only supports '{default}' or '{other}', but got: {found}. \
         Please set 'stat_cal_mode' to '{default}' or '{other}'"
    );
    let expected = format!("{default}/{other}");
    Err(findings.refuse(item.unexpected(found, &expected, text)))
}

fn samples(
    section: &ConfigSection<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let number = section.item("sample_num");
    if let Some(item) = section.item("sample_mode") {
        settings.sample_mode = item.unsigned(findings)?;
        if settings.sample_mode > 1 {
            let text = "Dump Json Parse Failed. sample_mode should be 0, 1".to_owned();
            let found = settings.sample_mode.to_string();
            return Err(findings.refuse(item.unexpected(&found, "0/1", text)));
        }
    }
    let Some(item) = number else {
        return Ok(());
    };
    // The value is ignored then, so a wrong one is not an error.
    if settings.sample_mode == 0 {
        findings.warn(item.warning("it has no effect unless `sample_mode` is 1"));
        return Ok(());
    }
    // MindSpore's message names the other key here.
    settings.sample_num = item.unsigned_reported_as("sample_mode", findings)?;
    if settings.sample_num == 0 {
        let text = "Dump Json Parse Failed. sample_num should be greater than 0".to_owned();
        return Err(findings.refuse(item.unexpected("0", "1 or more", text)));
    }
    Ok(())
}
