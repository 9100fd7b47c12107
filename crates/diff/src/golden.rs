//! The golden slots, by the names that a running operator has.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot};
use opscope_store::record::{Record, SlotSide};

/// The executions of a golden dump by name and step.
pub struct GoldenSlots {
    dump: Arc<ComparedDump>,
    /// None where several executions have the name: which one is meant is decided later.
    runs: HashMap<(String, Option<u64>), Option<usize>>,
    /// Whether the dump has one step, which every step of a target may mean.
    has_one_step: bool,
}

impl GoldenSlots {
    /// Looks all executions of `dump` up.
    pub fn new(dump: Arc<ComparedDump>) -> GoldenSlots {
        let mut runs = HashMap::new();
        let first = dump.runs.first().map(|run| run.place.step);
        let has_one_step = dump.runs.iter().all(|run| Some(run.place.step) == first);
        for (index, run) in dump.runs.iter().enumerate() {
            let step = run.place.step.filter(|_| !has_one_step);
            let known = runs.entry((run.op_name.to_string(), step));
            known.and_modify(|at| *at = None).or_insert(Some(index));
        }
        GoldenSlots {
            dump,
            runs,
            has_one_step,
        }
    }

    /// The golden dump.
    pub fn dump(&self) -> &Arc<ComparedDump> {
        &self.dump
    }

    /// Which execution of the golden dump has the name and the step of a record.
    pub(crate) fn run(&self, record: &Record) -> Option<usize> {
        // Types may differ, as where an operator was replaced by another one of its name.
        let step = Some(record.step).filter(|_| !self.has_one_step);
        let key = (record.operator.op_name.clone(), step);
        *self.runs.get(&key)?
    }

    /// A slot of an execution.
    pub(crate) fn slot(&self, run: usize, side: SlotSide, index: usize) -> Option<&ExecutionSlot> {
        let index = u32::try_from(index).ok()?;
        self.dump.runs[run].slot(side, index)
    }
}
