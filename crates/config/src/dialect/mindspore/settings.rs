//! The keys' values after MindSpore's checks and corrections, in its order.

mod common;
mod debug;
mod e2e;
mod reader;
mod recorded;
mod saved;
mod values;

pub(super) use common::KEYS as COMMON_KEYS;
pub(super) use debug::{FAILURES, OVERFLOW};
pub(super) use e2e::KEYS as E2E_KEYS;
pub(super) use reader::{DeviceBackend, SettingsReader};
pub use values::{MindSporeSettings, SavedData};

use super::section::{COMMON, ConfigSection, E2E, missing};
use crate::dialect::findings::{ConfigRefusal, IssueCollector};
use crate::json::JsonNode;
use crate::{ConfigIssue, Severity};

/// The message that MindSpore prints three times, a second apart.
const NO_E2E: &str = "For 'Dump', in the scenario where 'backend' is 'ms_backend', please configure \
                      'e2e_dump_setting', otherwise there will be no data.";

impl SettingsReader<'_> {
    /// Reads both sections.
    pub(super) fn read(
        &self,
        root: &JsonNode,
        findings: &mut IssueCollector,
    ) -> Result<MindSporeSettings, ConfigRefusal> {
        let e2e = ConfigSection::find(root, E2E);
        let mut settings = MindSporeSettings::defaults(self.backend, e2e.is_some());
        match &e2e {
            Some(section) => e2e::read(section, &mut settings, findings)?,
            None => findings.warn(ConfigIssue {
                vendor_text: Some(NO_E2E.to_owned()),
                ..ConfigIssue::of_file(Severity::Warning, root.place, self.without_e2e())
            }),
        }
        // The second section is read first: it determines which keys of this one are required.
        let Some(section) = ConfigSection::find(root, COMMON) else {
            return Err(findings.refuse(missing(root.place, "", COMMON)));
        };
        self.common(&section, &mut settings, findings)?;
        // MindSpore decides where to compute statistics once it knows whether tensors are saved as
        // well.
        self.stat_calc_mode(e2e.as_ref(), &mut settings, findings);
        self.statistic_category(&section, &mut settings, findings)?;
        // It comes last, as in MindSpore: devices that do not dump report errors in the rest, too.
        self.support_device(&section, &mut settings, findings)?;
        Ok(settings)
    }

    fn without_e2e(&self) -> String {
        let what = match self.backend {
            DeviceBackend::Cpu | DeviceBackend::Gpu => "its defaults are used",
            DeviceBackend::Ascend => "whole graphs are dumped, as at compilation level O2",
        };
        format!("there is no `{E2E}`: {what}")
    }

    /// Moves statistics from the device to the host where the device cannot compute them.
    fn stat_calc_mode(
        &self,
        e2e: Option<&ConfigSection<'_>>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) {
        let Some(item) = e2e.and_then(|section| section.item("stat_calc_mode")) else {
            return;
        };
        // Each check may already decide, so that only the first reason is reported.
        if settings.is_stat_on_device && settings.saved_data.has_tensors() {
            settings.is_stat_on_device = false;
            findings.warn(item.vendor_warning(
                "`device` is read as `host`, because tensors are saved",
                "When 'saved_data' is 'tensor' or 'full', the device cannot be used to calculate \
                 statistics and the 'stat_calc_mode' is forced to 'host'."
                    .to_owned(),
            ));
        }
        if settings.is_stat_on_device && self.is_graph {
            settings.is_stat_on_device = false;
            let message =
                "`device` is read as `host`: the host computes statistics of whole graphs";
            findings.warn(item.warning(message));
        }
        if settings.is_stat_on_device && self.backend != DeviceBackend::Ascend {
            settings.is_stat_on_device = false;
            let backend = self.backend.name();
            findings.warn(item.vendor_warning(
                format!("`device` is read as `host` on a {backend}"),
                format!(
                    "The 'device' option of 'stat_calc_mode' currently only supports the ascend \
                     platform. The current platform is {backend}, and the 'stat_calc_mode' option is \
                     forcibly set to 'host'."
                ),
            ));
        }
    }

    /// Whether this device dumps.
    fn support_device(
        &self,
        section: &ConfigSection<'_>,
        settings: &mut MindSporeSettings,
        findings: &mut IssueCollector,
    ) -> Result<(), ConfigRefusal> {
        let device = self.env.device_id;
        let item = section.required("support_device", findings)?;
        if self.backend == DeviceBackend::Cpu || settings.devices.contains(&device) {
            return Ok(());
        }
        settings.is_e2e_enabled = false;
        settings.is_async_enabled = false;
        findings.warn(item.vendor_warning(
            format!("nothing is dumped on device {device}, which is not in the list"),
            format!("Dump is not enabled. device_id:{device} not support"),
        ));
        Ok(())
    }
}
