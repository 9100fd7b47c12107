//! The reader of a configuration, and its target device.

use opscope_store::tree::mindspore::TreeTarget;

use crate::ConfigEnvironment;

/// The kinds of devices that MindSpore distinguishes in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceBackend {
    Cpu,
    Gpu,
    Ascend,
}

/// Reads a configuration like MindSpore on one kind of device.
pub(crate) struct SettingsReader<'a> {
    pub(crate) backend: DeviceBackend,
    /// Whether to dump whole graphs, regardless of MindSpore's choice.
    pub(crate) is_graph: bool,
    pub(crate) env: &'a ConfigEnvironment,
    /// Whether `dump_mode` 2 is accepted on every target.
    pub(crate) is_lenient: bool,
}

impl DeviceBackend {
    pub(crate) fn for_target(target: TreeTarget) -> DeviceBackend {
        match target {
            TreeTarget::Cpu => DeviceBackend::Cpu,
            TreeTarget::Gpu => DeviceBackend::Gpu,
            TreeTarget::AscendKernels | TreeTarget::AscendGraph | TreeTarget::GraphEngine => {
                DeviceBackend::Ascend
            }
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            DeviceBackend::Cpu => "CPU",
            DeviceBackend::Gpu => "GPU",
            DeviceBackend::Ascend => "Ascend",
        }
    }
}
