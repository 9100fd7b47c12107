//! The reader of a configuration, and the device that it reads for.

use opscope_store::tree::mindspore::TreeTarget;

use crate::ConfigEnvironment;

/// The kinds of devices that MindSpore tells apart when it reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialect::mindspore) enum DeviceBackend {
    Cpu,
    Gpu,
    Ascend,
}

/// Reads a configuration as MindSpore does on one kind of device.
pub(in crate::dialect::mindspore) struct SettingsReader<'a> {
    pub(in crate::dialect::mindspore) backend: DeviceBackend,
    /// Whether whole graphs are to be dumped, whatever MindSpore would make of the file.
    pub(in crate::dialect::mindspore) is_graph: bool,
    pub(in crate::dialect::mindspore) env: &'a ConfigEnvironment,
    /// Whether `dump_mode` 2 is taken on every target.
    pub(in crate::dialect::mindspore) is_lenient: bool,
}

impl DeviceBackend {
    pub(in crate::dialect::mindspore) fn for_target(target: TreeTarget) -> DeviceBackend {
        match target {
            TreeTarget::Cpu => DeviceBackend::Cpu,
            TreeTarget::Gpu => DeviceBackend::Gpu,
            TreeTarget::AscendKernels | TreeTarget::AscendGraph | TreeTarget::GraphEngine => {
                DeviceBackend::Ascend
            }
        }
    }

    pub(in crate::dialect::mindspore) fn name(self) -> &'static str {
        match self {
            DeviceBackend::Cpu => "CPU",
            DeviceBackend::Gpu => "GPU",
            DeviceBackend::Ascend => "Ascend",
        }
    }
}
