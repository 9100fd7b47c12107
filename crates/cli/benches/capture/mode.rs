//! Kinds of dumps.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opscope_capture::{Counters, SessionOptions, Sink};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{
    AclSink, FileSharing, MindSporeOptions, MindSporeSink, NativeContent, NativeSink, RuntimeMode,
    StatsSink,
};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::statistic_csv::StatisticCategory;
use opscope_store::file_format::stats_csv::StatsColumns;
use opscope_store::reader::{TensorFile, read_dump};
use opscope_store::record::Record;
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::stats;
use tempfile::TempDir;

use crate::limit::Unique;
use crate::subject::Subject;
use crate::{cpu_time, timed};

/// A directory in memory.
pub(crate) const RAM_DISK: &str = "/dev/shm";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The model alone.
    Plain,
    /// A dump that is switched off.
    Off,
    /// Every statistic of every slot, kept in memory.
    Statistics,
    /// AscendCL's statistics, a file for each operator.
    OperatorStatistics,
    /// MindSpore's statistics, a row for each slot.
    Rows,
    /// The same with MD5.
    RowsMd5,
    /// Every slot a `.npy` file, in memory.
    RamDisk,
    /// The same on disk.
    Disk,
    /// Our own form, in memory.
    NativeRamDisk,
    /// The same on disk.
    NativeDisk,
    /// Statistics of every slot in our own form.
    NativeStatistics,
    /// Every operator a file with all its slots, in memory.
    OperatorsRamDisk,
    /// The same on disk.
    OperatorsDisk,
}

impl Mode {
    pub(crate) const ALL: [Mode; 13] = [
        Mode::Plain,
        Mode::Off,
        Mode::Statistics,
        Mode::OperatorStatistics,
        Mode::Rows,
        Mode::RowsMd5,
        Mode::NativeStatistics,
        Mode::NativeRamDisk,
        Mode::NativeDisk,
        Mode::RamDisk,
        Mode::Disk,
        Mode::OperatorsRamDisk,
        Mode::OperatorsDisk,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Off => "switched off",
            Mode::Statistics => "statistics, in memory",
            Mode::OperatorStatistics => "statistics, CSV per operator",
            Mode::Rows => "statistics, row per tensor",
            Mode::RowsMd5 => "statistics with MD5",
            Mode::NativeStatistics => "native statistics",
            Mode::NativeRamDisk => "native tensors, RAM disk",
            Mode::NativeDisk => "native tensors, disk",
            Mode::RamDisk => "tensors as .npy, RAM disk",
            Mode::Disk => "tensors as .npy, disk",
            Mode::OperatorsRamDisk => "tensors by operator, RAM disk",
            Mode::OperatorsDisk => "tensors by operator, disk",
        }
    }

    /// Whether tensors go to disk.
    pub(crate) fn is_on_disk(self) -> bool {
        matches!(self, Mode::Disk | Mode::OperatorsDisk | Mode::NativeDisk)
    }

    /// Whether the dump goes to a directory in memory.
    pub(crate) fn is_in_memory(self) -> bool {
        matches!(
            self,
            Mode::RamDisk | Mode::OperatorsRamDisk | Mode::NativeRamDisk
        )
    }

    /// Whether the dump is in our own form, with elements.
    pub(crate) fn is_native(self) -> bool {
        matches!(self, Mode::NativeRamDisk | Mode::NativeDisk)
    }

    /// Runs the model in this mode, once; checks what came out. Returns the time, CPU time, and the
    /// directory, which goes when it is dropped.
    pub(crate) fn run(
        self,
        subject: &mut Subject,
        unique: &Unique,
    ) -> (Duration, Duration, TempDir) {
        let n_steps = unique.n_steps;
        let dir = if self.is_in_memory() {
            tempfile::tempdir_in(RAM_DISK)
        } else {
            tempfile::tempdir_in(".")
        };
        let dir = dir.unwrap();
        let start = cpu_time();
        let statistics = Arc::new(StatsSink::default());
        let sink: Option<Arc<dyn Sink>> = match self {
            Mode::Plain => None,
            Mode::Off => {
                let time = timed(|| subject.run_switched_off(statistics, n_steps));
                return (time, cpu_time() - start, dir);
            }
            Mode::Statistics => Some(statistics.clone()),
            Mode::OperatorStatistics => Some(Arc::new(
                operators(dir.path()).with_content(AclContent::Statistics(StatsColumns::Plain)),
            )),
            Mode::OperatorsRamDisk | Mode::OperatorsDisk => Some(Arc::new(operators(dir.path()))),
            Mode::NativeRamDisk | Mode::NativeDisk => Some(Arc::new(native(dir.path()))),
            Mode::NativeStatistics => {
                let sink = native(dir.path());
                Some(Arc::new(sink.with_content(NativeContent::Statistics)))
            }
            Mode::Rows => Some(Arc::new(rows(dir.path(), false))),
            Mode::RowsMd5 => Some(Arc::new(rows(dir.path(), true))),
            Mode::RamDisk | Mode::Disk => Some(Arc::new(arrays(dir.path()))),
        };
        let Some(sink) = sink else {
            let time = timed(|| subject.run_plain(n_steps));
            return (time, cpu_time() - start, dir);
        };
        let mut counters = Counters::default();
        let time = timed(|| {
            let options = SessionOptions::default();
            counters = subject.run_captured(sink, options, n_steps).counters;
        });
        let cpu = cpu_time() - start;
        assert_eq!(counters.n_selected, unique.n_slots);
        let n_kept = counters.n_written + counters.n_refused;
        assert_eq!(n_kept, unique.n_slots, "{self:?}: {counters:?}");
        assert_eq!(counters.n_bytes_selected, unique.n_bytes_asked);
        if self.is_native() {
            check_native(dir.path(), unique);
        }
        if self == Mode::Statistics {
            check_stats(&statistics, &unique.step);
        }
        (time, cpu, dir)
    }
}

/// Every slot has its row, and a tensor of the last step its elements.
fn check_native(dir: &Path, unique: &Unique) {
    let index = read_dump(dir, &mut |_| Vec::new()).unwrap();
    assert!(index.errors.is_empty(), "{:?}", index.errors);
    assert_eq!(index.tensors.len() as u64, unique.n_slots);
    for tensor in [index.tensors.first(), index.tensors.last()]
        .into_iter()
        .flatten()
    {
        let file = TensorFile::open_elements(tensor).unwrap();
        let n_bytes = file.tensors().next().map(|tensor| tensor.n_bytes);
        assert_eq!(n_bytes, tensor.n_bytes);
    }
}

fn native(dir: &Path) -> NativeSink {
    NativeSink::create(dir, ["dump".to_owned()], PermissionModes::default()).unwrap()
}

fn operators(dir: &Path) -> AclSink {
    AclSink::create(dir, ["dump".to_owned()], PermissionModes::default()).unwrap()
}

fn rows(dir: &Path, has_md5: bool) -> MindSporeSink {
    let mut categories = vec![
        StatisticCategory::Max,
        StatisticCategory::Min,
        StatisticCategory::Average,
        StatisticCategory::L2Norm,
    ];
    categories.extend(has_md5.then_some(StatisticCategory::Md5));
    mindspore(dir, Some(categories))
}

fn arrays(dir: &Path) -> MindSporeSink {
    mindspore(dir, None)
}

fn mindspore(dir: &Path, statistics: Option<Vec<StatisticCategory>>) -> MindSporeSink {
    MindSporeSink::create(MindSporeOptions {
        target: TreeTarget::Gpu,
        path: dir.to_owned(),
        rank: 0,
        net_name: "Net".to_owned(),
        first_iteration: 0,
        has_tensors: statistics.is_none(),
        statistics,
        device_statistics: None,
        n_samples: None,
        has_host_layout: true,
        is_bin: false,
        compression: None,
        dedup: FileSharing::default(),
        has_kernel_args: false,
        has_parameters_only: false,
        runtime: RuntimeMode::Values("all"),
        configuration: Vec::new(),
        time: "20260101000000".to_owned(),
        modes: PermissionModes::default(),
    })
    .unwrap()
}

fn check_stats(sink: &StatsSink, records: &[Record]) {
    let rows = sink.take().unwrap();
    let tensors: Vec<_> = records.iter().flat_map(Record::slots).collect();
    for (row, (side, index, tensor)) in rows.iter().zip(tensors) {
        assert_eq!((row.side, row.index), (side, index));
        // NaN differs from itself, so compare the text.
        let direct = stats(tensor.host_view().unwrap()).ok();
        assert_eq!(format!("{:?}", row.stats), format!("{direct:?}"));
    }
}
