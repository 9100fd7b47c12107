//! A sink that asks what each tensor would lose in narrower dtypes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_store::record::{ModelId, Operator, Record, Side};
use opscope_tensor::{DType, RangeLoss, Shape, range_loss};

use super::{Removed, Sink, SinkError, Written};
use crate::overflow::Overflow;
use crate::{Failure, GraphView, Selected};

/// One tensor in one narrower dtype.
#[derive(Clone, Debug)]
pub struct RangeRow {
    /// Execution of the model.
    pub step: u64,
    /// The operator that shows the tensor first.
    pub operator: Arc<Operator>,
    /// Input or output.
    pub side: Side,
    /// Which of them.
    pub index: usize,
    /// Type of the elements.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: Shape,
    /// The narrower dtype.
    pub target: DType,
    /// What it would lose there.
    pub loss: RangeLoss,
}

/// Keeps a row for each tensor and narrower dtype, and hands records on to another sink, if there is
/// one.
pub struct RangeSink {
    targets: Vec<DType>,
    next: Option<Arc<dyn Sink>>,
    rows: Mutex<Vec<RangeRow>>,
}

impl RangeSink {
    /// A sink that looks at tensors whose dtype is wider than one of `targets`.
    pub fn new(targets: Vec<DType>, next: Option<Arc<dyn Sink>>) -> RangeSink {
        RangeSink {
            targets,
            next,
            rows: Mutex::default(),
        }
    }

    /// The rows so far, by step, task, side, position and dtype; the sink is empty afterwards.
    ///
    /// A tensor that several operators share, as the output of one and the input of others, is told
    /// once in each step: where it comes first.
    pub fn take(&self) -> Vec<RangeRow> {
        let mut rows =
            std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        let position = |dtype| self.targets.iter().position(|target| *target == dtype);
        rows.sort_by_key(|row| {
            let task_id = row.operator.task_id;
            (row.step, task_id, row.side, row.index, position(row.target))
        });
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert((row.step, row.target, row.value_name().to_owned())));
        rows
    }

    fn look_at(&self, record: &Record) {
        let mut rows = Vec::new();
        for (side, index, tensor) in record.slots() {
            let of_target = |&target: &DType| {
                Some(RangeRow {
                    step: record.step,
                    operator: record.operator.clone(),
                    side,
                    index,
                    dtype: tensor.dtype(),
                    shape: tensor.shape().clone(),
                    target,
                    loss: range_loss(tensor.view(), target)?,
                })
            };
            rows.extend(self.targets.iter().filter_map(of_target));
        }
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(rows);
    }

    fn hand_on(
        &self,
        record: &Record,
        write: impl FnOnce(&dyn Sink) -> Result<Written, SinkError>,
    ) -> Result<Written, SinkError> {
        self.look_at(record);
        self.next.as_deref().map_or(Ok(Written::default()), write)
    }
}

impl RangeRow {
    /// The name that the graph gives the tensor.
    fn value_name(&self) -> &str {
        let names = match self.side {
            Side::Input => &self.operator.inputs,
            Side::Output => &self.operator.outputs,
        };
        names.get(self.index).map_or("", String::as_str)
    }
}

impl Sink for RangeSink {
    fn keeps_tensors(&self) -> bool {
        self.next.as_ref().is_some_and(|next| next.keeps_tensors())
    }

    fn write(&self, record: &Record) -> Result<Written, SinkError> {
        self.hand_on(record, |next| next.write(record))
    }

    fn write_overflow(&self, record: &Record, overflow: &Overflow) -> Result<Written, SinkError> {
        self.hand_on(record, |next| next.write_overflow(record, overflow))
    }

    fn write_failure(&self, record: &Record, failure: &Failure) -> Result<Written, SinkError> {
        self.hand_on(record, |next| next.write_failure(record, failure))
    }

    fn open_model(
        &self,
        model: &Arc<ModelId>,
        graph: GraphView<'_>,
        selected: &Selected,
    ) -> Result<Written, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(Written::default()),
            |next| next.open_model(model, graph, selected),
        )
    }

    fn begin_step(&self, model: &ModelId, step: u64) -> Result<Written, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(Written::default()),
            |next| next.begin_step(model, step),
        )
    }

    fn remember_steps(&self) -> Result<(), SinkError> {
        let next = self.next.as_ref();
        next.map_or(Ok(()), |next| next.remember_steps())
    }

    /// The rows of the step stay: they are no part of the dump.
    fn remove_step(&self, model: &ModelId, step: u64) -> Result<Removed, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(
            || Ok(Removed::default()),
            |next| next.remove_step(model, step),
        )
    }

    fn keep_step(&self, model: &ModelId, step: u64) {
        if let Some(next) = &self.next {
            next.keep_step(model, step);
        }
    }

    fn finish(&self) -> Result<Written, SinkError> {
        let next = self.next.as_ref();
        next.map_or_else(|| Ok(Written::default()), |next| next.finish())
    }
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Tensor;

    use super::*;
    use crate::sink::MemorySink;

    fn f32s(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
    }

    fn record(task_id: u32, input: (&str, &[f32]), output: (&str, &[f32])) -> Record {
        Record {
            model: Arc::new(ModelId {
                file_stem: "m".into(),
                graph_name: "g".into(),
                load: Some(1),
                device: 0,
            }),
            operator: Arc::new(Operator {
                task_id,
                op_type: "Mul".into(),
                op_name: format!("op{task_id}"),
                inputs: vec![input.0.into()],
                outputs: vec![output.0.into()],
                ..Operator::default()
            }),
            step: 0,
            timestamp_us: 0,
            inputs: vec![(0, f32s(input.1))],
            outputs: vec![(0, f32s(output.1))],
        }
    }

    #[test]
    fn each_tensor_once_where_it_comes_first() {
        let memory = Arc::new(MemorySink::default());
        let targets = vec![DType::F16, DType::F8E5M2];
        let sink = RangeSink::new(targets, Some(memory.clone()));
        // Writers hand records over in any order.
        sink.write(&record(1, ("b", &[1e5]), ("c", &[1.0])))
            .unwrap();
        sink.write(&record(0, ("a", &[1.0]), ("b", &[1e5])))
            .unwrap();
        let rows: Vec<_> = sink
            .take()
            .into_iter()
            .map(|row| {
                (
                    row.operator.task_id,
                    row.side,
                    row.target,
                    row.loss.n_overflow,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (0, Side::Input, DType::F16, 0),
                (0, Side::Input, DType::F8E5M2, 0),
                (0, Side::Output, DType::F16, 1),
                (0, Side::Output, DType::F8E5M2, 1),
                (1, Side::Output, DType::F16, 0),
                (1, Side::Output, DType::F8E5M2, 0),
            ]
        );
        assert_eq!(memory.take().len(), 2);
        assert!(sink.take().is_empty());
    }
}
