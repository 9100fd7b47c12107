//! `Acosh` and `Asinh` of numbers whose double is infinite.
//!
//! tract doubles them before it takes the logarithm. From 2^28 on both are the logarithm plus that
//! of two, to the last digit of float64.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{comp_gt, comp_lt};
use tract_onnx::tract_core::ops::math::{abs, acosh, add, asinh, ln, neg};
use tract_onnx::tract_hir::internal::*;

use super::composition::Composition;
use super::wiring::{NodeWiring, WiredOutlets};

const LARGE: f32 = (1 << 28) as f32;

#[derive(Debug, Clone, Copy)]
pub(super) enum InverseHyperbolic {
    Cosine,
    Sine,
}

impl Composition for InverseHyperbolic {
    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(if node.op_type == "Acosh" {
            InverseHyperbolic::Cosine
        } else {
            InverseHyperbolic::Sine
        })
    }

    fn op_type(&self) -> StaticName {
        match self {
            InverseHyperbolic::Cosine => "Acosh".into(),
            InverseHyperbolic::Sine => "Asinh".into(),
        }
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let x = inputs[0];
        let (zero, large) = (wiring.number(0.0, x)?, wiring.number(LARGE, x)?);
        let two = wiring.number(std::f64::consts::LN_2, x)?;
        let size = match self {
            InverseHyperbolic::Cosine => x,
            InverseHyperbolic::Sine => wiring.wire(abs(), &[x])?,
        };
        // `acosh(x)` is `ln(x + sqrt(x² - 1))`, in which the 1 vanishes next to a large square.
        let far = wiring.wire(ln(), &[size])?;
        let far = wiring.wire(add(), &[far, two])?;
        let is_far = wiring.compare(comp_gt(), size, large)?;
        let result = match self {
            InverseHyperbolic::Cosine => {
                let near = wiring.wire(acosh(), &[x])?;
                wiring.select(is_far, far, near)?
            }
            InverseHyperbolic::Sine => {
                // The sine is odd, so that one logarithm of the size serves both signs.
                let opposite = wiring.wire(neg(), &[far])?;
                let is_below = wiring.compare(comp_lt(), x, zero)?;
                let far = wiring.select(is_below, opposite, far)?;
                let near = wiring.wire(asinh(), &[x])?;
                wiring.select(is_far, far, near)?
            }
        };
        Ok(tvec!(result))
    }
}
