//! A model whose values are quantised on the way, run operator by operator.

use std::sync::Arc;

use opscope_capture::sink::MemorySink;
use opscope_capture::{
    CaptureSession, Counters, GraphView, ModelSelection, OperatorSelection, Plan, QuantisedKind,
    QuantisedPlace, SessionOptions, Sink, SlotPosition, Tap,
};
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_tensor::{DType, Shape, Tensor};

use super::double::{floats, operator};

pub(super) const CONV: usize = 1;
pub(super) const POOL: usize = 2;
pub(super) const ADD: usize = 3;

/// A value `x` that is quantised, convolved, pooled, added to itself and dequantised.
pub(super) fn operators() -> Vec<Arc<Operator>> {
    let conv = [
        "x_quantized",
        "xs",
        "xz",
        "w_quantized",
        "ws",
        "wz",
        "ys",
        "yz",
        "b_quantized",
    ];
    let pooled = "p_quantized";
    let add = [pooled, "ys", "yz", pooled, "ys", "yz", "zs", "zz"];
    vec![
        operator(
            0,
            "QuantizeLinear",
            "quantise",
            &["x", "xs", "xz"],
            &["x_quantized"],
        ),
        operator(1, "QLinearConv", "conv", &conv, &["y_quantized"]),
        operator(2, "MaxPool", "pool", &["y_quantized"], &[pooled]),
        operator(3, "QLinearAdd", "add", &add, &["z_quantized"]),
        operator(
            4,
            "DequantizeLinear",
            "z_DequantizeLinear",
            &["z_quantized", "zs", "zz"],
            &["z"],
        ),
        operator(5, "Relu", "relu", &["z"], &["r"]),
    ]
}

pub(super) fn quantised() -> Vec<QuantisedPlace> {
    use QuantisedKind::{Computes, Dequantises, Quantises};
    let at = |task_id,
              place: SlotPosition,
              value,
              kind,
              (scale, zero): (&[usize], Option<usize>),
              axis| {
        QuantisedPlace {
            task_id,
            place,
            value,
            kind,
            scale: scale.iter().map(|&i| (SlotSide::Input, i)).collect(),
            zero_point: zero.map(|i| (SlotSide::Input, i)),
            axis,
            block_size: 0,
        }
    };
    let (input, output) = (|i| (SlotSide::Input, i), (SlotSide::Output, 0));
    vec![
        at(0, output, 1, Quantises, (&[1], Some(2)), 1),
        at(1, input(0), 1, Computes, (&[1], Some(2)), 1),
        at(1, input(3), 2, Computes, (&[4], Some(5)), 0),
        at(1, input(8), 3, Computes, (&[1, 4], None), -1),
        at(1, output, 4, Computes, (&[6], Some(7)), 1),
        at(3, input(0), 5, Computes, (&[1], Some(2)), 1),
        at(3, input(3), 5, Computes, (&[4], Some(5)), 1),
        at(3, output, 6, Computes, (&[6], Some(7)), 1),
        at(4, input(0), 6, Dequantises, (&[1], Some(2)), 1),
    ]
}

pub(super) fn bytes(values: &[i8]) -> Tensor {
    let shape = Shape::new([1, values.len()]).unwrap();
    let bytes = values.iter().map(|n| n.cast_unsigned()).collect();
    Tensor::from_vec(DType::I8, shape, bytes).unwrap()
}

pub(super) fn zero(value: i8) -> Tensor {
    Tensor::from_vec(DType::I8, Shape::scalar(), vec![value.cast_unsigned()]).unwrap()
}

pub(super) fn scale(value: f32) -> Tensor {
    let bytes = value.to_le_bytes().to_vec();
    Tensor::from_vec(DType::F32, Shape::scalar(), bytes).unwrap()
}

/// The weight: two output channels, two input channels.
pub(super) fn weight() -> Tensor {
    Tensor::from_vec(DType::I8, Shape::new([2, 2]).unwrap(), vec![1, 2, 3, 0xff]).unwrap()
}

pub(super) fn value(name: &str) -> Tensor {
    match name {
        "x_quantized" => bytes(&[3, -128]),
        "xs" => scale(0.5),
        "xz" => zero(1),
        "w_quantized" => weight(),
        "ws" => floats(&[2.0, 4.0]),
        "wz" => Tensor::from_vec(DType::I8, Shape::new([2]).unwrap(), vec![0, 1]).unwrap(),
        "b_quantized" => {
            let codes = [100_i32, -7].iter().flat_map(|n| n.to_le_bytes());
            Tensor::from_vec(DType::I32, Shape::new([2]).unwrap(), codes.collect()).unwrap()
        }
        "ys" => scale(0.25),
        "yz" => zero(-4),
        "y_quantized" => bytes(&[0, 4]),
        "p_quantized" => bytes(&[4, 8]),
        "z_quantized" => bytes(&[9, 9]),
        "zs" => scale(1.0),
        "zz" => zero(0),
        _ => floats(&[1.0, 2.0]),
    }
}

pub(super) fn execute(tap: &Tap, operator: &Arc<Operator>) {
    let Some(mut probe) = tap.open(operator) else {
        return;
    };
    if probe.wants_inputs() {
        for (i, name) in operator.inputs.iter().enumerate() {
            probe.input(i, value(name));
        }
    }
    if probe.wants_outputs() {
        for (i, name) in operator.outputs.iter().enumerate() {
            probe.output(i, value(name));
        }
    }
    probe.submit();
}

pub(super) fn with_options(
    plan: Plan,
    sink: Arc<dyn Sink>,
    options: SessionOptions,
    run: impl FnOnce(&mut Tap, &[Arc<Operator>]),
) -> Counters {
    let session = CaptureSession::start(plan, sink, options).unwrap();
    let (operators, quantised) = (operators(), quantised());
    let graph = GraphView {
        operators: &operators,
        quantised: &quantised,
        ..GraphView::default()
    };
    let (mut tap, _) = session.attach_graph(&Arc::new(ModelId::default()), graph);
    run(&mut tap, &operators);
    let counters = session.finish().counters;
    let ends = counters.n_written + counters.n_refused + counters.n_dropped + counters.n_failed;
    assert_eq!(counters.n_selected, ends);
    assert!(counters.n_offered >= counters.n_selected);
    counters
}

pub(super) fn records(plan: Plan, run: impl FnOnce(&mut Tap, &[Arc<Operator>])) -> Vec<Record> {
    let sink = Arc::new(MemorySink::default());
    let options = SessionOptions {
        n_writers: 1,
        ..SessionOptions::default()
    };
    let counters = with_options(plan, sink.clone(), options, run);
    assert_eq!(counters.n_written, counters.n_selected);
    let records = sink.take();
    let n_bytes: u64 = records.iter().map(Record::n_bytes).sum();
    assert_eq!(n_bytes, counters.n_bytes_selected);
    records
}

pub(super) fn once(tap: &mut Tap, operators: &[Arc<Operator>]) {
    tap.begin_step(0);
    operators.iter().for_each(|operator| execute(tap, operator));
    tap.end_step();
}

pub(super) fn everything() -> Plan {
    Plan {
        shows_quantising: true,
        ..Plan::everything()
    }
}

pub(super) fn only(name: &str) -> Plan {
    Plan {
        models: ModelSelection::Every(OperatorSelection::named([name])),
        ..everything()
    }
}

/// Each record as `task:name:inputs/outputs`, in order.
pub(super) fn lines(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| {
            let (n_in, n_out) = (record.inputs.len(), record.outputs.len());
            let operator = &record.operator;
            format!("{}:{}:{n_in}/{n_out}", operator.task_id, operator.op_name)
        })
        .collect();
    lines.sort();
    lines
}

pub(super) fn numbers(tensor: &Tensor) -> Vec<f32> {
    assert_eq!(tensor.dtype(), DType::F32);
    let bytes = tensor.host_bytes().unwrap().as_chunks::<4>().0;
    bytes.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
