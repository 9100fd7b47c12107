use std::sync::Arc;

use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

use super::*;

fn record(step: u64, task_id: u32, value: f32) -> Record {
    let bytes = [value, f32::NAN, -0.0].map(f32::to_le_bytes).concat();
    let tensor = Tensor::from_vec(DType::F32, Shape::new([3]).unwrap(), bytes).unwrap();
    let text = Tensor::from_vec(DType::String, Shape::new([0]).unwrap(), Vec::new()).unwrap();
    Record {
        model: Arc::new(ModelId::first_load("m", "g")),
        operator: Arc::new(Operator {
            task_id,
            op_type: "Add".into(),
            op_name: format!("op{task_id}"),
            ..Operator::default()
        }),
        step,
        timestamp_us: 0,
        inputs: vec![(0, tensor.clone()), (1, text)],
        outputs: vec![(0, tensor)],
    }
}

/// Returns the rows of a sink that holds `n_in_memory` of them in memory, of steps that writers
/// hand over from the last to the first.
fn rows(n_in_memory: usize, n_steps: u64) -> Vec<String> {
    let sink = StatsSink::with_rows_in_memory(n_in_memory);
    for step in (0..n_steps).rev() {
        for task_id in [2, 0, 1] {
            let value = step as f32 + task_id as f32;
            sink.write(&record(step, task_id, value)).unwrap();
            assert!(sink.n_in_memory() <= n_in_memory.saturating_add(3));
        }
    }
    let rows = sink.take_rows();
    let first: Vec<String> = (rows.iter().unwrap())
        .map(|row| format!("{:?}", row.unwrap()))
        .collect();
    // They can be read twice, and the sink is empty.
    assert_eq!(rows.iter().unwrap().count(), first.len());
    assert!(sink.take().unwrap().is_empty());
    first
}

#[test]
fn rows_are_the_same_however_few_are_in_memory() {
    let expected = rows(usize::MAX, 50);
    assert_eq!(expected.len(), 50 * 9);
    for n_in_memory in [1, 7, 64, 449, 450] {
        assert_eq!(rows(n_in_memory, 50), expected, "{n_in_memory}");
    }
}
