//! Measures the cost of taps in ONNX Runtime: each model plain, tapped with nothing kept, under
//! statistics of every slot, and under dumps in our own form.
//!
//! `cargo bench --bench engines -- LIBRARY MODEL.onnx …`. They run in turn, each in a session of
//! its own right after the model alone, with one thread and with two; every run has to give the
//! plain run's outputs bit for bit, and statistics are compared with direct computation.
//! `--peak MODE LIBRARY MODEL.onnx` runs one mode alone on a batch of eight and prints the
//! process's peak memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod peak;
mod sinks;
mod subject;

use std::path::Path;
use std::time::{Duration, Instant};

use self::sinks::Mode;
use self::subject::{Subject, Volume};

/// Rounds of which the median is taken.
const N_ROUNDS: usize = 15;
/// Shortest time of one measurement: several executions, where one takes less.
const MEASUREMENT: Duration = Duration::from_millis(150);
const THREADS: [usize; 2] = [1, 2];

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match &arguments[..] {
        [flag, mode, library, model] if flag == "--peak" => {
            peak::run_alone(mode, Path::new(library), Path::new(model));
        }
        [library, models @ ..] => {
            for model in models {
                measure(Path::new(library), Path::new(model));
                peak::measure(Path::new(library), Path::new(model));
            }
        }
        [] => println!("usage: engines LIBRARY MODEL.onnx …"),
    }
}

fn measure(library: &Path, path: &Path) {
    for n_threads in THREADS {
        let mut subjects = Mode::ALL.map(|mode| Subject::load(library, path, mode, n_threads, 1));
        let volume = subjects[0].check_statistics();
        let n_steps = n_steps(&mut subjects[0]);
        if n_threads == THREADS[0] {
            println!(
                "{}: {} operators, {:.1} MB in {} slots for each execution, {:.1} MB different",
                path.file_stem().unwrap_or_default().to_string_lossy(),
                subjects[0].n_operators(),
                volume.n_bytes as f64 / 1e6,
                volume.n_slots,
                volume.n_bytes_different() as f64 / 1e6,
            );
        }
        let mut times = Mode::ALL.map(|_| Vec::new());
        let mut plain = Mode::ALL.map(|_| Vec::new());
        // Other programs disturb it less than times.
        let mut cpu = Mode::ALL.map(|_| [Duration::ZERO; 2]);
        for _ in 0..N_ROUNDS {
            for (i, mode) in Mode::ALL.into_iter().enumerate() {
                // Contents that come again are not written again, so each dump has one execution.
                let n_steps = if mode.has_native_tensors() {
                    1
                } else {
                    n_steps
                };
                // Just before, so that whatever else the machine does is in both.
                let start = cpu_time();
                plain[i].push(limit(&mut subjects[0], mode, &volume, n_steps));
                let between = cpu_time();
                let time = timed(|| subjects[i].run(n_steps));
                cpu[i][0] += between - start;
                cpu[i][1] += cpu_time() - between;
                times[i].push(time.div_f64(n_steps as f64));
                if mode.is_native() {
                    subjects[i].check_dump(&volume, n_steps);
                    subjects[i].clear();
                }
            }
        }
        for (((mode, times), plain), cpu) in Mode::ALL.into_iter().zip(times).zip(plain).zip(cpu) {
            let beside = times.iter().zip(&plain);
            let ratios = beside.map(|(time, plain)| time.as_secs_f64() / plain.as_secs_f64());
            let time = median(times.clone());
            let rate = volume.n_bytes as f64 / time.as_secs_f64() / 1e9;
            println!(
                "  {n_threads} threads, {:<28} {:>8.2} ms  {:.3}x, CPU {:.3}x{}, {rate:.1} GB/s in all slots",
                mode.title(),
                time.as_secs_f64() * 1e3,
                median(ratios.collect()),
                cpu[1].as_secs_f64() / cpu[0].as_secs_f64(),
                if mode.has_native_tensors() {
                    " of plain + one file"
                } else {
                    ""
                },
            );
        }
    }
}

/// The time of the model alone for each of `n_steps` executions; where a dump has elements, and of
/// one plain file of the different contents in the same place.
fn limit(plain: &mut Subject, mode: Mode, volume: &Volume, n_steps: u64) -> Duration {
    let time = timed(|| plain.run(n_steps)).div_f64(n_steps as f64);
    if !mode.has_native_tensors() {
        return time;
    }
    let dir = tempfile::tempdir_in(mode.place()).unwrap();
    time + timed(|| volume.write(dir.path()))
}

/// How often to run in one measurement.
fn n_steps(subject: &mut Subject) -> u64 {
    subject.run(1);
    let once = timed(|| subject.run(1));
    (MEASUREMENT.as_secs_f64() / once.as_secs_f64()).ceil() as u64
}

/// CPU time of the process so far, that of threads which have ended included; to 10 ms.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in brackets, may hold blanks.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(10) * u32::try_from(ticks.sum::<u64>()).unwrap()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}
