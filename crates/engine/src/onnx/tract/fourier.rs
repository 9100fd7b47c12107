//! `DFT` along the axis that it has by default.
//!
//! From opset 20 on this is the last axis of the signal; tract takes the second one of the tensor.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;

use super::composition::{Built, builder_of_engine, integer};

/// The first opset in which the axis is an input.
const OPSET_WITH_AXIS_INPUT: i64 = 20;
/// The input that is the axis.
const AXIS: usize = 2;

pub(super) fn dft(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let builder = builder_of_engine("DFT")?;
    let has_axis = node.input.get(AXIS).is_some_and(|name| !name.is_empty());
    if has_axis || context.onnx_operator_set_version < OPSET_WITH_AXIS_INPUT {
        return builder(context, node);
    }
    // The axis as an attribute, which earlier opsets have.
    let mut earlier = context.clone();
    earlier.onnx_operator_set_version = OPSET_WITH_AXIS_INPUT - 1;
    let mut node = node.clone();
    node.attribute.push(integer("axis", -2));
    builder(&earlier, &node)
}
