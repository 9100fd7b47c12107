//! `DynamicQuantizeLinear` of zeros.
//!
//! tract divides by a scale of zero; the scale of nothing is one.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::comp_eq;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Composition, EnginePart};
use super::wiring::{NodeWiring, WiredOutlets};

#[derive(Clone, Debug)]
pub(super) struct DynamicQuantizeLinear(EnginePart);

impl Composition for DynamicQuantizeLinear {
    const OP_TYPE: &'static str = "DynamicQuantizeLinear";

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(DynamicQuantizeLinear(EnginePart::new(context, node)?))
    }

    fn n_outputs(&self) -> usize {
        3
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].shape, &outputs[0].shape)?;
        solver.equals(&outputs[1].datum_type, DatumType::F32)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let mut outputs = self.0.wire(wiring, inputs)?;
        let scale = outputs[1];
        let (zero, one) = (wiring.number(0.0, scale)?, wiring.number(1.0, scale)?);
        let is_zero = wiring.compare(comp_eq(), scale, zero)?;
        // The quantised zeros are right already; only their scale is not.
        outputs[1] = wiring.select(is_zero, one, scale)?;
        Ok(outputs)
    }
}
