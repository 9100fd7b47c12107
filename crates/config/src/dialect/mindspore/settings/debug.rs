//! `op_debug_mode`, and related settings.

use super::reader::{DeviceBackend, SettingsReader};
use super::values::MindSporeSettings;
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::dialect::mindspore::iteration;
use crate::dialect::mindspore::section::{ConfigSection, SectionItem};

/// `op_debug_mode`: operators that overflow.
pub(crate) const OVERFLOW: u32 = 3;
/// `op_debug_mode`: operators that fail.
pub(crate) const FAILURES: u32 = 4;

impl SettingsReader<'_> {
    pub(super) fn op_debug_mode(
        &self,
        item: &SectionItem<'_>,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let mode = item.unsigned(findings)?;
        settings.op_debug_mode = mode;
        match mode {
            0 | OVERFLOW => {}
            // 1 and 2 once selected two kinds of overflows, which are no longer distinguished.
            1 | 2 => {
                findings.warn(item.warning(format!("`{mode}` is read as {OVERFLOW}")));
                settings.op_debug_mode = OVERFLOW;
            }
            FAILURES => self.failures(item, settings, findings),
            _ => {
                let text = "Dump Json Parse Failed. op_debug_mode should be 0, 3, 4".to_owned();
                let found = mode.to_string();
                return Err(findings.refuse(item.unexpected(&found, "0/3/4", text)));
            }
        }
        // Overflowing or failing operators are not known in advance, so rules about names would
        // only hide some.
        if settings.op_debug_mode != 0 && settings.dump_mode != 0 {
            let found = settings.dump_mode;
            settings.dump_mode = 0;
            let place = section.item("dump_mode").unwrap_or_else(|| item.clone());
            findings.warn(place.vendor_warning(
                format!("`{found}` is read as 0, because `op_debug_mode` is not 0"),
                "Overflow dump or exception dump do not support specify kernels, the dump_mode is \
                 set to 0"
                    .to_owned(),
            ));
        }
        if settings.op_debug_mode == OVERFLOW {
            overflow(section, item, settings, findings);
        }
        Ok(())
    }

    fn failures(
        &self,
        item: &SectionItem<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) {
        if self.backend != DeviceBackend::Ascend {
            let backend = self.backend.name();
            findings.warn(item.vendor_warning(
                format!("no operator is dumped on a {backend}"),
                format!(
                    "Abnormal dump is not supported on {backend} backend, and none operator data \
                     would be saved when abnormal dump is enabled."
                ),
            ));
        }
        if settings.is_e2e_enabled && settings.iteration != iteration::ALL {
            iteration::ALL.clone_into(&mut settings.iteration);
            findings.warn(item.vendor_warning(
                "`iteration` is read as `all`, because `op_debug_mode` is 4",
                "For e2e exception dump, it is not support to specify iteration, set iteration to \
                 all."
                    .to_owned(),
            ));
        }
        if settings.is_e2e_enabled && settings.sample_mode != 0 {
            settings.sample_mode = 0;
            findings.warn(item.vendor_warning(
                "`sample_mode` is read as 0, because `op_debug_mode` is 4",
                "For e2e exception dump, it is not support to sample dump, set sample_mode to 0, the \
                 whole tensor would be saved when exception occur."
                    .to_owned(),
            ));
        }
    }
}

/// Overrides, with a warning, settings that dumps of overflows determine.
fn overflow(
    section: &ConfigSection<'_>,
    item: &SectionItem<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) {
    if settings.input_output != 0 {
        settings.input_output = 0;
        // A value that was never written is reported at the setting that changes it.
        let place = section.item("input_output").unwrap_or_else(|| item.clone());
        findings.warn(place.vendor_warning(
            "it is read as 0, because `op_debug_mode` is 3",
            "When the `op_debug` mode is set to 3, `input_output` should be set to 0.".to_owned(),
        ));
    }
    if settings.is_stat_on_device && !settings.is_sync {
        settings.is_stat_on_device = false;
        findings.warn(item.vendor_warning(
            "`stat_calc_mode` is read as `host`, because `op_debug_mode` is 3 and `enable` is false",
            "When op_debug_mode is set to 3 and e2e_enable is set to false,stat_calc_mode has been be \
             set to 'host'."
                .to_owned(),
        ));
    }
}

pub(super) fn read_overflow_number(
    section: &ConfigSection<'_>,
    settings: &mut MindSporeSettings,
    findings: &mut IssueCollector,
) -> Result<(), ConfigRefusal> {
    let Some(item) = section.item("overflow_number") else {
        return Ok(());
    };
    if settings.op_debug_mode != OVERFLOW {
        let text = "overflow_number only need to be set when op_debug_mode is 3.".to_owned();
        let message = "it is allowed only if `op_debug_mode` is 3";
        return Err(findings.refuse(item.error(message, text)));
    }
    settings.overflow_number = item.unsigned(findings)?;
    Ok(())
}
