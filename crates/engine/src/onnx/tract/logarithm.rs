//! `SoftplusComposition`, `LogSoftmax` and `ReduceLogSumExp` of large numbers.
//!
//! tract takes the logarithm of what it has computed by then: an exponential that is infinite from
//! 89 on, or a share that is zero. Here the largest number is set apart before.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{comp_eq, comp_gt};
use tract_onnx::tract_core::ops::math::{abs, add, exp, ln, neg, sub};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer};
use tract_onnx::tract_hir::internal::*;

use super::composition::{Composition, EnginePart, ResultShape, integer};
use super::wiring::{NodeWiring, WiredOutlets};

/// The first opset in which `LogSoftmax` works along one axis, and not along all from one on.
const OPSET_WITH_ONE_AXIS: i64 = 13;

/// `ln(1 + exp(x))`, which is `max(x, 0) + ln(1 + exp(-|x|))`.
#[derive(Debug, Clone)]
pub(super) struct SoftplusComposition;

/// `x - ln(sum(exp(x)))` along axes; the numbers are those of the attribute.
#[derive(Debug, Clone)]
pub(super) struct LogSoftmax {
    axis: i64,
    is_one_axis: bool,
}

/// `ln(sum(exp(x)))` of each group of elements, which is that of `x - m`, plus `m`.
#[derive(Debug, Clone)]
pub(super) struct LogSumExp {
    /// The operator itself, which is right for numbers of which the largest is zero.
    of_shifted: EnginePart,
    /// The largest of each group, in the shape of the result.
    largest: EnginePart,
    /// The largest of each group, in a shape that broadcasts to that of the elements.
    largest_kept: EnginePart,
}

impl Composition for SoftplusComposition {
    const OP_TYPE: &'static str = "Softplus";

    fn from_node(_context: &ParsingContext<'_>, _node: &NodeProto) -> TractResult<Self> {
        Ok(SoftplusComposition)
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let x = inputs[0];
        let (zero, one) = (wiring.number(0.0, x)?, wiring.number(1.0, x)?);
        let is_above = wiring.compare(comp_gt(), x, zero)?;
        let above = wiring.select(is_above, x, zero)?;
        let size = wiring.wire(abs(), &[x])?;
        // The exponent is never above zero, so that nothing overflows.
        let size = wiring.wire(neg(), &[size])?;
        let rest = wiring.wire(exp(), &[size])?;
        let rest = wiring.wire(add(), &[rest, one])?;
        let rest = wiring.wire(ln(), &[rest])?;
        Ok(tvec!(wiring.wire(add(), &[above, rest])?))
    }
}

impl Composition for LogSoftmax {
    const OP_TYPE: &'static str = "LogSoftmax";

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        let is_one_axis = context.onnx_operator_set_version >= OPSET_WITH_ONE_AXIS;
        let default = if is_one_axis { -1 } else { 1 };
        let axis = node.get_attr_opt("axis")?.unwrap_or(default);
        Ok(LogSoftmax { axis, is_one_axis })
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let x = inputs[0];
        let axis = self.axis;
        let n_axes = wiring.model.outlet_fact(x)?.rank();
        let first = usize::try_from(axis.rem_euclid((n_axes as i64).max(1)))?;
        ensure!(first < n_axes, "axis {axis} of a tensor with {n_axes} axes");
        let end = if self.is_one_axis { first + 1 } else { n_axes };
        let axes: TVec<usize> = (first..end).collect();
        let [max, sum] = [Reducer::Max, Reducer::Sum].map(|reducer| Reduce {
            axes: axes.clone(),
            reducer,
        });
        let largest = wiring.wire(max, &[x])?;
        // With the largest set apart the sum is at least one, and its logarithm is finite.
        let below = wiring.wire(sub(), &[x, largest])?;
        let share = wiring.wire(exp(), &[below])?;
        let sum = wiring.wire(sum, &[share])?;
        let sum = wiring.wire(ln(), &[sum])?;
        Ok(tvec!(wiring.wire(sub(), &[below, sum])?))
    }
}

impl Composition for LogSumExp {
    const OP_TYPE: &'static str = "ReduceLogSumExp";
    const RESULT_SHAPE: ResultShape = ResultShape::Open;

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        // The two have had the same attributes and inputs in each opset.
        let maximum = NodeProto {
            op_type: "ReduceMax".into(),
            ..node.clone()
        };
        let mut kept = maximum.clone();
        // The largest has to broadcast with the elements, whatever shape the result is to have.
        kept.attribute.retain(|attr| attr.name != "keepdims");
        kept.attribute.push(integer("keepdims", 1));
        Ok(LogSumExp {
            of_shifted: EnginePart::new(context, node)?,
            largest: EnginePart::new(context, &maximum)?,
            largest_kept: EnginePart::new(context, &kept)?,
        })
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let datum_type = wiring.datum_type(inputs[0])?;
        ensure!(
            datum_type.is_float(),
            "`ReduceLogSumExp` of {datum_type:?}: the engine has it for floats"
        );
        let mut shifted: TVec<OutletId> = inputs.into();
        let kept = self.largest_kept.wire(wiring, inputs)?[0];
        let kept = finite_or_zero(wiring, kept)?;
        shifted[0] = wiring.wire(sub(), &[inputs[0], kept])?;
        let result = self.of_shifted.wire(wiring, &shifted)?[0];
        let largest = self.largest.wire(wiring, inputs)?[0];
        let largest = finite_or_zero(wiring, largest)?;
        Ok(tvec!(wiring.wire(add(), &[result, largest])?))
    }
}

/// Puts zero in place of infinities and NaN. These cannot be set apart: an infinity minus itself is
/// NaN.
fn finite_or_zero(wiring: &mut NodeWiring<'_>, wire: OutletId) -> TractResult<OutletId> {
    let zero = wiring.number(0.0, wire)?;
    let difference = wiring.wire(sub(), &[wire, wire])?;
    let is_finite = wiring.compare(comp_eq(), difference, zero)?;
    wiring.select(is_finite, wire, zero)
}
