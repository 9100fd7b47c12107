//! From times to the table that is printed.

use std::io::{Write, stdout};

use anyhow::{Result, ensure};

use super::Network;

/// Opscope's overhead is to be at most this part of MindSpore's.
const GOAL: f64 = 0.2;

/// Seconds of a step: the mean of the steps of a run.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// Without the dump.
    pub(super) plain: f64,
    /// With the dump, until the last byte is written.
    pub(super) dumped: f64,
}

impl Times {
    fn overhead(self) -> f64 {
        self.dumped - self.plain
    }
}

/// What was measured side by side.
pub(super) struct Round {
    pub(super) mindspore: Times,
    pub(super) opscope: Times,
    /// Opscope with `--dedup off`, which writes as many bytes as MindSpore.
    pub(super) without_links: Times,
}

/// A program's name, and its times in a round.
type Program = (&'static str, fn(&Round) -> Times);

const PROGRAMS: [Program; 3] = [
    ("MindSpore", |round| round.mindspore),
    ("Opscope", |round| round.opscope),
    ("Opscope, no links", |round| round.without_links),
];

/// What came of all rounds of a program, in seconds.
struct Figures {
    plain: f64,
    dumped: f64,
    overhead: f64,
    /// The shortest time with the dump beside the shortest without. Other programs on the machine
    /// only ever add to a time, so this is what is left when they disturb little.
    least_overhead: f64,
}

impl Figures {
    fn new(rounds: &[Round], times: fn(&Round) -> Times) -> Self {
        let of = |value: fn(Times) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| value(times(round))).collect()
        };
        let (plain, dumped) = (of(|times| times.plain), of(|times| times.dumped));
        Self {
            least_overhead: shortest(&dumped) - shortest(&plain),
            plain: median(plain),
            dumped: median(dumped),
            overhead: median(of(Times::overhead)),
        }
    }
}

/// Prints a line for each program, and how their overheads compare.
pub(super) fn print(title: &str, rounds: &[Round], network: &Network) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{title}")?;
    writeln!(
        out,
        "{:<20}{:>9}{:>9}{:>10}{:>10}{:>13}{:>11}",
        "ms a step", "plain", "dumped", "overhead", "least", "µs per file", "ms per MB"
    )?;
    let all = PROGRAMS.map(|(name, times)| (name, Figures::new(rounds, times)));
    for (name, figures) in &all {
        let Figures {
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
        "MindSpore's dump seems to cost nothing: other programs disturb the measurement"
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

/// Megabytes of so many bytes.
pub(super) fn mega(n_bytes: u64) -> f64 {
    n_bytes as f64 / 1e6
}

pub(super) fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn shortest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The number in the middle; of an even number of them the upper one. 0 of none.
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
            let times = Times { plain, dumped };
            Round {
                mindspore: times,
                opscope: times,
                without_links: times,
            }
        };
        let rounds = [round(2.0, 8.0), round(3.0, 7.0), round(4.0, 9.0)];
        let figures = Figures::new(&rounds, |round| round.opscope);
        assert_eq!((figures.plain, figures.dumped), (3.0, 8.0));
        assert_eq!((figures.overhead, figures.least_overhead), (5.0, 5.0));
        let figures = Figures::new(&rounds[..2], |round| round.opscope);
        assert_eq!((figures.overhead, figures.least_overhead), (6.0, 5.0));
    }
}
