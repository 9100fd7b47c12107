//! A sink that reduces each tensor to its statistics.

mod stored;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_capture::{Sink, SinkError, TensorSummarizer, WrittenFiles};
use opscope_store::record::{Operator, Record, SlotSide};
use opscope_tensor::{DType, Shape, Stats, TensorObserver};

use super::spool::{N_IN_MEMORY_MAX, RowSpooler, SpooledRows};

/// Rows by step, task, name, side and position.
pub type StatsRows = SpooledRows<StatsRow>;

/// One tensor's row.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// Execution of the model.
    pub step: u64,
    /// The operator.
    pub operator: Arc<Operator>,
    /// Input or output.
    pub side: SlotSide,
    /// Which of them.
    pub index: usize,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// The statistics, or `None` for types that have none.
    pub stats: Option<Stats>,
}

/// Keeps a row for each tensor and no tensor. However many steps there are, it holds no more memory
/// than for some thousands of rows: the others wait in a file without a name, where temporary files
/// are.
pub struct StatsSink {
    rows: Mutex<RowSpooler<StatsRow>>,
    n_in_memory_max: usize,
}

impl Default for StatsSink {
    fn default() -> Self {
        StatsSink::with_rows_in_memory(N_IN_MEMORY_MAX)
    }
}

impl StatsSink {
    /// A sink with about this many rows in memory.
    pub fn with_rows_in_memory(n_max: usize) -> StatsSink {
        StatsSink {
            rows: Mutex::default(),
            n_in_memory_max: n_max.max(1),
        }
    }

    /// The rows so far; the sink is empty afterwards.
    pub fn take_rows(&self) -> StatsRows {
        std::mem::take(&mut *self.lock()).finish()
    }

    /// [`StatsSink::take_rows`] as a list.
    ///
    /// # Errors
    /// [`SinkError`] if rows that are in a file cannot be read.
    pub fn take(&self) -> Result<Vec<StatsRow>, SinkError> {
        self.take_rows().iter()?.collect()
    }

    /// Maximum number of rows that are in memory now.
    #[cfg(test)]
    fn n_in_memory(&self) -> usize {
        self.lock().n_in_memory()
    }

    fn lock(&self) -> MutexGuard<'_, RowSpooler<StatsRow>> {
        // Rows are added whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for StatsSink {
    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        let rows: Vec<StatsRow> = record
            .slots()
            .map(|(side, index, tensor)| StatsRow {
                step: record.step,
                operator: record.operator.clone(),
                side,
                index,
                dtype: tensor.dtype(),
                shape: tensor.shape().clone(),
                // Of small tensors the engine's thread has left them in the memo, and the elements
                // are gone by now.
                stats: tensor.stats().ok().copied(),
            })
            .collect();
        // Rows that cannot be stored stay in memory, and the record is reported as failed.
        self.lock().add(rows, self.n_in_memory_max)?;
        Ok(WrittenFiles::default())
    }

    fn takes_device_numbers(&self) -> bool {
        true
    }

    fn summarizer(&self) -> Option<&dyn TensorSummarizer> {
        Some(self)
    }
}

impl TensorSummarizer for StatsSink {
    fn summarize(&self, tensor: TensorObserver<'_>) -> bool {
        // Elements of types without statistics have no use for a row either, so they are released
        // too.
        let _ = tensor.stats();
        true
    }
}

#[cfg(test)]
mod tests;
