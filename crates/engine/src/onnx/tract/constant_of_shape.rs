//! `ConstantOfShape` without a value, which is a float32 zero; tract takes a float64.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;
use tract_onnx::tract_hir::ops::array::ConstantOfShape;

use super::composition::{Built, builder_of_engine};

pub(super) fn constant_of_shape(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let has_value = node.attribute.iter().any(|attr| attr.name == "value");
    if has_value {
        return builder_of_engine("ConstantOfShape")?(context, node);
    }
    Ok((expand(ConstantOfShape::new(rctensor0(0.0_f32))), vec![]))
}
