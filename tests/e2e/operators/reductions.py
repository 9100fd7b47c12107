"""Operators that make one element of many."""

from __future__ import annotations

import numpy as np

from .draw import Draw
from .recipe import control, data, filled, optional, recipe, sample
from .sample import EXACT, SUMMED, Sample

# Values of which the order of summation changes only last digits.
SUMMABLE = ("ordinary", "large", "tiny", "non_finite", "zeros", "huge")
FIRST_WITH_AXES_INPUT = {"ReduceSum": 13}
AXES_INPUT = 18


@recipe("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSum", "ReduceSumSquare")
def reduce(draw: Draw) -> Sample:
    dims = draw.shape()
    is_extreme = draw.op_type in ("ReduceMax", "ReduceMin")
    if draw.op_type.startswith("ReduceLog") and draw.dtype().kind in "iu":
        # A logarithm has no place in a type of integers.
        draw.set_dtype(np.float32)
    profile = "" if is_extreme else draw.profile(*SUMMABLE)
    if draw.dtype().kind in "iu" and not is_extreme:
        # The result of a sum of integers that overflows is left open.
        profile = "ordinary"
    array = draw.array(draw.dtype(), dims, profile)
    if draw.op_type == "ReduceProd" and array.dtype.kind in "iu":
        array = np.minimum(array, array.dtype.type(1))
        array = np.sign(array)
    x = data(draw, array)
    n_axes = len(dims)
    axes = None
    if n_axes and draw.maybe(0.75):
        chosen = draw.rng.permutation(n_axes)[: draw.integer(1, n_axes)]
        axes = [int(axis) - (n_axes if draw.maybe() and draw.opset >= 11 else 0) for axis in chosen]
    keepdims = optional(draw, draw.integer(0, 1))
    tolerance = EXACT if is_extreme else SUMMED
    if draw.opset < FIRST_WITH_AXES_INPUT.get(draw.op_type, AXES_INPUT):
        return sample(draw, [x], tolerance, axes=axes, keepdims=keepdims)
    given = control(draw, axes) if axes is not None else optional(draw, control(draw, []))
    noop = optional(draw, draw.integer(0, 1))
    return sample(draw, [x, given], tolerance, keepdims=keepdims, noop_with_empty_axes=noop)


@recipe("ArgMax", "ArgMin")
def arg(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    array = draw.array(draw.dtype(), dims)
    if draw.maybe(0.3) and array.size:
        array = np.where(draw.rng.random(dims) < 0.6, array.ravel()[0], array)
    more = {"axis": optional(draw, draw.axis(len(dims)) if draw.opset >= 11 else 0)}
    if draw.opset >= 12:
        more["select_last_index"] = optional(draw, draw.integer(0, 1))
    return sample(draw, [data(draw, array)], EXACT, keepdims=optional(draw, draw.integer(0, 1)), **more)


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(draw: Draw) -> Sample:
    dims = draw.shape(1)
    low = -len(dims) if draw.opset >= 11 else 0
    axis = optional(draw, draw.integer(low, len(dims) - 1))
    return sample(draw, [filled(draw, dims)], EXACT if draw.op_type == "Hardmax" else SUMMED, axis=axis)


@recipe("CumSum")
def cumsum(draw: Draw) -> Sample:
    dims = draw.shape(1)
    axis = control(draw, draw.axis(len(dims)), draw.choice([np.int32, np.int64]))
    more = {key: optional(draw, draw.integer(0, 1)) for key in ("exclusive", "reverse")}
    x = filled(draw, dims, profile=draw.profile("ordinary", "large", "tiny", "zeros", "non_finite"))
    return sample(draw, [x, axis], SUMMED, **more)


@recipe("LpNormalization")
def lp_normalization(draw: Draw) -> Sample:
    dims = draw.shape(1)
    more = {"axis": optional(draw, draw.axis(len(dims))), "p": optional(draw, draw.integer(1, 2))}
    return sample(draw, [filled(draw, dims, profile=draw.profile(*SUMMABLE))], SUMMED, **more)


@recipe("MeanVarianceNormalization")
def mean_variance(draw: Draw) -> Sample:
    dims = draw.shape(4, 4, extent_min=1)
    axes = optional(draw, draw.choice([[0, 2, 3], [1], [0, 1], [2, 3]]))
    return sample(draw, [filled(draw, dims, profile="ordinary")], SUMMED, axes=axes)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(draw: Draw) -> Sample:
    dims = draw.shape(3, 5, extent_min=1, extent_max=4)
    p = optional(draw, draw.integer(1, 3)) if draw.op_type == "GlobalLpPool" else None
    profile = "" if draw.op_type == "GlobalMaxPool" else draw.profile(*SUMMABLE)
    return sample(draw, [filled(draw, dims, profile=profile)], SUMMED, p=p)


@recipe("TopK")
def top_k(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = draw.axis(len(dims)) if draw.opset >= 11 else draw.integer(-1, len(dims) - 1)
    array = draw.array(draw.dtype(), dims, draw.profile("ordinary", "huge", "tiny", "zeros"))
    k = draw.integer(0, dims[axis])
    more = {}
    if draw.opset >= 11:
        more = {"largest": optional(draw, draw.integer(0, 1)), "sorted": 1}
    inputs = [data(draw, array)]
    if draw.opset < 10:
        more["k"] = k
    else:
        inputs.append(control(draw, [k]))
    return sample(draw, inputs, EXACT, (True, True), axis=axis, **more)
