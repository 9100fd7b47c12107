//! Which operators have quantised values, and where.

use opscope_capture::{QuantisedKind, QuantisedPlace, SlotPosition};
use opscope_store::record::SlotSide;

use crate::onnx::proto;
use crate::onnx::schema::NodeProto;

/// The axis of a scale where `QuantizeLinear` and `DequantizeLinear` do not say it.
const AXIS_DEFAULT: i64 = 1;
/// The domains of the operators that ONNX Runtime adds.
const RUNTIME_DOMAINS: &[&str] = &["com.microsoft", "com.ms.internal.nhwc"];

/// A place of an operator, and where the scale and the zero point for it are.
#[derive(Clone)]
struct QuantisedSlot {
    place: SlotPosition,
    scale: Vec<SlotPosition>,
    zero_point: Option<SlotPosition>,
    axis: i64,
}

/// Input `at`, with scale and zero point in two other inputs.
fn read(at: usize, scale: usize, zero_point: usize) -> QuantisedSlot {
    QuantisedSlot {
        place: (SlotSide::Input, at),
        scale: vec![(SlotSide::Input, scale)],
        zero_point: Some((SlotSide::Input, zero_point)),
        axis: AXIS_DEFAULT,
    }
}

/// The first output, likewise.
fn given(scale: usize, zero_point: usize) -> QuantisedSlot {
    QuantisedSlot {
        place: (SlotSide::Output, 0),
        ..read(0, scale, zero_point)
    }
}

/// Input `at` of an operator that knows no scale.
fn integers(at: usize, zero_point: usize) -> QuantisedSlot {
    QuantisedSlot {
        scale: Vec::new(),
        ..read(at, 0, zero_point)
    }
}

/// The first output of such an operator.
fn sums() -> QuantisedSlot {
    QuantisedSlot {
        place: (SlotSide::Output, 0),
        scale: Vec::new(),
        zero_point: None,
        axis: AXIS_DEFAULT,
    }
}

/// Integers that are added to products of two inputs, and so have the product of their scales.
fn bias(at: usize, scales: (usize, usize)) -> QuantisedSlot {
    QuantisedSlot {
        place: (SlotSide::Input, at),
        scale: vec![(SlotSide::Input, scales.0), (SlotSide::Input, scales.1)],
        zero_point: None,
        axis: -1,
    }
}

impl QuantisedSlot {
    fn along(self, axis: i64) -> QuantisedSlot {
        QuantisedSlot { axis, ..self }
    }

    /// The same, as far as the node has it; `None` if it lacks the value itself.
    fn for_node(self, node: &NodeProto) -> Option<QuantisedSlot> {
        // Half of a product of scales would be a wrong scale. Without any, the scale counts as
        // unknown.
        let has_scale = self.scale.iter().all(|at| has_slot(node, *at));
        has_slot(node, self.place).then(|| QuantisedSlot {
            scale: if has_scale { self.scale } else { Vec::new() },
            zero_point: self.zero_point.filter(|at| has_slot(node, *at)),
            ..self
        })
    }
}

fn has_slot(node: &NodeProto, (side, i): SlotPosition) -> bool {
    let names = match side {
        SlotSide::Input => &node.input,
        SlotSide::Output => &node.output,
    };
    names.get(i).is_some_and(|name| !name.is_empty())
}

/// The quantised values of a node; `read` and `given` are the numbers of its values.
pub(super) fn slots(
    node: &NodeProto,
    task_id: u32,
    read: &[u32],
    given: &[u32],
) -> Vec<QuantisedPlace> {
    let (kind, slots) = known(node);
    let block_size = match kind {
        QuantisedKind::Computes => None,
        _ => integer(node, "block_size"),
    };
    let block_size = block_size.map_or(0, |n| usize::try_from(n).unwrap_or(0));
    let slots = slots.into_iter().filter_map(|slot| slot.for_node(node));
    let quantised = slots.filter_map(|slot| {
        let (side, i) = slot.place;
        let values = match side {
            SlotSide::Input => read,
            SlotSide::Output => given,
        };
        Some(QuantisedPlace {
            task_id,
            place: slot.place,
            value: *values.get(i)?,
            kind,
            scale: slot.scale,
            zero_point: slot.zero_point,
            axis: slot.axis,
            block_size,
        })
    });
    quantised.collect()
}

fn known(node: &NodeProto) -> (QuantisedKind, Vec<QuantisedSlot>) {
    use QuantisedKind::{Computes, Dequantises, Quantises};
    let is_runtime = RUNTIME_DOMAINS.contains(&node.domain.as_str());
    if !is_runtime && !proto::is_standard(&node.domain) {
        return (Computes, Vec::new());
    }
    let axis = integer(node, "axis").unwrap_or(AXIS_DEFAULT);
    match node.op_type.as_str() {
        "QuantizeLinear" => (Quantises, vec![given(1, 2).along(axis)]),
        "DequantizeLinear" => (Dequantises, vec![read(0, 1, 2).along(axis)]),
        "DynamicQuantizeLinear" => {
            let slot = QuantisedSlot {
                scale: vec![(SlotSide::Output, 1)],
                zero_point: Some((SlotSide::Output, 2)),
                ..sums()
            };
            (Quantises, vec![slot])
        }
        "QLinearConv" => (
            Computes,
            vec![
                read(0, 1, 2),
                read(3, 4, 5).along(0),
                bias(8, (1, 4)),
                given(6, 7),
            ],
        ),
        // Scales of the first factor go along its rows, those of the second along its columns.
        "QLinearMatMul" => (
            Computes,
            vec![
                read(0, 1, 2).along(-2),
                read(3, 4, 5).along(-1),
                given(6, 7).along(-2),
            ],
        ),
        "ConvInteger" => (Computes, vec![integers(0, 2), integers(1, 3), sums()]),
        "MatMulInteger" => (Computes, vec![integers(0, 2), integers(1, 3), sums()]),
        _ if is_runtime => (Computes, of_runtime(node)),
        _ => (Computes, Vec::new()),
    }
}

/// Operators that ONNX does not have.
fn of_runtime(node: &NodeProto) -> Vec<QuantisedSlot> {
    match node.op_type.as_str() {
        "QLinearAdd" | "QLinearMul" => vec![read(0, 1, 2), read(3, 4, 5), given(6, 7)],
        "QLinearAveragePool"
        | "QLinearGlobalAveragePool"
        | "QLinearLeakyRelu"
        | "QLinearReduceMean"
        | "QLinearSigmoid"
        | "QLinearSoftmax" => vec![read(0, 1, 2), given(3, 4)],
        "QLinearConcat" => {
            let parts = (2..node.input.len()).step_by(3);
            let parts = parts.map(|at| read(at, at + 1, at + 2));
            parts.chain([given(0, 1)]).collect()
        }
        "QLinearWhere" => vec![read(1, 2, 3), read(4, 5, 6), given(7, 8)],
        "QGemm" => of_gemm(node),
        "QAttention" => vec![read(0, 3, 6), read(1, 4, 7).along(-1)],
        "QEmbedLayerNormalization" => (2..7).map(|at| read(at, at + 6, at + 11)).collect(),
        "DynamicQuantizeMatMul" => vec![read(1, 2, 3).along(-1)],
        // The result is a float already and has no scale.
        "MatMulIntegerToFloat" => vec![read(0, 2, 4).along(-2), read(1, 3, 5).along(-1)],
        "MulInteger" => vec![integers(0, 1), integers(2, 3), sums()],
        _ => Vec::new(),
    }
}

fn of_gemm(node: &NodeProto) -> Vec<QuantisedSlot> {
    let is_transposed = integer(node, "transB").is_some_and(|n| n != 0);
    let column = if is_transposed { 0 } else { -1 };
    let mut slots = vec![read(0, 1, 2), read(3, 4, 5).along(column)];
    // A factor of the products would be one of the scale too.
    let mut attributes = node.attribute.iter();
    let alpha = attributes.find(|attribute| attribute.name == "alpha");
    if alpha.and_then(|alpha| alpha.f).unwrap_or(1.0) == 1.0 {
        slots.push(bias(6, (1, 4)));
    }
    // Without a scale the result is a float.
    if node.input.get(7).is_some_and(|name| !name.is_empty()) {
        slots.push(given(7, 8));
    }
    slots
}

/// The attribute `name`, if it is there and an integer.
fn integer(node: &NodeProto, name: &str) -> Option<i64> {
    let mut attributes = node.attribute.iter();
    attributes.find(|attribute| attribute.name == name)?.i
}
