//! A sink that keeps records in memory, for tests and for callers that want the tensors.

use std::sync::{Mutex, PoisonError};

use opscope_store::record::{ModelId, Record};

use super::{Sink, SinkError, StepRemoval, StepRemover, WrittenFiles};

/// Keeps every record. Their tensors stay shared with the engine: no data is copied.
#[derive(Default)]
pub struct MemorySink {
    records: Mutex<Vec<Record>>,
}

impl MemorySink {
    /// The records so far, by step, then by task; the sink is empty afterwards.
    pub fn take(&self) -> Vec<Record> {
        let mut records =
            std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner));
        records.sort_by_key(|record| (record.step, record.operator.task_id, record.timestamp_us));
        records
    }
}

impl Sink for MemorySink {
    fn keeps_tensors(&self) -> bool {
        true
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let n_bytes = record.n_bytes();
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record.clone());
        Ok(WrittenFiles {
            n_files: 0,
            n_bytes,
            ..WrittenFiles::default()
        })
    }

    fn step_remover(&self) -> Option<&dyn StepRemover> {
        Some(self)
    }
}

impl StepRemover for MemorySink {
    // Records in memory say themselves which step they are of.
    fn remember_steps(&self) {}

    fn remove_step(&self, model: &ModelId, step: u64) -> Result<StepRemoval, SinkError> {
        let mut removed = StepRemoval::default();
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|record| {
            let is_kept = record.step != step || *record.model != *model;
            if !is_kept {
                removed.n_bytes += record.n_bytes();
            }
            is_kept
        });
        Ok(removed)
    }
}
