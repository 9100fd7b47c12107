//! Kinds of runs.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{SessionOptions, Sink};
use opscope_dump::{AclSink, NativeContent, NativeSink, StatsSink};
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
    /// Statistics of every slot in our own form.
    NativeStatistics,
    /// Every slot in our own form, on a disk in memory.
    NativeRamDisk,
    /// The same on disk.
    NativeDisk,
}

/// A directory in memory.
const RAM_DISK: &str = "/dev/shm";

impl Mode {
    /// Those whose time is measured.
    pub(crate) const ALL: [Mode; 6] = [
        Mode::Plain,
        Mode::Taps,
        Mode::Statistics,
        Mode::NativeStatistics,
        Mode::NativeRamDisk,
        Mode::NativeDisk,
    ];
    /// Those whose memory is measured.
    pub(crate) const WITH_PEAK: [Mode; 4] =
        [Mode::Plain, Mode::Taps, Mode::Statistics, Mode::Tensors];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Taps => "taps alone",
            Mode::Statistics => "statistics, inputs and outputs",
            Mode::Tensors => "tensors, a file per operator",
            Mode::NativeStatistics => "native statistics",
            Mode::NativeRamDisk => "native tensors, RAM disk",
            Mode::NativeDisk => "native tensors, disk",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Taps => "taps",
            Mode::Statistics => "statistics",
            Mode::Tensors => "tensors",
            Mode::NativeStatistics => "native-statistics",
            Mode::NativeRamDisk => "native-ram",
            Mode::NativeDisk => "native-disk",
        }
    }

    /// Whether the dump is in our own form.
    pub(crate) fn is_native(self) -> bool {
        self == Mode::NativeStatistics || self.has_native_tensors()
    }

    /// Whether the dump is in our own form, with elements.
    pub(crate) fn has_native_tensors(self) -> bool {
        matches!(self, Mode::NativeRamDisk | Mode::NativeDisk)
    }

    /// Where its dumps are.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Mode::NativeRamDisk => RAM_DISK,
            _ => ".",
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
            Mode::NativeStatistics => Arc::new(native(dir).with_content(NativeContent::Statistics)),
            Mode::NativeRamDisk | Mode::NativeDisk => Arc::new(native(dir)),
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

fn native(dir: &Path) -> NativeSink {
    NativeSink::create(dir, ["dump".to_owned()], PermissionModes::default()).unwrap()
}
