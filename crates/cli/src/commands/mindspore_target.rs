//! MindSpore's backends, which decide how it reads a configuration.

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

impl From<MindSporeTarget> for mindspore::TreeTarget {
    fn from(target: MindSporeTarget) -> mindspore::TreeTarget {
        match target {
            MindSporeTarget::Cpu => mindspore::TreeTarget::Cpu,
            MindSporeTarget::Gpu => mindspore::TreeTarget::Gpu,
            // MindSpore writes the same tree at both levels; only level O2 compiles whole graphs.
            MindSporeTarget::AscendO0 | MindSporeTarget::AscendO1 => {
                mindspore::TreeTarget::AscendKernels
            }
            MindSporeTarget::AscendO2 => mindspore::TreeTarget::AscendGraph,
            MindSporeTarget::Ge => mindspore::TreeTarget::GraphEngine,
        }
    }
}
