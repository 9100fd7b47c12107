//! The reader of a configuration, and the device that it reads for.

use opscope_store::tree::mindspore::TreeTarget;

use crate::Environment;

/// The kinds of devices that MindSpore tells apart when it reads a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialect::mindspore) enum Backend {
    Cpu,
    Gpu,
    Ascend,
}

/// Reads a configuration as MindSpore does on one kind of device.
pub(in crate::dialect::mindspore) struct Reader<'a> {
    pub(in crate::dialect::mindspore) backend: Backend,
    /// Whether whole graphs are to be dumped, whatever MindSpore would make of the file.
    pub(in crate::dialect::mindspore) is_graph: bool,
    pub(in crate::dialect::mindspore) env: &'a Environment,
    /// Whether `dump_mode` 2 is taken on every target.
    pub(in crate::dialect::mindspore) is_lenient: bool,
}

impl Backend {
    pub(in crate::dialect::mindspore) fn of(target: TreeTarget) -> Backend {
        match target {
            TreeTarget::Cpu => Backend::Cpu,
            TreeTarget::Gpu => Backend::Gpu,
            TreeTarget::AscendKernels | TreeTarget::AscendGraph | TreeTarget::GraphEngine => {
                Backend::Ascend
            }
        }
    }

    pub(in crate::dialect::mindspore) fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "CPU",
            Backend::Gpu => "GPU",
            Backend::Ascend => "Ascend",
        }
    }
}
