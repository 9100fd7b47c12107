//! `Celu` and `Swish`, of which tract passes over a factor.
//!
//! tract's `Celu` does not multiply by `alpha`, and its `Swish` has none.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{Iff, comp_gt};
use tract_onnx::tract_core::ops::math::{div, exp, mul, sub};
use tract_onnx::tract_core::ops::nn::sigmoid;
use tract_onnx::tract_hir::internal::*;

use super::wiring::Wiring;

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// `x` above zero, else `alpha * (exp(x / alpha) - 1)`.
    Celu,
    /// `x * sigmoid(alpha * x)`.
    Swish,
}

#[derive(Debug, Clone)]
struct Activation {
    kind: Kind,
    alpha: f32,
}

pub(super) fn celu(
    _context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    build(Kind::Celu, node)
}

pub(super) fn swish(
    _context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    build(Kind::Swish, node)
}

fn build(kind: Kind, node: &NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let alpha = node.get_attr_opt("alpha")?.unwrap_or(1.0);
    Ok((expand(Activation { kind, alpha }), vec![]))
}

impl Expansion for Activation {
    fn name(&self) -> StaticName {
        match self.kind {
            Kind::Celu => "Celu".into(),
            Kind::Swish => "Swish".into(),
        }
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        solver.equals(&inputs[0].datum_type, &outputs[0].datum_type)?;
        solver.equals(&inputs[0].shape, &outputs[0].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let x = inputs[0];
        let mut wiring = Wiring::new(model, prefix);
        let alpha = wiring.number(self.alpha, x)?;
        let result = match self.kind {
            Kind::Celu => {
                let (zero, one) = (wiring.number(0.0, x)?, wiring.number(1.0, x)?);
                let scaled = wiring.wire(div(), &[x, alpha])?;
                let grown = wiring.wire(exp(), &[scaled])?;
                let below = wiring.wire(sub(), &[grown, one])?;
                let below = wiring.wire(mul(), &[below, alpha])?;
                let is_above = wiring.compare(comp_gt(), x, zero)?;
                wiring.wire(Iff, &[is_above, x, below])?
            }
            Kind::Swish => {
                let scaled = wiring.wire(mul(), &[x, alpha])?;
                let gate = wiring.wire(sigmoid(), &[scaled])?;
                wiring.wire(mul(), &[x, gate])?
            }
        };
        Ok(tvec!(result))
    }
}
