//! The keys' values after MindSpore's checks, in its order, with what it changes.

mod common;
mod debug;
mod e2e;
mod recorded;
mod saved;

use opscope_store::file_format::statistic_csv::Category;
use opscope_store::tree::mindspore::Target;

pub(super) use common::KEYS as COMMON_KEYS;
pub(super) use debug::{FAILURES, OVERFLOW};
pub(super) use e2e::KEYS as E2E_KEYS;

use super::section::{COMMON, E2E, Item, Section, missing};
use super::{FileFormat, KernelRule, iteration, kernels};
use crate::dialect::findings::{Findings, Refused};
use crate::json::Node;
use crate::{Environment, Issue, Severity};

/// The settings that MindSpore has in force once it has read a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether operators are dumped one by one.
    pub is_e2e_enabled: bool,
    /// Whether whole graphs are.
    pub is_async_enabled: bool,
    /// `enable`: whether it waits for each operator.
    pub is_sync: bool,
    /// `trans_flag`.
    pub trans_flag: bool,
    /// `save_kernel_args`.
    pub saves_kernel_args: bool,
    /// `stat_calc_mode`: whether the device computes statistics.
    pub is_stat_on_device: bool,
    /// `device_stat_precision_mode`: whether it computes them with high precision.
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
    /// `kernels`, if `dump_mode` asked for them.
    pub kernels: Vec<KernelRule>,
    /// `support_device`, without duplicates.
    pub devices: Vec<u32>,
    /// `op_debug_mode`.
    pub op_debug_mode: u32,
    /// `file_format`.
    pub file_format: FileFormat,
    /// The same for dumps of whole graphs here, for which it counts beside `e2e_dump_settings` too.
    pub graph_file_format: FileFormat,
    /// `overflow_number`; 0 is no limit.
    pub overflow_number: u32,
    /// `saved_data`.
    pub saved_data: SavedData,
    /// `initial_iteration`.
    pub initial_iteration: u32,
    /// `statistic_category`, if statistics are saved.
    pub categories: Vec<Category>,
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

/// The kinds of devices that MindSpore tells apart when it reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    Cpu,
    Gpu,
    Ascend,
}

/// Whose answers are given, and to what else.
pub(super) struct Reader<'a> {
    pub(super) backend: Backend,
    /// Whether whole graphs are to be dumped, whatever MindSpore would make of the file.
    pub(super) is_graph: bool,
    pub(super) env: &'a Environment,
    /// Whether `dump_mode` 2 is taken on every target.
    pub(super) is_lenient: bool,
}

/// The message that MindSpore prints three times, a second apart.
const NO_E2E: &str = "For 'Dump', in the scenario where 'backend' is 'ms_backend', please configure \
                      'e2e_dump_setting', otherwise there will be no data.";

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

impl Backend {
    pub(super) fn of(target: Target) -> Backend {
        match target {
            Target::Cpu => Backend::Cpu,
            Target::Gpu => Backend::Gpu,
            Target::AscendKernels | Target::AscendGraph | Target::GraphEngine => Backend::Ascend,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "CPU",
            Backend::Gpu => "GPU",
            Backend::Ascend => "Ascend",
        }
    }
}

impl Settings {
    /// Returns the settings in force before anything is read.
    fn defaults(backend: Backend, has_e2e: bool) -> Settings {
        let is_ascend = backend == Backend::Ascend;
        Settings {
            // Without the section, all but Ascend take it with its defaults.
            is_e2e_enabled: has_e2e || !is_ascend,
            is_async_enabled: is_ascend && !has_e2e,
            is_sync: false,
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
            file_format: FileFormat::Bin,
            graph_file_format: FileFormat::Bin,
            overflow_number: 0,
            saved_data: SavedData::Tensor,
            initial_iteration: 0,
            categories: Vec::new(),
        }
    }
}

impl Reader<'_> {
    /// Reads both sections.
    pub(super) fn read(&self, root: &Node, findings: &mut Findings) -> Result<Settings, Refused> {
        let e2e = Section::find(root, E2E);
        let mut settings = Settings::defaults(self.backend, e2e.is_some());
        match &e2e {
            Some(section) => e2e::read(section, &mut settings, findings)?,
            None => findings.warn(Issue {
                vendor_text: Some(NO_E2E.to_owned()),
                ..Issue::of_file(Severity::Warning, root.place, self.without_e2e())
            }),
        }
        let Some(section) = Section::find(root, COMMON) else {
            return Err(findings.refuse(missing(root.place, "", COMMON)));
        };
        self.common(&section, &mut settings, findings)?;
        self.stat_calc_mode(e2e.as_ref(), &mut settings, findings);
        self.statistic_category(&section, &mut settings, findings)?;
        self.support_device(&section, &mut settings, findings)?;
        Ok(settings)
    }

    fn without_e2e(&self) -> String {
        let what = match self.backend {
            Backend::Cpu | Backend::Gpu => "its defaults are used",
            Backend::Ascend => "whole graphs are dumped, as at compilation level O2",
        };
        format!("there is no `{E2E}`: {what}")
    }

    /// Turns statistics on the device into ones on the host where the device makes none.
    fn stat_calc_mode(
        &self,
        e2e: Option<&Section<'_>>,
        settings: &mut Settings,
        findings: &mut Findings,
    ) {
        let Some(item) = e2e.and_then(|section| section.item("stat_calc_mode")) else {
            return;
        };
        if settings.is_stat_on_device && settings.saved_data.has_tensors() {
            settings.is_stat_on_device = false;
            findings.warn(item.vendor_warning(
                "`device` is taken for `host`, since tensors are saved",
                "When 'saved_data' is 'tensor' or 'full', the device cannot be used to calculate \
                 statistics and the 'stat_calc_mode' is forced to 'host'."
                    .to_owned(),
            ));
        }
        if settings.is_stat_on_device && self.is_graph {
            settings.is_stat_on_device = false;
            let message = "`device` is taken for `host`: statistics of whole graphs are the host's";
            findings.warn(item.warning(message));
        }
        if settings.is_stat_on_device && self.backend != Backend::Ascend {
            settings.is_stat_on_device = false;
            let backend = self.backend.name();
            findings.warn(item.vendor_warning(
                format!("`device` is taken for `host` on a {backend}"),
                format!(
                    "The 'device' option of 'stat_calc_mode' currently only supports the ascend \
                     platform. The current platform is {backend}, and the 'stat_calc_mode' option is \
                     forcibly set to 'host'."
                ),
            ));
        }
    }

    /// Whether this device is one of those that dump.
    fn support_device(
        &self,
        section: &Section<'_>,
        settings: &mut Settings,
        findings: &mut Findings,
    ) -> Result<(), Refused> {
        let device = self.env.device_id;
        let item = section.required("support_device", findings)?;
        if self.backend == Backend::Cpu || settings.devices.contains(&device) {
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
