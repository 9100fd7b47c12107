//! Measures the cost of a dump: each model plain and under every kind of dump, in turn within the
//! same run.
//!
//! `cargo bench --bench capture -- MODEL.onnx …`. Every measurement checks its answer. Beside it
//! stand the limits: a copy of the same bytes in memory, and one plain file of the same bytes on
//! the same disk. `--only TEXT MODEL.onnx …` measures the modes whose title contains the text.
//! `--peak MODE MODEL.onnx` runs one mode alone and prints the process's peak memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod limit;
mod mode;
mod peak;
mod subject;

use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::limit::Unique;
use self::mode::{Mode, RAM_DISK};
use self::subject::Subject;

/// Rounds of which the median is taken.
const N_ROUNDS: usize = 7;
/// How long ext4 takes to create files at its usual speed again after many were removed.
const AFTER_REMOVAL: Duration = Duration::from_secs(6);
/// Executions of the model in each run: what never changes is dealt with in the first.
const N_STEPS: u64 = 10;
/// The same where tensors go to disk: all of it stays there until the end.
const N_STEPS_ON_DISK: u64 = 3;

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
    let (only, models) = match &arguments[..] {
        [flag, only, models @ ..] if flag == "--only" => (only.as_str(), models),
        models => ("", models),
    };
    for model in models {
        let path = Path::new(model);
        if peak::is_meant(path) {
            peak::measure(path);
        } else {
            measure(path, only);
        }
    }
}

/// One mode, over all rounds.
struct Row {
    mode: Mode,
    times: Vec<Duration>,
    /// Each time beside that of the model alone just before.
    ratios: Vec<f64>,
    /// CPU time of all rounds, and that of the model alone: other programs disturb it less.
    cpu: Duration,
    plain_cpu: Duration,
}

fn measure(path: &Path, only: &str) {
    let mut subject = Subject::load(path);
    let unique = Unique::measure(&mut subject, N_STEPS);
    println!(
        "{}: {} operators, {N_STEPS} steps; {:.1} MB in all slots, {:.1} MB of them different",
        subject.name,
        subject.model.operators().len(),
        unique.n_bytes_asked as f64 / 1e6,
        unique.n_bytes() as f64 / 1e6
    );
    let rate = |time: Duration| unique.n_bytes() as f64 / time.as_secs_f64() / 1e9;
    let copy = median((0..N_ROUNDS).map(|_| timed(|| unique.copy())).collect());
    println!(
        "  limit: the different bytes copied    {:>9.2} ms  {:.2} GB/s",
        milliseconds(copy),
        rate(copy)
    );
    let modes = Mode::ALL.into_iter();
    let modes = modes.filter(|mode| mode.title().contains(only));
    // What goes to disk comes last: the disk is busy with it for a while.
    let (on_disk, others): (Vec<Mode>, Vec<Mode>) = modes.partition(|mode| mode.is_on_disk());
    for row in rounds(&mut subject, &unique, &others).0 {
        let time = median(row.times.clone());
        let plain = time.div_f64(median(row.ratios.clone()));
        let is_copied = row.mode.is_in_memory();
        let mut beside = String::new();
        if is_copied {
            let limit = plain * 3 / 2 + copy;
            let ratio = time.as_secs_f64() / limit.as_secs_f64();
            beside = format!(", {ratio:.2}x of 1.5 plain + copy");
        }
        if row.mode.is_native() {
            let writes = (0..N_ROUNDS).map(|_| unique.write(RAM_DISK).0);
            beside += &beside_one_file(time, plain, median(writes.collect()));
        }
        row.print(&beside);
    }
    if on_disk.is_empty() {
        return;
    }
    let unique = Unique::measure(&mut subject, N_STEPS_ON_DISK);
    let rate = |time: Duration| unique.n_bytes() as f64 / time.as_secs_f64() / 1e9;
    let (rows, dirs, writes) = rounds(&mut subject, &unique, &on_disk);
    let write = median(writes);
    println!(
        "  {N_STEPS_ON_DISK} steps: the different bytes, one file {:>4.2} ms  {:.2} GB/s",
        milliseconds(write),
        rate(write)
    );
    for row in rows {
        let time = median(row.times.clone());
        let share = 100.0 * write.as_secs_f64() / time.as_secs_f64();
        let mut beside = format!(", {:.2} GB/s, {share:.0} % of one file", rate(time));
        if row.mode.is_native() {
            let plain = time.div_f64(median(row.ratios.clone()));
            beside += &beside_one_file(time, plain, write);
        }
        row.print(&beside);
    }
    drop(dirs);
    std::thread::sleep(AFTER_REMOVAL);
}

/// Runs each of `modes` after the model alone, in turn. What went to disk is still there
/// afterwards.
fn rounds(
    subject: &mut Subject,
    unique: &Unique,
    modes: &[Mode],
) -> (Vec<Row>, Vec<TempDir>, Vec<Duration>) {
    let row = |mode: &Mode| Row {
        mode: *mode,
        times: Vec::new(),
        ratios: Vec::new(),
        cpu: Duration::ZERO,
        plain_cpu: Duration::ZERO,
    };
    let mut rows: Vec<Row> = modes.iter().map(row).collect();
    let (mut dirs, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        for row in &mut rows {
            let start = cpu_time();
            let plain = timed(|| subject.run_plain(unique.n_steps));
            row.plain_cpu += cpu_time() - start;
            let (time, cpu, dir) = row.mode.run(subject, unique);
            row.cpu += cpu;
            row.times.push(time);
            row.ratios.push(time.as_secs_f64() / plain.as_secs_f64());
            if row.mode.is_on_disk() {
                let (write, plain_file) = unique.write(".");
                writes.push(write);
                dirs.extend([dir, plain_file]);
            } else if !row.mode.is_in_memory() {
                dirs.push(dir);
            }
        }
    }
    (rows, dirs, writes)
}

impl Row {
    fn print(&self, beside: &str) {
        println!(
            "  {:<36} {:>9.2} ms  {:.3}x, CPU {:.3}x{beside}",
            self.mode.title(),
            milliseconds(median(self.times.clone())),
            median(self.ratios.clone()),
            self.cpu.as_secs_f64() / self.plain_cpu.as_secs_f64(),
        );
    }
}

/// A dump beside the model alone and one plain file of the different bytes, one after the other.
fn beside_one_file(time: Duration, plain: Duration, write: Duration) -> String {
    let ratio = time.as_secs_f64() / (plain + write).as_secs_f64();
    format!(", {ratio:.2}x of plain + one file")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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
