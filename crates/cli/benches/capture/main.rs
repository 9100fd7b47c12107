//! What a dump costs: each model plain and under every kind of dump, in turn within the same run.
//!
//! `cargo bench --bench capture -- MODEL.onnx …`. Every measurement checks its answer. Beside it stand
//! the limits: a copy of the same bytes in memory, and one plain file of the same bytes on the same
//! disk. `--peak MODE MODEL.onnx` runs one mode alone and prints the process's peak memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod limit;
mod mode;
mod peak;
mod subject;

use std::path::Path;
use std::time::{Duration, Instant};

use self::limit::Unique;
use self::mode::Mode;
use self::subject::Subject;

/// Rounds of which the median is taken.
const N_ROUNDS: usize = 7;
/// How long ext4 takes to create files at its usual speed again after many were removed.
const AFTER_REMOVAL: Duration = Duration::from_secs(6);
/// Executions of the model in each run: what never changes is dealt with in the first.
const N_STEPS: u64 = 4;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let [flag, mode, model] = &arguments[..]
        && flag == "--peak"
    {
        return peak::run_alone(mode, Path::new(model));
    }
    for model in &arguments {
        let path = Path::new(model);
        if peak::is_meant(path) {
            peak::measure(path);
        } else {
            measure(path);
        }
    }
}

fn measure(path: &Path) {
    let mut subject = Subject::load(path);
    let unique = Unique::of(&mut subject, N_STEPS);
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); Mode::ALL.len()];
    let (mut copies, mut writes) = (Vec::new(), Vec::new());
    let mut dirs = Vec::new();
    for _ in 0..N_ROUNDS {
        for (mode, times) in Mode::ALL.iter().zip(&mut times) {
            let (time, dir) = mode.run(&mut subject, N_STEPS, &unique);
            times.push(time);
            // What is in memory has to make room.
            if !mode.is_in_memory() {
                dirs.push(dir);
            }
        }
        copies.push(timed(|| unique.copy()));
        writes.push(timed(|| unique.write()));
    }
    drop(dirs);
    std::thread::sleep(AFTER_REMOVAL);
    let plain = median(times[0].clone());
    let (copy, write) = (median(copies), median(writes));
    println!(
        "{}: {} operators, {N_STEPS} steps; {:.1} MB in all slots, {:.1} MB of them different",
        subject.name,
        subject.model.operators().len(),
        unique.n_bytes_asked as f64 / 1e6,
        unique.n_bytes() as f64 / 1e6
    );
    let rate = |time: Duration| unique.n_bytes() as f64 / time.as_secs_f64() / 1e9;
    println!(
        "  limits for the different bytes: copy {:.2} ms ({:.2} GB/s), plain file {:.2} ms ({:.2} GB/s)",
        milliseconds(copy),
        rate(copy),
        milliseconds(write),
        rate(write)
    );
    for (mode, times) in Mode::ALL.iter().zip(times) {
        let time = median(times);
        let ratio = |limit: Duration| time.as_secs_f64() / limit.as_secs_f64();
        let beside = match mode {
            Mode::RamDisk | Mode::OperatorsRamDisk => {
                format!(", {:.2}x of plain + copy", ratio(plain + copy))
            }
            Mode::Disk | Mode::OperatorsDisk => format!(
                ", {:.2} GB/s, {:.0} % of a plain file",
                rate(time),
                100.0 / ratio(write)
            ),
            _ => String::new(),
        };
        println!(
            "  {:<32} {:>9.2} ms  {:.3}x{beside}",
            mode.title(),
            milliseconds(time),
            ratio(plain)
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
