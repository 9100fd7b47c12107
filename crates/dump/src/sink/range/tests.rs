use opscope_capture::sink::MemorySink;
use opscope_tensor::Tensor;

use super::*;

fn f32s(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

fn record(task_id: u32, input: (&str, &[f32]), output: (&str, &[f32])) -> Record {
    Record {
        model: Arc::new(ModelId::first_load("m", "g")),
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

fn taken(sink: &RangeSink) -> Vec<RangeRow> {
    let rows = sink.take_rows();
    let first: Vec<RangeRow> = rows.iter().unwrap().map(Result::unwrap).collect();
    // They can be read twice.
    assert_eq!(rows.iter().unwrap().count(), first.len());
    first
}

/// Returns the rows of a sink that holds `n_in_memory` of them in memory, of steps that writers
/// hand over from the last to the first.
fn rows(n_in_memory: usize) -> Vec<String> {
    let targets = vec![DType::F16, DType::F8E5M2];
    let sink = RangeSink::new(targets, None).with_rows_in_memory(n_in_memory);
    for step in (0..20).rev() {
        for task_id in [2, 0, 1] {
            let names = [task_id, task_id + 1].map(|i| format!("v{i}"));
            let values = [1e-9, 70000.0 * step as f32, f32::NAN];
            let input = (names[0].as_str(), &values[..]);
            let record = Record {
                step,
                ..record(task_id, input, (&names[1], &[]))
            };
            sink.write(&record).unwrap();
        }
    }
    let rows = taken(&sink);
    rows.iter().map(|row| format!("{row:?}")).collect()
}

#[test]
fn rows_are_the_same_however_few_are_in_memory() {
    let expected = rows(usize::MAX);
    // Three inputs and one unread output, for two dtypes.
    assert_eq!(expected.len(), 20 * 4 * 2);
    for n_in_memory in [1, 7, 100] {
        assert_eq!(rows(n_in_memory), expected, "{n_in_memory}");
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
    let rows: Vec<_> = taken(&sink)
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
            (0, SlotSide::Input, DType::F16, 0),
            (0, SlotSide::Input, DType::F8E5M2, 0),
            (0, SlotSide::Output, DType::F16, 1),
            (0, SlotSide::Output, DType::F8E5M2, 1),
            (1, SlotSide::Output, DType::F16, 0),
            (1, SlotSide::Output, DType::F8E5M2, 0),
        ]
    );
    assert_eq!(memory.take().len(), 2);
    assert!(taken(&sink).is_empty());
}
