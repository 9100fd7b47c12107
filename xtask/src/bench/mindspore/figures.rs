//! Computes and prints the table from the measured times.

use std::io::{Write, stdout};

use anyhow::{Result, ensure};

use super::{N_STEPS, NetworkReport, STEPS_DUMPED};

/// Maximum ratio of Opscope's overhead to MindSpore's.
const GOAL: f64 = 0.2;

/// Seconds of two runs of the same steps.
#[derive(Clone, Copy)]
pub(super) struct StepTimes {
    /// Without the dump.
    pub(super) plain: f64,
    /// With some of the steps dumped, until the last byte is written.
    pub(super) dumped: f64,
    /// Number of steps timed in each of the runs.
    pub(super) n_steps: usize,
}

impl StepTimes {
    /// Seconds of a step without the dump.
    fn plain_step(self) -> f64 {
        self.plain / self.n_steps as f64
    }

    /// Seconds that the dump adds to a step.
    fn overhead(self) -> f64 {
        (self.dumped - self.plain) / STEPS_DUMPED.len() as f64
    }
}

/// Times measured in turn.
pub(super) struct TimingRound {
    pub(super) mindspore: StepTimes,
    pub(super) opscope: StepTimes,
    /// Opscope with `--dedup off`, which writes as many bytes as MindSpore.
    pub(super) without_links: StepTimes,
}

/// A program's name, and its times in a round.
type Program = (&'static str, fn(&TimingRound) -> StepTimes);

const PROGRAMS: [Program; 3] = [
    ("MindSpore", |round| round.mindspore),
    ("Opscope", |round| round.opscope),
    ("Opscope, no links", |round| round.without_links),
];

/// Results over all rounds of a program, in seconds per step.
struct RoundFigures {
    plain: f64,
    dumped: f64,
    overhead: f64,
    /// From the shortest run with the dump and the shortest without. Other programs on the machine
    /// only ever add to a time, so the shortest runs are the least disturbed.
    least_overhead: f64,
}

impl RoundFigures {
    fn new(rounds: &[TimingRound], times: fn(&TimingRound) -> StepTimes) -> Self {
        let of = |value: fn(StepTimes) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| value(times(round))).collect()
        };
        let least = StepTimes {
            plain: shortest(&of(|times| times.plain)),
            dumped: shortest(&of(|times| times.dumped)),
            n_steps: N_STEPS,
        };
        Self {
            least_overhead: least.overhead(),
            plain: median(of(StepTimes::plain_step)),
            dumped: median(of(|times| times.plain_step() + times.overhead())),
            overhead: median(of(StepTimes::overhead)),
        }
    }
}

/// Prints a line for each program, and the ratios of their overheads.
pub(super) fn print(title: &str, rounds: &[TimingRound], network: &NetworkReport) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{title}")?;
    writeln!(
        out,
        "{:<20}{:>9}{:>9}{:>10}{:>10}{:>13}{:>11}",
        "ms a step", "plain", "dumped", "overhead", "least", "µs per file", "ms per MB"
    )?;
    let all = PROGRAMS.map(|(name, times)| (name, RoundFigures::new(rounds, times)));
    for (name, figures) in &all {
        let RoundFigures {
            plain,
            dumped,
            overhead,
            least_overhead,
        } = figures;
        writeln!(
            out,
            "{name:<20}{:>9.2}{:>9.2}{:>10.2}{:>10.2}{:>13.1}{:>11.3}",
            1e3 * plain,
            1e3 * dumped,
            1e3 * overhead,
            1e3 * least_overhead,
            1e6 * overhead / network.files as f64,
            1e3 * overhead / mega(network.bytes)
        )?;
    }
    let [(_, mindspore), others @ ..] = &all;
    ensure!(
        mindspore.overhead > 0.0 && mindspore.least_overhead > 0.0,
        "MindSpore's dump seems to cost nothing: other programs disturbed the measurement"
    );
    for (name, figures) in others {
        writeln!(
            out,
            "{name}: {:.2} of MindSpore's overhead, {:.2} by the least overheads; the goal is {GOAL} at most",
            figures.overhead / mindspore.overhead,
            figures.least_overhead / mindspore.least_overhead
        )?;
    }
    Ok(())
}

/// Converts bytes to megabytes.
pub(super) fn mega(n_bytes: u64) -> f64 {
    n_bytes as f64 / 1e6
}

fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The median; of an even number of values the upper middle one, 0 without values.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overheads_are_differences() {
        let round = |plain, dumped| {
            let times = StepTimes {
                plain,
                dumped,
                n_steps: 10,
            };
            TimingRound {
                mindspore: times,
                opscope: times,
                without_links: times,
            }
        };
        // Five steps are dumped.
        let rounds = [round(20.0, 50.0), round(40.0, 60.0), round(30.0, 55.0)];
        let figures = RoundFigures::new(&rounds, |round| round.opscope);
        assert_eq!((figures.plain, figures.dumped), (3.0, 8.0));
        assert_eq!((figures.overhead, figures.least_overhead), (5.0, 6.0));
    }
}
