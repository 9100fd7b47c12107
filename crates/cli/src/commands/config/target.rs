//! The devices for which MindSpore reads a configuration.

use opscope_store::tree::mindspore;

/// What MindSpore runs on.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum Target {
    /// A CPU
    #[default]
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

impl From<Target> for mindspore::Target {
    fn from(target: Target) -> mindspore::Target {
        match target {
            Target::Cpu => mindspore::Target::Cpu,
            Target::Gpu => mindspore::Target::Gpu,
            Target::AscendO0 | Target::AscendO1 => mindspore::Target::AscendKernels,
            Target::AscendO2 => mindspore::Target::AscendGraph,
            Target::Ge => mindspore::Target::GraphEngine,
        }
    }
}
