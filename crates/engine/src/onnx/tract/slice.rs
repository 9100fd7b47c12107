//! `SliceComposition` with bounds that do not meet.
//!
//! tract rejects bounds that leave nothing, and before opset 10 it adds a length only once to a
//! start or an end that is further negative than that.

use tract_onnx::model::{ParsingContext, optional_inputs};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::array::Slice as SliceOfEngine;
use tract_onnx::tract_core::ops::downsample::Downsample;
use tract_onnx::tract_core::ops::identity::Identity;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Composition, ResultShape};
use super::wiring::{NodeWiring, WiredOutlets};

/// The first opset in which starts, ends, axes and steps are inputs.
const OPSET_WITH_INPUTS: i64 = 10;

#[derive(Clone, Debug)]
pub(super) enum SliceComposition {
    /// The operator's attributes.
    Attributes(SliceBounds),
    /// Where the inputs are: axes and steps are optional.
    Inputs {
        axes: Option<usize>,
        steps: Option<usize>,
    },
}

/// Without axes all of them, in order; without steps every element.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceBounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
}

impl Composition for SliceComposition {
    const OP_TYPE: &'static str = "Slice";
    const RESULT_SHAPE: ResultShape = ResultShape::OfSameRank;

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        if context.onnx_operator_set_version < OPSET_WITH_INPUTS {
            return Ok(SliceComposition::Attributes(SliceBounds {
                starts: node.get_attr_vec("starts")?,
                ends: node.get_attr_vec("ends")?,
                axes: node.get_attr_opt_vec("axes")?,
                steps: None,
            }));
        }
        let mut optional = optional_inputs(node).skip(3);
        Ok(SliceComposition::Inputs {
            axes: optional.next().flatten(),
            steps: optional.next().flatten(),
        })
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let bounds = match self {
            SliceComposition::Attributes(bounds) => bounds.clone(),
            SliceComposition::Inputs { axes, steps } => SliceBounds {
                starts: constant(wiring, inputs, 1)?,
                ends: constant(wiring, inputs, 2)?,
                axes: axes.map(|at| constant(wiring, inputs, at)).transpose()?,
                steps: steps.map(|at| constant(wiring, inputs, at)).transpose()?,
            },
        };
        let dims = wiring.dims(inputs[0])?;
        let mut result = wiring.wire_as_is(Identity, &inputs[..1])?;
        for i in 0..bounds.starts.len() {
            let (axis, range) = bounds.range_of(i, &dims)?;
            if range.first > 0 || range.end < dims[axis] {
                let cut = SliceOfEngine::new(axis, range.first, range.end);
                result = wiring.wire_as_is(cut, &[result])?;
            }
            if range.step != 1 && range.first < range.end {
                let thinned = Downsample::new(axis, range.step, 0);
                // The stretch was cut out first, so that a step begins at its first element, or at
                // its last if it is negative.
                result = wiring.wire_as_is(thinned, &[result])?;
            }
        }
        Ok(tvec!(result))
    }
}

fn constant(wiring: &NodeWiring<'_>, inputs: &[OutletId], at: usize) -> TractResult<Vec<i64>> {
    let fact = wiring.model.outlet_fact(inputs[at])?;
    let tensor = fact.konst.as_ref().context("a bound is not known")?;
    let tensor = tensor.cast_to::<i64>()?;
    Ok(tensor.try_as_plain_ram()?.as_slice::<i64>()?.to_vec())
}

/// Elements of an axis, from `first` on up to `end`, which is not among them; backward with a
/// negative step.
struct AxisRange {
    first: usize,
    end: usize,
    step: isize,
}

fn bound(list: &[i64], i: usize) -> TractResult<i64> {
    list.get(i)
        .copied()
        .context("a list of bounds is too short")
}

impl SliceBounds {
    /// The axis that the bounds at `i` are for, and what they leave of it.
    fn range_of(&self, i: usize, dims: &[usize]) -> TractResult<(usize, AxisRange)> {
        let axis = self
            .axes
            .as_deref()
            .map_or(Ok(i as i64), |axes| bound(axes, i))?;
        let wrapped = if axis < 0 {
            axis + dims.len() as i64
        } else {
            axis
        };
        let axis = usize::try_from(wrapped)
            .ok()
            .filter(|&axis| axis < dims.len());
        let axis = axis.with_context(|| format!("axis {wrapped} of {} axes", dims.len()))?;
        let dim = i64::try_from(dims[axis])?;
        let step = self
            .steps
            .as_deref()
            .map_or(Ok(1), |steps| bound(steps, i))?;
        ensure!(step != 0, "a step of zero");
        // The standard adds the length once to a negative bound and clamps what is still outside.
        let [start, end] = [bound(&self.starts, i)?, bound(&self.ends, i)?].map(|bound| {
            if bound < 0 {
                bound.saturating_add(dim)
            } else {
                bound
            }
        });
        let (first, end) = if step > 0 {
            (start.clamp(0, dim), end.clamp(0, dim))
        } else {
            // From the element after the end up to the start, which is an element in any case.
            (end.clamp(-1, dim - 1) + 1, start.max(0).min(dim - 1) + 1)
        };
        let (first, end) = (usize::try_from(first)?, usize::try_from(end.max(first))?);
        let step = isize::try_from(step)?;
        Ok((axis, AxisRange { first, end, step }))
    }
}
