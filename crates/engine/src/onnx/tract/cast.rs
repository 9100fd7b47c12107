//! `Cast` to integers that stay integers.
//!
//! tract takes `int64` that an operator computes for extents, and makes symbols of them. With symbols its operators
//! calculate otherwise than with integers: a remainder has the sign of the dividend, a quotient is rounded down.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_hir::internal::*;

/// A cast to `int64`.
#[derive(Debug, Clone)]
struct CastToInteger;

pub(super) fn build(
    context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    if node.get_attr::<DatumType>("to")? == DatumType::I64 {
        return Ok((expand(CastToInteger), vec![]));
    }
    super::builder_of_engine("Cast")?(context, node)
}

impl Expansion for CastToInteger {
    fn name(&self) -> StaticName {
        "Cast".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&outputs[0].datum_type, DatumType::I64)?;
        solver.equals(&outputs[0].shape, &inputs[0].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        model.wire_node(prefix, cast(DatumType::I64), &inputs[..1])
    }
}
