//! A sink that asks what each tensor would lose in narrower dtypes.

mod report;
mod stored;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::overflow::OperatorOverflow;
use opscope_capture::{
    GraphView, OperatorFailure, SelectedOperators, Sink, SinkError, StepRemover, WrittenFiles,
};
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_tensor::{DType, RangeLoss, Shape, range_loss};

use super::spool::{N_IN_MEMORY_MAX, RowSpooler, SpooledRows, StoredRows};

pub use report::{RangeReport, RangeTotal, SmallLosses};

/// One tensor in one narrower dtype.
#[derive(Clone, Debug)]
pub struct RangeRow {
    /// Execution of the model.
    pub step: u64,
    /// The operator that shows the tensor first.
    pub operator: Arc<Operator>,
    /// Input or output.
    pub side: SlotSide,
    /// Which of them.
    pub index: usize,
    /// Type of the elements.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
    /// The narrower dtype.
    pub target: DType,
    /// The tensor's loss in that dtype.
    pub loss: RangeLoss,
    /// The index of the narrower dtype among the requested ones.
    target_idx: usize,
}

/// Rows by step, task, side, position and dtype.
///
/// A tensor that several operators share, as the output of one and the input of others, is reported
/// once in each step, at its first use.
pub struct RangeRows(SpooledRows<RangeRow>);

impl RangeRows {
    /// The rows in order. They may be read again and again.
    ///
    /// # Errors
    /// [`SinkError`] if a file that holds some of them cannot be read.
    pub fn iter(&self) -> Result<DistinctRows<'_>, SinkError> {
        Ok(DistinctRows {
            rows: self.0.iter()?,
            step: None,
            seen: HashSet::new(),
        })
    }
}

/// Rows on their way out, each tensor of a step once.
pub struct DistinctRows<'a> {
    rows: StoredRows<'a, RangeRow>,
    step: Option<u64>,
    /// The tensors of the step so far, with the place of the dtype.
    seen: HashSet<(usize, String)>,
}

impl Iterator for DistinctRows<'_> {
    type Item = Result<RangeRow, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let row = match self.rows.next()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            if self.step.replace(row.step) != Some(row.step) {
                self.seen.clear();
            }
            // Repetitions are left out here and not when rows come: writers add them in any order,
            // and only among sorted rows is it known which is first.
            let name = row.value_name().to_owned();
            if self.seen.insert((row.target_idx, name)) {
                return Some(Ok(row));
            }
        }
    }
}

/// Keeps a row for each tensor and narrower dtype, and passes records on to another sink, if any.
/// As for [`StatsSink`](super::StatsSink), most rows wait in a file without a name.
pub struct RangeSink {
    targets: Vec<DType>,
    next: Option<Arc<dyn Sink>>,
    rows: Mutex<RowSpooler<RangeRow>>,
    n_in_memory_max: usize,
}

impl RangeSink {
    /// A sink that checks tensors whose dtype is wider than one of `targets`.
    pub fn new(targets: Vec<DType>, next: Option<Arc<dyn Sink>>) -> RangeSink {
        RangeSink {
            targets,
            next,
            rows: Mutex::default(),
            n_in_memory_max: N_IN_MEMORY_MAX,
        }
    }

    /// The same sink with about this many rows in memory.
    #[must_use]
    pub fn with_rows_in_memory(self, n_max: usize) -> RangeSink {
        RangeSink {
            n_in_memory_max: n_max,
            ..self
        }
    }

    /// The rows so far; the sink is empty afterwards.
    pub fn take_rows(&self) -> RangeRows {
        let rows = std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        RangeRows(rows.finish())
    }

    /// [`RangeSink::take_rows`] with totals for each dtype.
    ///
    /// # Errors
    /// [`SinkError`] if a file that holds some of the rows cannot be read.
    pub fn take_report(&self) -> Result<RangeReport, SinkError> {
        RangeReport::new(&self.targets, self.take_rows())
    }

    fn look_at(&self, record: &Record) -> Result<(), SinkError> {
        let mut rows = Vec::new();
        for (side, index, tensor) in record.slots() {
            // Without elements there is nothing to lose.
            let Ok(view) = tensor.host_view() else {
                continue;
            };
            let targets = self.targets.iter().enumerate();
            rows.extend(targets.filter_map(|(target_idx, &target)| {
                Some(RangeRow {
                    step: record.step,
                    operator: record.operator.clone(),
                    side,
                    index,
                    dtype: tensor.dtype(),
                    shape: tensor.shape().clone(),
                    target,
                    loss: range_loss(view, target)?,
                    target_idx,
                })
            }));
        }
        let mut all = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(rows, self.n_in_memory_max)
    }

    fn hand_on(
        &self,
        record: &Record,
        write: impl FnOnce(&dyn Sink) -> Result<WrittenFiles, SinkError>,
    ) -> Result<WrittenFiles, SinkError> {
        // A row that cannot be stored does not prevent writing the record.
        let looked_at = self.look_at(record);
        let written = self
            .next
            .as_deref()
            .map_or(Ok(WrittenFiles::default()), write)?;
        looked_at.map(|()| written)
    }
}

impl RangeRow {
    /// The tensor's name in the graph.
    fn value_name(&self) -> &str {
        let names = match self.side {
            SlotSide::Input => &self.operator.inputs,
            SlotSide::Output => &self.operator.outputs,
        };
        names.get(self.index).map_or("", String::as_str)
    }
}

impl Sink for RangeSink {
    // `summarizer` and `batch_preparer` are not those of the next sink: a summarizer may release
    // the elements, which are needed here.
    fn keeps_tensors(&self) -> bool {
        self.next.as_ref().is_some_and(|next| next.keeps_tensors())
    }

    fn write(&self, record: &Record) -> Result<WrittenFiles, SinkError> {
        self.hand_on(record, |next| next.write(record))
    }

    fn write_overflow(
        &self,
        record: &Record,
        overflow: &OperatorOverflow,
    ) -> Result<WrittenFiles, SinkError> {
        self.hand_on(record, |next| next.write_overflow(record, overflow))
    }

    fn write_failure(
        &self,
        record: &Record,
        failure: &OperatorFailure,
    ) -> Result<WrittenFiles, SinkError> {
        self.hand_on(record, |next| next.write_failure(record, failure))
    }

    fn open_model(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &SelectedOperators,
    ) -> Result<WrittenFiles, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(WrittenFiles::default()),
            |next| next.open_model(model, graph, selected),
        )
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(WrittenFiles::default()),
            |next| next.begin_step(model, step),
        )
    }

    fn end_step(&self, model: &ModelId, step: u64) -> Result<WrittenFiles, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(WrittenFiles::default()),
            |next| next.end_step(model, step),
        )
    }

    fn finish(&self) -> Result<WrittenFiles, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(|| Ok(WrittenFiles::default()), |next| next.finish())
    }

    /// The rows of a removed step stay: they are not part of the dump.
    fn step_remover(&self) -> Option<&dyn StepRemover> {
        self.next.as_ref()?.step_remover()
    }
}

#[cfg(test)]
mod tests;
