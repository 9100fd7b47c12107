//! The golden slots, by the names that a running operator has.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution};
use opscope_store::record::{Record, SlotSide};

use crate::running::{RunningGolden, ShownSlots};

/// The executions of the golden side by name and step.
pub struct GoldenSlots(GoldenSource);

enum GoldenSource {
    /// A dump that is whole.
    Dump(DumpTable),
    /// A run that goes on.
    Running(Arc<RunningGolden>),
}

struct DumpTable {
    dump: Arc<ComparedDump>,
    /// None where several executions have the name: which one is meant is decided later.
    runs: HashMap<(String, Option<u64>), Option<usize>>,
    /// Whether the dump has one step, which every step of a target may mean.
    has_one_step: bool,
}

/// The golden execution that a record is compared with.
pub(crate) enum GoldenExecution<'a> {
    OfDump(&'a OperatorExecution),
    Shown(ShownSlots),
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
        GoldenSlots(GoldenSource::Dump(DumpTable {
            dump,
            runs,
            has_one_step,
        }))
    }

    /// Waits for each execution that `golden` has yet to show. The target has to run the same
    /// steps.
    pub fn of_run(golden: Arc<RunningGolden>) -> GoldenSlots {
        GoldenSlots(GoldenSource::Running(golden))
    }

    /// The execution of the golden side with the name and the step of a record.
    pub(crate) fn find(&self, record: &Record) -> Option<GoldenExecution<'_>> {
        match &self.0 {
            GoldenSource::Dump(table) => table.find(record).map(GoldenExecution::OfDump),
            GoldenSource::Running(golden) => golden.find(record).map(GoldenExecution::Shown),
        }
    }
}

impl DumpTable {
    fn find(&self, record: &Record) -> Option<&OperatorExecution> {
        // Types may differ, as where an operator was replaced by another one of its name.
        let step = Some(record.step).filter(|_| !self.has_one_step);
        let key = (record.operator.op_name.clone(), step);
        let run = (*self.runs.get(&key)?)?;
        Some(&self.dump.runs[run])
    }
}

impl GoldenExecution<'_> {
    /// A slot of the execution.
    pub(crate) fn slot(&self, side: SlotSide, index: usize) -> Option<&ExecutionSlot> {
        let index = u32::try_from(index).ok()?;
        match self {
            GoldenExecution::OfDump(run) => run.slot(side, index),
            GoldenExecution::Shown(slots) => {
                // Few operators have so many slots that a table would pay.
                let mut slots = slots.iter();
                slots.find(|slot| slot.side == side && slot.index == index)
            }
        }
    }
}
