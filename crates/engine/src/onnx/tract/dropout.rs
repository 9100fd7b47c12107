//! `DropoutComposition` before opset 12, with its mask.
//!
//! In inference tract leaves the mask unfilled; ONNX Runtime returns zeros. Before opset 10 the
//! mask has the type of the data. tract returns the mask of later opsets, which is true everywhere.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::array::MultiBroadcastTo;
use tract_onnx::tract_core::ops::identity::Identity;
use tract_onnx::tract_hir::internal::*;

use super::composition::Composition;
use super::wiring::{NodeWiring, WiredOutlets};

/// The first opset with a mask that is filled, which tract's own builder is right for.
pub(super) const OPSET_WITH_FULL_MASK: i64 = 12;
/// The first opset with a boolean mask.
const OPSET_WITH_BOOL_MASK: i64 = 10;

#[derive(Debug, Clone)]
pub(super) struct DropoutComposition {
    has_mask: bool,
    is_mask_bool: bool,
}

impl Composition for DropoutComposition {
    const OP_TYPE: &'static str = "Dropout";

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(DropoutComposition {
            has_mask: node.output.get(1).is_some_and(|name| !name.is_empty()),
            is_mask_bool: context.onnx_operator_set_version >= OPSET_WITH_BOOL_MASK,
        })
    }

    fn n_outputs(&self) -> usize {
        1 + usize::from(self.has_mask)
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        for output in outputs {
            solver.equals(&inputs[0].shape, &output.shape)?;
        }
        Ok(())
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let fact = wiring.model.outlet_fact(inputs[0])?.clone();
        let data = wiring.wire_as_is(Identity, &inputs[..1])?;
        if !self.has_mask {
            return Ok(tvec!(data));
        }
        let mask_type = if self.is_mask_bool {
            DatumType::Bool
        } else {
            fact.datum_type
        };
        let zero = Tensor::zero_scalar_dt(mask_type)?.broadcast_into_rank(fact.rank())?;
        let zero = wiring.constant(zero)?;
        let mask = wiring.wire_as_is(MultiBroadcastTo::new(fact.shape), &[zero])?;
        Ok(tvec!(data, mask))
    }
}
