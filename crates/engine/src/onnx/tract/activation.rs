//! Activations that tract computes otherwise.
//!
//! tract's `Celu` does not multiply by `alpha`, its `Swish` has none, and its `Selu` has defaults
//! of six digits. Its sigmoid stays above 1e-7, which a factor makes large; its `HardSwish` squares
//! before it limits, and its `Shrink` of integers takes a whole number for the bias. The formulas
//! here are those of ONNX, which give NaN where infinity meets zero.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{comp_gt, comp_lt};
use tract_onnx::tract_core::ops::math::{add, div, erf, exp, max, min, mul, neg, recip, sub};
use tract_onnx::tract_hir::internal::*;

use super::composition::{Built, Composition, builder_of_engine, float};
use super::wiring::{NodeWiring, WiredOutlets};

/// The factors of `Selu`, as the standard has them.
const SELU: [(&str, f32); 2] = [("alpha", 1.673_263_2), ("gamma", 1.050_701)];

/// Factors of operators are float32, whatever the type of the data is.
const SIXTH: f32 = 1.0 / 6.0;

#[derive(Debug, Clone, Copy)]
pub(super) enum ActivationComposition {
    /// `x` above zero, else `alpha * (exp(x / alpha) - 1)`.
    Celu { alpha: f32 },
    /// `x * (1 + erf(x / sqrt(2))) / 2`, or with a hyperbolic tangent in place of the error
    /// function.
    Gelu { is_approximate: bool },
    /// `x * max(0, min(1, x / 6 + 1 / 2))`.
    HardSwish,
    /// `x + bias` below `-lambd`, `x - bias` above `lambd`, else zero.
    Shrink { bias: f32, lambd: f32 },
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x * sigmoid(alpha * x)`.
    Swish { alpha: f32 },
}

pub(super) fn selu(context: &ParsingContext<'_>, node: &NodeProto) -> Built {
    let mut node = node.clone();
    for (name, value) in SELU {
        if !node.attribute.iter().any(|attr| attr.name == name) {
            node.attribute.push(float(name, value));
        }
    }
    builder_of_engine("Selu")?(context, &node)
}

impl Composition for ActivationComposition {
    fn from_node(_context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        Ok(match node.op_type.as_str() {
            // Factors are read as float32, the standard's type for attributes.
            "Celu" => ActivationComposition::Celu {
                alpha: node.get_attr_opt("alpha")?.unwrap_or(1.0),
            },
            "Gelu" => ActivationComposition::Gelu {
                is_approximate: match node.get_attr_opt::<&str>("approximate")? {
                    None | Some("none") => false,
                    Some("tanh") => true,
                    Some(other) => bail!("approximate `{other}`, expected `none` or `tanh`"),
                },
            },
            "HardSwish" => ActivationComposition::HardSwish,
            "Shrink" => ActivationComposition::Shrink {
                bias: node.get_attr_opt("bias")?.unwrap_or(0.0),
                lambd: node.get_attr_opt("lambd")?.unwrap_or(0.5),
            },
            "Sigmoid" => ActivationComposition::Sigmoid,
            "Swish" => ActivationComposition::Swish {
                alpha: node.get_attr_opt("alpha")?.unwrap_or(1.0),
            },
            other => bail!("`{other}` is no activation that is composed here"),
        })
    }

    fn op_type(&self) -> StaticName {
        match self {
            ActivationComposition::Celu { .. } => "Celu".into(),
            ActivationComposition::Gelu { .. } => "Gelu".into(),
            ActivationComposition::HardSwish => "HardSwish".into(),
            ActivationComposition::Shrink { .. } => "Shrink".into(),
            ActivationComposition::Sigmoid => "Sigmoid".into(),
            ActivationComposition::Swish { .. } => "Swish".into(),
        }
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let x = inputs[0];
        let result = match *self {
            ActivationComposition::Celu { alpha } => wire_celu(wiring, x, alpha)?,
            ActivationComposition::Gelu { is_approximate } => wire_gelu(wiring, x, is_approximate)?,
            ActivationComposition::HardSwish => wire_hard_swish(wiring, x)?,
            ActivationComposition::Shrink { bias, lambd } => wire_shrink(wiring, x, bias, lambd)?,
            ActivationComposition::Sigmoid => wire_sigmoid(wiring, x)?,
            ActivationComposition::Swish { alpha } => {
                let alpha = wiring.number(alpha, x)?;
                let scaled = wiring.wire(mul(), &[x, alpha])?;
                let gate = wire_sigmoid(wiring, scaled)?;
                wiring.wire(mul(), &[x, gate])?
            }
        };
        Ok(tvec!(result))
    }
}

fn wire_celu(wiring: &mut NodeWiring<'_>, x: OutletId, alpha: f32) -> TractResult<OutletId> {
    let alpha = wiring.number(alpha, x)?;
    let (zero, one) = (wiring.number(0.0, x)?, wiring.number(1.0, x)?);
    let scaled = wiring.wire(div(), &[x, alpha])?;
    let grown = wiring.wire(exp(), &[scaled])?;
    let below = wiring.wire(sub(), &[grown, one])?;
    let below = wiring.wire(mul(), &[below, alpha])?;
    // Selecting keeps an infinite exponential out of the result: above zero it is not used.
    let is_above = wiring.compare(comp_gt(), x, zero)?;
    wiring.select(is_above, x, below)
}

fn wire_gelu(
    wiring: &mut NodeWiring<'_>,
    x: OutletId,
    is_approximate: bool,
) -> TractResult<OutletId> {
    let share = if is_approximate {
        // `(1 + tanh(z)) / 2` is the sigmoid of `2 * z`.
        let factor = wiring.number(2.0 * (2.0 / PI).sqrt(), x)?;
        let third = wiring.number(0.044_715, x)?;
        let square = wiring.wire(mul(), &[x, x])?;
        let cube = wiring.wire(mul(), &[square, x])?;
        let cube = wiring.wire(mul(), &[cube, third])?;
        let sum = wiring.wire(add(), &[x, cube])?;
        let scaled = wiring.wire(mul(), &[sum, factor])?;
        wire_sigmoid(wiring, scaled)?
    } else {
        let (half, one) = (wiring.number(0.5, x)?, wiring.number(1.0, x)?);
        let factor = wiring.number(FRAC_1_SQRT_2, x)?;
        let scaled = wiring.wire(mul(), &[x, factor])?;
        let curve = wiring.wire(erf(), &[scaled])?;
        let share = wiring.wire(add(), &[curve, one])?;
        wiring.wire(mul(), &[share, half])?
    };
    wiring.wire(mul(), &[x, share])
}

fn wire_hard_swish(wiring: &mut NodeWiring<'_>, x: OutletId) -> TractResult<OutletId> {
    let (sixth, half) = (wiring.number(SIXTH, x)?, wiring.number(0.5, x)?);
    let (zero, one) = (wiring.number(0.0, x)?, wiring.number(1.0, x)?);
    let share = wiring.wire(mul(), &[x, sixth])?;
    let share = wiring.wire(add(), &[share, half])?;
    // The limits go on the share and not on the product, as the standard writes the formula:
    // infinity times zero is NaN there.
    let share = wiring.wire(min(), &[share, one])?;
    let share = wiring.wire(max(), &[share, zero])?;
    wiring.wire(mul(), &[x, share])
}

fn wire_shrink(
    wiring: &mut NodeWiring<'_>,
    x: OutletId,
    bias: f32,
    lambd: f32,
) -> TractResult<OutletId> {
    let datum_type = wiring.datum_type(x)?;
    // Non-float types are shrunk as float, and truncated to a whole number afterwards.
    let is_float = datum_type.is_float();
    let x = wiring.cast(x, if is_float { datum_type } else { DatumType::F64 })?;
    let (zero, bias) = (wiring.number(0.0, x)?, wiring.number(bias, x)?);
    let (low, high) = (wiring.number(-lambd, x)?, wiring.number(lambd, x)?);
    let raised = wiring.wire(add(), &[x, bias])?;
    let lowered = wiring.wire(sub(), &[x, bias])?;
    let is_above = wiring.compare(comp_gt(), x, high)?;
    let is_below = wiring.compare(comp_lt(), x, low)?;
    let result = wiring.select(is_above, lowered, zero)?;
    let result = wiring.select(is_below, raised, result)?;
    wiring.cast(result, datum_type)
}

fn wire_sigmoid(wiring: &mut NodeWiring<'_>, x: OutletId) -> TractResult<OutletId> {
    let one = wiring.number(1.0, x)?;
    // Written out in exponentials, since tract's own sigmoid stays above 1e-7.
    let opposite = wiring.wire(neg(), &[x])?;
    let grown = wiring.wire(exp(), &[opposite])?;
    let sum = wiring.wire(add(), &[grown, one])?;
    wiring.wire(recip(), &[sum])
}
