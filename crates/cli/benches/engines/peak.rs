//! Peak memory on a batch of eight.

use std::path::Path;
use std::process::Command;

use opscope_capture::SessionOptions;

use crate::sinks::Mode;
use crate::subject::Subject;

const N_BATCH: usize = 8;
/// Memory that a dump may use beside the engine and the queue.
const ALLOWANCE_MIB: u64 = 64;

/// Runs each mode in a separate process and prints the peaks.
pub(crate) fn measure(library: &Path, path: &Path) {
    let program = std::env::current_exe().unwrap();
    let peaks = Mode::WITH_PEAK.map(|mode| {
        let mut command = Command::new(&program);
        command.args(["--peak", mode.name()]).arg(library).arg(path);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse::<u64>().unwrap()
    });
    let queue = SessionOptions::default().queue_bytes_max >> 20;
    println!(
        "  peak memory, batch {N_BATCH}, one thread; allowed above plain: {ALLOWANCE_MIB} MiB, for tensors {queue} MiB of the queue as well"
    );
    for (mode, peak) in Mode::WITH_PEAK.iter().zip(peaks) {
        let more = peak.saturating_sub(peaks[0]);
        println!(
            "    {:<30} {peak:>6} MiB, {more} MiB above plain",
            mode.title()
        );
    }
}

/// Runs one mode and prints the peak in MiB.
pub(crate) fn run_alone(mode: &str, library: &Path, path: &Path) {
    let mode = Mode::WITH_PEAK
        .into_iter()
        .find(|known| known.name() == mode);
    let mut subject = Subject::load(library, path, mode.unwrap(), 1, N_BATCH);
    subject.run(2);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    println!("{}", kib.parse::<u64>().unwrap() >> 10);
}
