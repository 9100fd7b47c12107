//! The overflow rules, one table for each kind of operator.

mod accumulate;
mod casts;
mod elementwise;
mod floats;
mod reductions;

use std::sync::Arc;

use half::{bf16, f16};
use opscope_overflow::{OperatorOverflow, OverflowDetector, ValueDetector};
use opscope_store::record::{ModelId, Operator, Record};
use opscope_tensor::{DType, Shape, Tensor};

/// A tensor of integers of any width up to 64 bits.
fn ints(dtype: DType, dims: &[usize], values: &[i128]) -> Tensor {
    let n_bytes = dtype.bytes().unwrap();
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes()[..n_bytes].to_vec());
    tensor(dtype, dims, bytes.collect())
}

/// A tensor of floating-point numbers, rounded to `dtype`.
fn floats(dtype: DType, dims: &[usize], values: &[f64]) -> Tensor {
    let bytes = values.iter().flat_map(|&value| match dtype {
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
        other => panic!("{other} is not for this function"),
    });
    tensor(dtype, dims, bytes.collect())
}

fn tensor(dtype: DType, dims: &[usize], bytes: Vec<u8>) -> Tensor {
    Tensor::from_vec(dtype, Shape::new(dims).unwrap(), bytes).unwrap()
}

/// Returns a tensor of zeros, for the record of an execution whose output only has to exist.
fn zeros(dtype: DType, dims: &[usize]) -> Tensor {
    let n_bytes = Shape::new(dims).unwrap().n_bytes(dtype).unwrap();
    tensor(dtype, dims, vec![0; n_bytes])
}

fn record(
    op_type: &str,
    attributes: &[(&str, &str)],
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
) -> Record {
    let inputs = inputs.into_iter().map(Some).collect();
    record_with_gaps(op_type, attributes, inputs, outputs)
}

/// `None` is an optional input that is absent.
fn record_with_gaps(
    op_type: &str,
    attributes: &[(&str, &str)],
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
) -> Record {
    let name = |(i, tensor): (usize, &Option<Tensor>)| match tensor {
        Some(_) => format!("in{i}"),
        None => String::new(),
    };
    let operator = Operator {
        op_type: op_type.into(),
        op_name: "op".into(),
        inputs: inputs.iter().enumerate().map(name).collect(),
        outputs: (0..outputs.len()).map(|i| format!("out{i}")).collect(),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        ..Operator::default()
    };
    let model = ModelId::first_load("m", "g");
    let present = |(i, tensor): (usize, Option<Tensor>)| Some((i, tensor?));
    Record {
        model: Arc::new(model),
        operator: Arc::new(operator),
        step: 0,
        timestamp_us: 0,
        inputs: inputs.into_iter().enumerate().filter_map(present).collect(),
        outputs: outputs.into_iter().enumerate().collect(),
    }
}

/// The status, 0 without an overflow.
fn status(record: &Record) -> u64 {
    ValueDetector
        .detect(record)
        .map_or(0, |overflow| overflow.status)
}

/// Status, number of elements and first element of the single place.
fn place(record: &Record) -> Option<(u64, u64, usize)> {
    let OperatorOverflow { status, places } = ValueDetector.detect(record)?;
    let [place] = places[..] else {
        panic!("{places:?}");
    };
    assert_eq!(place.cause.bit(), status);
    Some((status, place.n_elements, place.first_element))
}

#[test]
fn the_record_of_an_overflow() {
    use opscope_store::file_format::op_debug::OverflowRecord;

    let big = floats(DType::F32, &[1], &[3e38]);
    let inf = floats(DType::F32, &[1], &[f64::INFINITY]);
    let overflow = ValueDetector
        .detect(&record("Add", &[], vec![big.clone(), big], vec![inf]))
        .unwrap();
    let record = OverflowRecord::Blocks(overflow.to_record(3, 0, 41));
    let json = record.to_json();
    let core = &json["AI Core"];
    let ids = ["model_id", "stream_id", "task_id", "task_type", "status"].map(|key| &core[key]);
    assert_eq!(ids, [3, 0, 41, 0, 0x20]);
    assert_eq!(core["pc_start"], "0x0");
    assert_eq!(json["L2 Atomic Add"]["status"], 0);
    assert_eq!(OverflowRecord::decode(&record.encode()).unwrap(), record);
}
