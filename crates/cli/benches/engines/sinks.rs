//! Kinds of runs.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{SessionOptions, Sink};
use opscope_dump::{AclSink, StatsSink};
use opscope_store::atomic_file::PermissionModes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The model alone.
    Plain,
    /// Every operator is tapped by a dump that may take nothing any more.
    Taps,
    /// Every statistic of every slot.
    Statistics,
    /// Every tensor into files.
    Tensors,
}

impl Mode {
    /// Those whose time is measured.
    pub(crate) const ALL: [Mode; 3] = [Mode::Plain, Mode::Taps, Mode::Statistics];
    /// Those whose memory is measured.
    pub(crate) const WITH_PEAK: [Mode; 4] =
        [Mode::Plain, Mode::Taps, Mode::Statistics, Mode::Tensors];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Taps => "taps alone",
            Mode::Statistics => "statistics, inputs and outputs",
            Mode::Tensors => "tensors, a file per operator",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Taps => "taps",
            Mode::Statistics => "statistics",
            Mode::Tensors => "tensors",
        }
    }

    /// Where records go; none without a dump.
    pub(crate) fn sink(self, dir: &Path) -> Option<Arc<dyn Sink>> {
        Some(match self {
            Mode::Plain => return None,
            Mode::Taps | Mode::Statistics => Arc::new(StatsSink::default()),
            Mode::Tensors => {
                let sink = AclSink::create(dir, ["dump".to_owned()], PermissionModes::default());
                Arc::new(sink.unwrap())
            }
        })
    }

    /// How the dump runs.
    pub(crate) fn options(self) -> SessionOptions {
        SessionOptions {
            n_tensors_max: (self == Mode::Taps).then_some(0),
            ..SessionOptions::default()
        }
    }
}
