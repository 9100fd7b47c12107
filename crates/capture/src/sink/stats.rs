//! A sink that reduces each tensor to its statistics.

use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::record::{Operator, Record, Side};
use opscope_tensor::{DType, Observed, Shape, Stats};

use super::{Sink, SinkError, Written};

/// One tensor's row.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// Execution of the model.
    pub step: u64,
    /// The operator.
    pub operator: Arc<Operator>,
    /// Input or output.
    pub side: Side,
    /// Which of them.
    pub index: usize,
    /// Type of the elements.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: Shape,
    /// The statistics, or `None` for types that have none.
    pub stats: Option<Stats>,
}

/// Keeps a row for each tensor and no tensor.
#[derive(Default)]
pub struct StatsSink {
    rows: Mutex<Vec<StatsRow>>,
}

impl StatsSink {
    /// The rows so far, by step, task, name, side and position; the sink is empty afterwards.
    pub fn take(&self) -> Vec<StatsRow> {
        let mut rows =
            std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        // Under one task there may be records beside the operator's own.
        rows.sort_by(|a, b| place(a).cmp(&place(b)));
        rows
    }
}

fn place(row: &StatsRow) -> (u64, u32, &str, Side, usize) {
    let operator = &row.operator;
    (
        row.step,
        operator.task_id,
        &operator.op_name,
        row.side,
        row.index,
    )
}

impl Sink for StatsSink {
    fn is_reducing(&self) -> bool {
        true
    }

    fn reduce(&self, tensor: Observed<'_>) -> bool {
        let _ = tensor.stats();
        true
    }

    fn write(&self, record: &Record) -> Result<Written, SinkError> {
        let rows: Vec<StatsRow> = record
            .slots()
            .map(|(side, index, tensor)| StatsRow {
                step: record.step,
                operator: record.operator.clone(),
                side,
                index,
                dtype: tensor.dtype(),
                shape: tensor.shape().clone(),
                stats: tensor.stats().ok().copied(),
            })
            .collect();
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(rows);
        Ok(Written::default())
    }
}
