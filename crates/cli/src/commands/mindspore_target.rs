//! The devices for which MindSpore reads a configuration.

use opscope_store::tree::mindspore;

/// Hardware and compilation that MindSpore runs with.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum MindSporeTarget {
    /// A CPU
    Cpu,
    /// A GPU
    Gpu,
    /// Ascend, compiled at level O0
    #[value(name = "ascend-o0")]
    AscendO0,
    /// Ascend, compiled at level O1
    #[value(name = "ascend-o1")]
    AscendO1,
    /// Ascend, compiled at level O2
    #[value(name = "ascend-o2")]
    AscendO2,
    /// Ascend, by the graph engine's own dump
    Ge,
}

impl From<MindSporeTarget> for mindspore::Target {
    fn from(target: MindSporeTarget) -> mindspore::Target {
        match target {
            MindSporeTarget::Cpu => mindspore::Target::Cpu,
            MindSporeTarget::Gpu => mindspore::Target::Gpu,
            MindSporeTarget::AscendO0 | MindSporeTarget::AscendO1 => {
                mindspore::Target::AscendKernels
            }
            MindSporeTarget::AscendO2 => mindspore::Target::AscendGraph,
            MindSporeTarget::Ge => mindspore::Target::GraphEngine,
        }
    }
}
