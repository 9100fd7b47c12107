//! `GemmComposition` for every float type.
//!
//! tract's own builder keeps `alpha` and `beta` in float32, which makes a float16 Gemm with a bias
//! fail. This one composes the same tract operators with the factors cast to the type of the data.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::axes::AxesMapping;
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::math::{add, mul};
use tract_onnx::tract_hir::internal::*;

use super::composition::Composition;
use super::wiring::{NodeWiring, WiredOutlets};

#[derive(Debug, Clone)]
pub(super) struct GemmComposition {
    alpha: f32,
    beta: f32,
    is_a_transposed: bool,
    is_b_transposed: bool,
}

impl Composition for GemmComposition {
    const OP_TYPE: &'static str = "Gemm";

    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(GemmComposition {
            alpha: node.get_attr_opt("alpha")?.unwrap_or(1.0),
            beta: node.get_attr_opt("beta")?.unwrap_or(1.0),
            is_a_transposed: node.get_attr_opt("transA")?.unwrap_or(false),
            is_b_transposed: node.get_attr_opt("transB")?.unwrap_or(false),
        })
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].rank, 2)?;
        solver.equals(&inputs[1].rank, 2)?;
        solver.equals(&outputs[0].rank, 2)?;
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let dtype = wiring.datum_type(inputs[0])?;
        let axes =
            AxesMapping::for_numpy_matmul(2, self.is_a_transposed, self.is_b_transposed, false)?;
        let product = EinSum::new(axes, dtype);
        let mut result = wiring.wire_as_is(product, &inputs[..2])?;
        result = scale(wiring, result, self.alpha)?;
        // With a factor of zero the bias does not count at all, not even a NaN in it.
        if let (Some(&bias), true) = (inputs.get(2), self.beta != 0.0) {
            let bias = scale(wiring, bias, self.beta)?;
            result = wiring.wire(add(), &[result, bias])?;
        }
        Ok(tvec!(result))
    }
}

/// Multiplies by a factor of the data's own type, unless it is one.
fn scale(wiring: &mut NodeWiring<'_>, wire: OutletId, factor: f32) -> TractResult<OutletId> {
    if factor == 1.0 {
        return Ok(wire);
    }
    let factor = wiring.number(factor, wire)?;
    wiring.wire(mul(), &[factor, wire])
}
