//! `Dropout` before opset 10, with its mask.
//!
//! There the mask has the type of the data and inference leaves it unfilled; ONNX Runtime gives
//! zeros. tract gives the boolean mask of later opsets.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::array::MultiBroadcastTo;
use tract_onnx::tract_core::ops::identity::Identity;
use tract_onnx::tract_hir::internal::*;

/// The first opset with a boolean mask, which tract's own builder is right for.
pub(super) const OPSET_WITH_BOOL_MASK: i64 = 10;

#[derive(Debug, Clone)]
struct Dropout {
    has_mask: bool,
}

pub(super) fn build(
    _context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let has_mask = node.output.get(1).is_some_and(|name| !name.is_empty());
    Ok((expand(Dropout { has_mask }), vec![]))
}

impl Expansion for Dropout {
    fn name(&self) -> StaticName {
        "Dropout".into()
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(1 + usize::from(self.has_mask))
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        for output in outputs {
            solver.equals(&inputs[0].datum_type, &output.datum_type)?;
            solver.equals(&inputs[0].shape, &output.shape)?;
        }
        Ok(())
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let fact = model.outlet_fact(inputs[0])?.clone();
        let data = model.wire_node(prefix, Identity, &inputs[..1])?[0];
        if !self.has_mask {
            return Ok(tvec!(data));
        }
        let zero = Tensor::zero_scalar_dt(fact.datum_type)?.broadcast_into_rank(fact.rank())?;
        let zero = model.add_const(format!("{prefix}.zero"), zero)?;
        let broadcast = MultiBroadcastTo::new(fact.shape);
        let mask = model.wire_node(format!("{prefix}.mask"), broadcast, &[zero])?[0];
        Ok(tvec!(data, mask))
    }
}
