//! The golden slots, found by the names of a running operator.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_analysis::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution};
use opscope_store::record::{Record, SlotSide};

use crate::running::{RunningGolden, ShownSlots};

/// The executions of the golden side by name and step.
pub struct GoldenSlots(GoldenSource);

enum GoldenSource {
    /// A complete dump.
    Dump(DumpTable),
    /// A run in progress.
    Running(Arc<RunningGolden>),
}

struct DumpTable {
    dump: Arc<ComparedDump>,
    /// None if several executions have the name: they are matched later.
    runs: HashMap<(String, Option<u64>), Option<usize>>,
    /// Whether the dump has a single step, which may match every step of a target.
    has_one_step: bool,
}

/// The golden execution that a record is compared with.
pub(crate) enum GoldenExecution<'a> {
    OfDump(&'a OperatorExecution),
    Shown(ShownSlots),
}

impl GoldenSlots {
    /// Indexes all executions of `dump`.
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
        // Types may differ if an operator was replaced by another with its name.
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
                // A table would rarely pay: few operators have that many slots.
                let mut slots = slots.iter();
                slots.find(|slot| slot.side == side && slot.index == index)
            }
        }
    }
}
