//! Values from operator to operator.

use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::side::{ComparedDump, SlotRef};
use opscope_store::record::SlotSide;

/// Values from operator to operator.
#[derive(Debug, Default)]
pub(crate) struct OperatorLinks {
    /// Input of a run with the run that made it, by run.
    made_by: Vec<(usize, SlotKey, usize)>,
    /// Output of a run with a run that reads it, by run.
    read_by: Vec<(usize, SlotKey, usize)>,
}

impl OperatorLinks {
    /// The values of a dump, as far as it or a graph beside it tells who made them.
    pub(crate) fn new(dump: &ComparedDump) -> OperatorLinks {
        let mut links = OperatorLinks::default();
        for (run, execution) in dump.runs.iter().enumerate() {
            for (at, input) in execution.slots.iter().enumerate() {
                if input.side != SlotSide::Input {
                    continue;
                }
                // An input of the model or a weight has no producer.
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
        // Those that made inputs are in order of runs already.
        links.read_by.sort_unstable();
        links
    }

    /// Inputs of a run with the runs that made them.
    pub(crate) fn producers(&self, run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
        of_run(&self.made_by, run)
    }

    /// Outputs of a run with the runs that read them.
    pub(crate) fn consumers(&self, run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
        of_run(&self.read_by, run)
    }
}

fn of_run(links: &[(usize, SlotKey, usize)], run: usize) -> impl Iterator<Item = (SlotKey, usize)> {
    let first = links.partition_point(|link| link.0 < run);
    let of_run = links[first..].iter().take_while(move |link| link.0 == run);
    of_run.map(|&(_, key, other)| (key, other))
}
