//! Dataflow between operators.

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::side::{ComparedDump, SlotRef};
use opscope_store::record::SlotSide;

/// Dataflow between operators.
#[derive(Debug, Default)]
pub(crate) struct OperatorLinks {
    /// Run, its input, and the run that produced it, by run.
    made_by: Vec<(usize, SlotKey, usize)>,
    /// Run, its output, and a run that reads it, by run.
    read_by: Vec<(usize, SlotKey, usize)>,
}

impl OperatorLinks {
    /// The dataflow of a dump, as far as the dump or its graph shows producers.
    pub(crate) fn new(dump: &ComparedDump) -> OperatorLinks {
        let mut links = OperatorLinks::default();
        for (run, execution) in dump.runs.iter().enumerate() {
            for (at, input) in execution.slots.iter().enumerate() {
                if input.side != SlotSide::Input {
                    continue;
                }
                // Model inputs and weights have no producer.
                let Some(made) = dump.producer_of(SlotRef { run, slot: at }) else {
                    continue;
                };
                let output = dump
                    .runs
                    .get(made.run)
                    .and_then(|run| run.slots.get(made.slot));
                links.made_by.push((run, input.key(), made.run));
                if let Some(output) = output {
                    links.read_by.push((made.run, output.key(), run));
                }
            }
        }
        // Producers are already in order of runs.
        links.read_by.sort_unstable();
        links
    }

    /// A run's inputs with the runs that produced them.
    pub(crate) fn producers(&self, run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
        of_run(&self.made_by, run)
    }

    /// A run's outputs with the runs that read them.
    pub(crate) fn consumers(&self, run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
        of_run(&self.read_by, run)
    }
}

fn of_run(links: &[(usize, SlotKey, usize)], run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
    let first = links.partition_point(|link| link.0 < run);
    let of_run = links[first..].iter().take_while(move |link| link.0 == run);
    of_run.map(|&(_, key, other)| (key, other))
}
