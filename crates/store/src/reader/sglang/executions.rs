//! Executions of modules, assembled from values that were saved one by one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::SharedPath;
use crate::reader::index::{IndexedExecution, IndexedTensor, OperatorInFile};
use crate::record::SlotSide;

/// A tensor with its execution, before executions are numbered.
pub(super) struct SavedTensor {
    pub(super) execution: IndexedExecution,
    pub(super) record: IndexedTensor,
    /// Which input or output of a module it is; none of values that a program saves itself.
    pub(super) part: Option<String>,
}

impl SavedTensor {
    pub(super) fn new(execution: IndexedExecution, record: IndexedTensor) -> SavedTensor {
        SavedTensor {
            execution,
            record,
            part: None,
        }
    }
}

/// The operators of a file, in the order of their first tensors.
pub(super) fn operators(tensors: &[SavedTensor]) -> Vec<OperatorInFile> {
    let mut operators: Vec<OperatorInFile> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for SavedTensor {
        execution, record, ..
    } in tensors
    {
        let position = *positions
            .entry(&execution.op_name)
            .or_insert(operators.len());
        if position == operators.len() {
            operators.push(OperatorInFile {
                op_name: execution.op_name.clone(),
                ..OperatorInFile::default()
            });
        }
        let operator = &mut operators[position];
        let is_input = matches!(record.slot, Some((SlotSide::Input, _)));
        operator.n_inputs += u64::from(is_input);
        operator.n_outputs += u64::from(!is_input);
        operator.n_bytes = operator.n_bytes.saturating_add(record.n_bytes.unwrap_or(0));
    }
    operators
}

/// An execution with its tensors.
struct SavedExecution {
    execution: IndexedExecution,
    records: Vec<IndexedTensor>,
    /// The parts of a module that it has, and how many of them are inputs and outputs.
    parts: HashSet<String>,
    n_inputs: u32,
    n_outputs: u32,
    file: SharedPath,
    /// When its last tensor was saved, in the order of the dump.
    last: usize,
}

/// Executions in the order in which they ended.
#[derive(Default)]
pub(super) struct SavedExecutions {
    executions: Vec<SavedExecution>,
    /// The position of the last run of each.
    last_runs: HashMap<IndexedExecution, usize>,
    n_tensors: usize,
}

impl SavedExecutions {
    /// Adds the tensors of the next file. `run` names the run of the program that they are of.
    pub(super) fn add(&mut self, run: Option<&str>, tensors: Vec<SavedTensor>) {
        for mut tensor in tensors {
            tensor.execution.model = run.map(Into::into);
            self.n_tensors += 1;
            // Only the last run can go on.
            let known = self.last_runs.get(&tensor.execution).copied();
            let position =
                known.filter(|&position| self.executions[position].goes_on_with(&tensor));
            let position = position.unwrap_or_else(|| self.begin(&tensor, known));
            let execution = &mut self.executions[position];
            execution.last = self.n_tensors;
            execution.take(tensor);
        }
    }

    fn begin(&mut self, tensor: &SavedTensor, known: Option<usize>) -> usize {
        let run = known.map_or(0, |position| self.executions[position].execution.run + 1);
        let position = self.executions.len();
        self.last_runs.insert(tensor.execution.clone(), position);
        self.executions.push(SavedExecution {
            execution: IndexedExecution {
                run,
                ..tensor.execution.clone()
            },
            records: Vec::new(),
            parts: HashSet::new(),
            n_inputs: 0,
            n_outputs: 0,
            file: tensor.record.path.clone(),
            last: 0,
        });
        position
    }

    /// The tensors in the order of execution. A module ends when its output is saved, after the
    /// modules in it, although its inputs were saved before theirs.
    pub(super) fn into_records(self) -> Vec<IndexedTensor> {
        let mut executions = self.executions;
        executions.sort_by(|a, b| {
            let order = (a.execution.model.cmp(&b.execution.model))
                .then(a.execution.rank.cmp(&b.execution.rank))
                .then(a.execution.step.cmp(&b.execution.step));
            order.then(a.last.cmp(&b.last))
        });
        executions
            .into_iter()
            .flat_map(|mut saved| {
                let execution = Arc::new(saved.execution);
                saved.records.sort_by_key(|record| record.slot);
                saved.records.into_iter().map(move |record| IndexedTensor {
                    execution: execution.clone(),
                    ..record
                })
            })
            .collect()
    }
}

impl SavedExecution {
    /// Whether a tensor is a further one of this execution.
    fn goes_on_with(&self, tensor: &SavedTensor) -> bool {
        match &tensor.part {
            Some(part) => {
                let is_input = matches!(tensor.record.slot, Some((SlotSide::Input, _)));
                // An input after an output belongs to the next call.
                !(self.parts.contains(part) || is_input && self.n_outputs > 0)
            }
            // The program saved it separately, together with everything else in the file.
            None => self.file == tensor.record.path,
        }
    }

    fn take(&mut self, tensor: SavedTensor) {
        let mut record = tensor.record;
        if let (Some(part), Some((side, _))) = (tensor.part, record.slot) {
            let n_on_side = match side {
                SlotSide::Input => &mut self.n_inputs,
                SlotSide::Output => &mut self.n_outputs,
            };
            // Arguments by name have no position, so that all are counted as they come.
            record.slot = Some((side, *n_on_side));
            *n_on_side = n_on_side.saturating_add(1);
            self.parts.insert(part);
        }
        self.records.push(record);
    }
}
