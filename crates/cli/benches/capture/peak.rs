//! Peak memory of a run with many times more bytes of tensors than memory may be used.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use opscope_capture::{SessionOptions, Sink};
use opscope_dump::{AclSink, StatsSink};
use opscope_store::atomic_file::PermissionModes;

use crate::subject::Subject;

const MODES: [&str; 3] = ["plain", "statistics", "tensors"];
/// Memory that a dump may use beside the engine and the queue.
const ALLOWANCE_MIB: u64 = 64;

/// Whether the model is one for this measurement: large tensors and next to no arithmetic.
pub(crate) fn is_meant(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "wide")
}

/// Runs each mode in a separate process and prints the peaks.
pub(crate) fn measure(path: &Path) {
    let program = std::env::current_exe().unwrap();
    let peaks = MODES.map(|mode| {
        let mut command = Command::new(&program);
        let output = command.args(["--peak", mode]).arg(path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse::<u64>().unwrap()
    });
    let queue = SessionOptions::default().queue_bytes_max >> 20;
    println!("{}: peak memory", path.display());
    for (mode, peak) in MODES.iter().zip(peaks) {
        let more = peak.saturating_sub(peaks[0]);
        println!("  {mode:<12} {peak:>6} MiB, {more} MiB above plain");
    }
    println!("  allowed above plain: {queue} MiB of the queue + {ALLOWANCE_MIB} MiB");
}

/// Runs one mode and prints the peak in MiB.
pub(crate) fn run_alone(mode: &str, path: &Path) {
    let mut subject = Subject::load(path);
    let dir = tempfile::tempdir_in(".").unwrap();
    let sink: Option<Arc<dyn Sink>> = match mode {
        "statistics" => Some(Arc::new(StatsSink::default())),
        "tensors" => {
            let sink = AclSink::create(dir.path(), ["dump".to_owned()], PermissionModes::default());
            Some(Arc::new(sink.unwrap()))
        }
        _ => None,
    };
    match sink {
        None => subject.run_plain(1),
        Some(sink) => {
            let summary = subject.run_captured(sink, SessionOptions::default(), 1);
            assert_eq!(summary.counters.n_written, summary.counters.n_selected);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("{}", kib >> 10);
}
