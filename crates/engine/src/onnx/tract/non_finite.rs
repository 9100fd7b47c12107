//! Corrections of tract's operators for NaN and infinities.
//!
//! tract's activations, `Clip`, `Max` and `Min` turn NaN into a number, and its largest and
//! smallest values start from the largest finite number instead of an infinity. A tool that looks
//! for the origin of NaN cannot live with that. Where an operator's inputs hold such values, and
//! only there, the node is wired again with a correction made of the engine's own operators: NaN
//! stays NaN in elementwise operators and reductions, and the maximum of nothing, or of `-inf`
//! alone, is `-inf`. `MaxPool` passes over NaN, as ONNX Runtime's does.

use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::binary::{BinMiniOp, TypedBinOp};
use tract_onnx::tract_core::ops::cast::cast;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_core::ops::logic::{Iff, comp_eq, comp_gt, comp_gte, comp_ne};
use tract_onnx::tract_core::ops::math;

use super::value;
use super::wiring::WiredOutlets;

/// How a node is put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NonFiniteCorrection {
    /// NaN elements of the first input stay NaN.
    KeepNan,
    /// The largest of each group of elements, NaN if there is one.
    Largest,
    /// The smallest of each group of elements, NaN if there is one.
    Smallest,
    /// The largest of each window.
    LargestInWindow,
    /// The larger of several tensors, element by element.
    Max,
    /// The smaller of several tensors, element by element.
    Min,
}

/// Wires the node's own operator once more, for other inputs of the same shapes.
type Rewire<'a> = dyn Fn(&mut TypedModel, &str, &[OutletId]) -> WiredOutlets + 'a;

impl NonFiniteCorrection {
    /// The correction that a node needs for these inputs; usually none.
    pub(super) fn needed(op_type: &str, inputs: &[TValue]) -> Option<NonFiniteCorrection> {
        let correction = match op_type {
            "Clip" | "HardSigmoid" | "Relu" | "ScaledTanh" | "Tanh" => NonFiniteCorrection::KeepNan,
            "Max" => NonFiniteCorrection::Max,
            "Min" => NonFiniteCorrection::Min,
            "GlobalMaxPool" | "ReduceMax" => NonFiniteCorrection::Largest,
            "ReduceMin" => NonFiniteCorrection::Smallest,
            "MaxPool" => NonFiniteCorrection::LargestInWindow,
            _ => return None,
        };
        // Values are looked through before each evaluation, so only operators that get something
        // wrong are.
        let first = inputs.first()?;
        if !first.datum_type().is_float() {
            return None;
        }
        let is_needed = match correction {
            NonFiniteCorrection::KeepNan => has_nan(first),
            NonFiniteCorrection::Max | NonFiniteCorrection::Min => inputs.iter().any(has_nan),
            NonFiniteCorrection::Largest
            | NonFiniteCorrection::Smallest
            | NonFiniteCorrection::LargestInWindow => first.volume() == 0 || count(first).any(),
        };
        is_needed.then_some(correction)
    }

    /// Wires the corrected node.
    pub(super) fn wire(
        self,
        model: &mut TypedModel,
        inputs: &[OutletId],
        rewire: &Rewire<'_>,
    ) -> WiredOutlets {
        match self {
            NonFiniteCorrection::KeepNan => {
                let outputs = rewire(model, "node", inputs)?;
                Ok(tvec!(keep_nan(model, "keep", inputs[0], outputs[0])?))
            }
            NonFiniteCorrection::Max => elementwise(model, inputs, &math::max()),
            NonFiniteCorrection::Min => elementwise(model, inputs, &math::min()),
            NonFiniteCorrection::Largest => largest(model, inputs, rewire, true),
            NonFiniteCorrection::LargestInWindow => largest(model, inputs, rewire, false),
            NonFiniteCorrection::Smallest => smallest(model, inputs, rewire),
        }
    }
}

/// `max` or `min` of all inputs, broadcast, with NaN wherever one of them is.
fn elementwise(model: &mut TypedModel, inputs: &[OutletId], op: &TypedBinOp) -> WiredOutlets {
    let mut n_axes = 0;
    for &input in inputs {
        n_axes = n_axes.max(model.outlet_fact(input)?.rank());
    }
    let mut aligned = Vec::with_capacity(inputs.len());
    for (i, &input) in inputs.iter().enumerate() {
        let mut wire = input;
        for axis in model.outlet_fact(input)?.rank()..n_axes {
            wire = model.wire_node(format!("align-{i}-{axis}"), AxisOp::Add(0), &[wire])?[0];
        }
        aligned.push(wire);
    }
    let mut result = aligned[0];
    for (i, &input) in aligned.iter().enumerate().skip(1) {
        result = model.wire_node(format!("fold-{i}"), op.clone(), &[result, input])?[0];
    }
    for (i, &input) in aligned.iter().enumerate() {
        result = keep_nan(model, &format!("keep-{i}"), input, result)?;
    }
    Ok(tvec!(result))
}

/// An element is above `-inf`, or none is; with `keeps_nan`, a group with NaN yields NaN.
fn largest(
    model: &mut TypedModel,
    inputs: &[OutletId],
    rewire: &Rewire<'_>,
    keeps_nan: bool,
) -> WiredOutlets {
    let data = inputs[0];
    let mut result = rewire(model, "node", inputs)?[0];
    let lowest = constant(model, "lowest", f32::NEG_INFINITY, data)?;
    let above = compare(model, "above", comp_gt(), data, lowest)?;
    // The node's own reduction is applied to ones and zeros, which keeps axes, windows and padding
    // its own.
    let above = indicator(model, "any-above", inputs, above, rewire)?;
    let zero = constant(model, "zero", 0.0, above)?;
    let has_above = compare(model, "has-above", comp_gt(), above, zero)?;
    let lowest = constant(model, "lowest-result", f32::NEG_INFINITY, result)?;
    result = model.wire_node("not-lowest", Iff, &[has_above, result, lowest])?[0];
    if keeps_nan {
        // NaN is the only value that is not equal to itself.
        let is_nan = compare(model, "is-nan", comp_ne(), data, data)?;
        let is_nan = indicator(model, "any-nan", inputs, is_nan, rewire)?;
        let has_nan = compare(model, "has-nan", comp_gt(), is_nan, zero)?;
        let nan = constant(model, "nan", f32::NAN, result)?;
        result = model.wire_node("with-nan", Iff, &[has_nan, nan, result])?[0];
    }
    Ok(tvec!(result))
}

/// Every element is `+inf`, or one is below; a group with NaN yields NaN.
fn smallest(model: &mut TypedModel, inputs: &[OutletId], rewire: &Rewire<'_>) -> WiredOutlets {
    let data = inputs[0];
    let mut result = rewire(model, "node", inputs)?[0];
    let highest = constant(model, "highest", f32::INFINITY, data)?;
    let is_highest = compare(model, "is-highest", comp_gte(), data, highest)?;
    let is_highest = indicator(model, "all-highest", inputs, is_highest, rewire)?;
    let zero = constant(model, "zero", 0.0, is_highest)?;
    let are_highest = compare(model, "are-highest", comp_gt(), is_highest, zero)?;
    let highest = constant(model, "highest-result", f32::INFINITY, result)?;
    result = model.wire_node("not-highest", Iff, &[are_highest, highest, result])?[0];
    let is_number = compare(model, "is-number", comp_eq(), data, data)?;
    let is_number = indicator(model, "all-numbers", inputs, is_number, rewire)?;
    let has_nan = compare(model, "has-nan", comp_eq(), is_number, zero)?;
    let nan = constant(model, "nan", f32::NAN, result)?;
    result = model.wire_node("with-nan", Iff, &[has_nan, nan, result])?[0];
    Ok(tvec!(result))
}

/// Applies the node's operator to a condition on the elements, taken as 0 and 1.
fn indicator(
    model: &mut TypedModel,
    name: &str,
    inputs: &[OutletId],
    condition: OutletId,
    rewire: &Rewire<'_>,
) -> TractResult<OutletId> {
    let datum_type = model.outlet_fact(inputs[0])?.datum_type;
    let number = model.wire_node(format!("{name}.number"), cast(datum_type), &[condition])?[0];
    let mut inputs: TVec<OutletId> = inputs.into();
    inputs[0] = number;
    Ok(rewire(model, name, &inputs)?[0])
}

/// `result`, but NaN where `data` is.
fn keep_nan(
    model: &mut TypedModel,
    name: &str,
    data: OutletId,
    result: OutletId,
) -> TractResult<OutletId> {
    let is_nan = compare(model, &format!("{name}.is-nan"), comp_ne(), data, data)?;
    Ok(model.wire_node(name, Iff, &[is_nan, data, result])?[0])
}

fn compare(
    model: &mut TypedModel,
    name: &str,
    op: Box<dyn BinMiniOp>,
    a: OutletId,
    b: OutletId,
) -> TractResult<OutletId> {
    Ok(model.wire_node(name, TypedBinOp(op, None), &[a, b])?[0])
}

/// A constant of the type and with as many axes as `like`.
fn constant(
    model: &mut TypedModel,
    name: &str,
    value: f32,
    like: OutletId,
) -> TractResult<OutletId> {
    let fact = model.outlet_fact(like)?;
    let (datum_type, n_axes) = (fact.datum_type, fact.rank());
    let tensor = tensor0(value).cast_to_dt(datum_type)?.into_owned();
    model.add_const(name, tensor.broadcast_into_rank(n_axes)?)
}

fn has_nan(value: &TValue) -> bool {
    count(value).n_nan > 0
}

fn count(value: &TValue) -> opscope_tensor::NonFinite {
    value::to_tensor(value).map_or_else(Default::default, |tensor| tensor.non_finite())
}
