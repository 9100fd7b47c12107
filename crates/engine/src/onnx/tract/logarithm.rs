//! `Softplus` and `LogSoftmax` of large numbers.
//!
//! tract takes the logarithm of what it has computed by then: an exponential that is infinite from 89 on, or a share
//! that is zero. Here the largest number is set apart before.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::logic::{Iff, comp_gt};
use tract_onnx::tract_core::ops::math::{abs, add, exp, ln, neg, sub};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer};
use tract_onnx::tract_hir::internal::*;

use super::wiring::Wiring;

/// The first opset in which `LogSoftmax` works along one axis, and not along all from one on.
const OPSET_WITH_ONE_AXIS: i64 = 13;

#[derive(Debug, Clone, Copy)]
enum Logarithm {
    /// `ln(1 + exp(x))`, which is `max(x, 0) + ln(1 + exp(-|x|))`.
    Softplus,
    /// `x - ln(sum(exp(x)))` along axes; the numbers are those of the attribute.
    LogSoftmax { axis: i64, is_one_axis: bool },
}

pub(super) fn softplus(
    _context: &ParsingContext<'_>,
    _node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    Ok((expand(Logarithm::Softplus), vec![]))
}

pub(super) fn log_softmax(
    context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let is_one_axis = context.onnx_operator_set_version >= OPSET_WITH_ONE_AXIS;
    let default = if is_one_axis { -1 } else { 1 };
    let axis = node.get_attr_opt("axis")?.unwrap_or(default);
    Ok((expand(Logarithm::LogSoftmax { axis, is_one_axis }), vec![]))
}

impl Expansion for Logarithm {
    fn name(&self) -> StaticName {
        match self {
            Logarithm::Softplus => "Softplus".into(),
            Logarithm::LogSoftmax { .. } => "LogSoftmax".into(),
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
        let n_axes = model.outlet_fact(x)?.rank();
        let mut wiring = Wiring::new(model, prefix);
        let result = match *self {
            Logarithm::Softplus => {
                let (zero, one) = (wiring.number(0.0, x)?, wiring.number(1.0, x)?);
                let is_above = wiring.compare(comp_gt(), x, zero)?;
                let above = wiring.wire(Iff, &[is_above, x, zero])?;
                let size = wiring.wire(abs(), &[x])?;
                let size = wiring.wire(neg(), &[size])?;
                let rest = wiring.wire(exp(), &[size])?;
                let rest = wiring.wire(add(), &[rest, one])?;
                let rest = wiring.wire(ln(), &[rest])?;
                wiring.wire(add(), &[above, rest])?
            }
            Logarithm::LogSoftmax { axis, is_one_axis } => {
                let first = usize::try_from(axis.rem_euclid((n_axes as i64).max(1)))?;
                ensure!(first < n_axes, "axis {axis} of a tensor with {n_axes} axes");
                let end = if is_one_axis { first + 1 } else { n_axes };
                let axes: TVec<usize> = (first..end).collect();
                let reduce = |reducer| Reduce {
                    axes: axes.clone(),
                    reducer,
                };
                let largest = wiring.wire(reduce(Reducer::Max), &[x])?;
                let below = wiring.wire(sub(), &[x, largest])?;
                let share = wiring.wire(exp(), &[below])?;
                let sum = wiring.wire(reduce(Reducer::Sum), &[share])?;
                let sum = wiring.wire(ln(), &[sum])?;
                wiring.wire(sub(), &[below, sum])?
            }
        };
        Ok(tvec!(result))
    }
}
