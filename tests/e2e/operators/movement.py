"""Operators that move elements, and those that make them out of positions."""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper

from .draw import Draw
from .recipe import control, data, filled, optional, recipe, sample
from .sample import CLOSE, EXACT, Sample, Value


@recipe("Reshape")
def reshape(draw: Draw) -> Sample:
    dims = draw.shape()
    wanted = [int(extent) for extent in draw.rng.permutation(dims)] if draw.maybe() else _merged(draw, dims)
    more = {}
    if draw.opset >= 14 and draw.maybe(0.3):
        more["allowzero"] = draw.integer(0, 1)
    if wanted and 0 not in dims and draw.maybe(0.6):
        wanted[draw.integer(0, len(wanted) - 1)] = -1
    for i, extent in enumerate(wanted[: len(dims)]):
        if extent == dims[i] and not more.get("allowzero") and draw.maybe(0.3):
            wanted[i] = 0
    return sample(draw, [filled(draw, dims), control(draw, wanted)], EXACT, **more)


def _merged(draw: Draw, dims: list[int]) -> list[int]:
    at = draw.integer(0, len(dims))
    return [int(np.prod(dims[:at])), *dims[at:]]


@recipe("Flatten")
def flatten(draw: Draw) -> Sample:
    dims = draw.shape(0 if draw.opset >= 9 else 1)
    low = -len(dims) if draw.opset >= 11 else 0
    return sample(draw, [filled(draw, dims)], EXACT, axis=optional(draw, draw.integer(low, len(dims))) if dims else 0)


@recipe("Squeeze", "Unsqueeze")
def squeeze(draw: Draw) -> Sample:
    dims = draw.shape(0, 3)
    is_adding = draw.op_type == "Unsqueeze"
    n_added = draw.integer(1, 2)
    n_axes = len(dims) + n_added
    places = sorted(int(i) for i in draw.rng.permutation(n_axes)[:n_added])
    if not is_adding:
        for place in places:
            dims.insert(place, 1)
    axes = [i - n_axes if draw.maybe() and draw.opset >= 11 else i for i in places]
    draw.rng.shuffle(axes)
    is_absent = not is_adding and draw.maybe(0.25)
    if draw.opset < 13:
        return sample(draw, [filled(draw, dims)], EXACT, axes=None if is_absent else axes)
    return sample(draw, [filled(draw, dims), None if is_absent else control(draw, axes)], EXACT)


@recipe("Transpose")
def transpose(draw: Draw) -> Sample:
    dims = draw.shape()
    perm = optional(draw, [int(i) for i in draw.rng.permutation(len(dims))]) if dims else None
    return sample(draw, [filled(draw, dims)], EXACT, perm=perm)


@recipe("Expand")
def expand(draw: Draw) -> Sample:
    wanted = draw.shape(0, 4, extent_max=4)
    dims = draw.broadcastable(wanted)
    for i in range(len(wanted)):
        if dims[len(dims) - len(wanted) + i :][:1] == [wanted[i]] and len(dims) == len(wanted) and draw.maybe(0.3):
            wanted[i] = 1
    return sample(draw, [filled(draw, dims), control(draw, wanted)], EXACT)


@recipe("Tile")
def tile(draw: Draw) -> Sample:
    dims = draw.shape(1)
    return sample(draw, [filled(draw, dims), control(draw, [draw.integer(0, 3) for _ in dims])], EXACT)


@recipe("Concat")
def concat(draw: Draw) -> Sample:
    dims = draw.shape(1)
    axis = draw.integer(-len(dims) if draw.opset >= 11 else 0, len(dims) - 1)
    inputs = []
    for _ in range(draw.integer(1, 4)):
        own = list(dims)
        own[axis] = draw.integer(0 if draw.maybe(0.2) else 1, 4)
        inputs.append(filled(draw, own))
    return sample(draw, inputs, EXACT, axis=axis)


@recipe("Split")
def split(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = draw.integer(-len(dims) if draw.opset >= 11 else 0, len(dims) - 1)
    n_parts = draw.integer(1, 3)
    sizes = [draw.integer(0 if draw.maybe(0.2) else 1, 3) for _ in range(n_parts)]
    is_even = draw.maybe(0.4)
    dims[axis] = n_parts * draw.integer(1, 3) if is_even else sum(sizes)
    outputs = (True,) * n_parts
    more = {"axis": axis if axis else optional(draw, 0)}
    if draw.opset >= 18 and is_even:
        if n_parts > 1 and draw.maybe(0.4):
            dims[axis] = max(dims[axis] - 1, (n_parts - 1) * -(-dims[axis] // n_parts) + 1)
        return sample(draw, [filled(draw, dims)], EXACT, outputs, num_outputs=n_parts, **more)
    if is_even:
        return sample(draw, [filled(draw, dims)], EXACT, outputs, **more)
    if draw.opset < 13:
        return sample(draw, [filled(draw, dims)], EXACT, outputs, split=sizes, **more)
    return sample(draw, [filled(draw, dims), control(draw, sizes)], EXACT, outputs, **more)


@recipe("Slice")
def slice_(draw: Draw) -> Sample:
    dims = draw.shape(1)
    axes = sorted(int(i) for i in draw.rng.permutation(len(dims))[: draw.integer(1, len(dims))])
    far = draw.choice([1 << 30, (1 << 31) - 1, (1 << 63) - 1])
    ends = [draw.choice([draw.integer(-6, 6), far]) for _ in axes]
    starts = [draw.integer(-6, 6) for _ in axes]
    if draw.opset < 10:
        return sample(draw, [filled(draw, dims)], EXACT, axes=axes, starts=starts, ends=ends)
    steps = [draw.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    for i, step in enumerate(steps):
        # Backward, the largest numbers of a type mean the beginning in some engines, and the end in numpy.
        if step < 0 and (draw.maybe() or ends[i] == far):
            starts[i], ends[i] = draw.choice([1 << 30, 5, -1]), draw.choice([-(1 << 30), -7, 0])
    if draw.maybe(0.3):
        axes = [axis - len(dims) for axis in axes]
    dtype = draw.choice([np.int64, np.int32])
    numbers = [np.clip(v, np.iinfo(dtype).min + 1, np.iinfo(dtype).max) for v in (starts, ends)]
    inputs = [filled(draw, dims), *(control(draw, v, dtype) for v in numbers)]
    has_steps = draw.maybe(0.7)
    if axes != list(range(len(axes))) or has_steps or draw.maybe():
        inputs.append(control(draw, axes, dtype))
        if has_steps:
            inputs.append(control(draw, steps, dtype))
    return sample(draw, inputs, EXACT)


@recipe("Pad")
def pad(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    modes = ["constant", "reflect", "edge", *(["wrap"] if draw.opset >= 19 else [])]
    mode = optional(draw, draw.choice(modes))
    bound = min(dims) - 1 if mode in ("reflect", "wrap") else 3
    low = -1 if draw.maybe(0.2) and min(dims) > 2 else 0
    pads = [draw.integer(low, min(bound, 3)) for _ in range(2 * len(dims))]
    x = filled(draw, dims)
    is_constant = mode in (None, "constant")
    if draw.opset < 11:
        value = optional(draw, 1.5) if is_constant else None
        return sample(draw, [x], EXACT, pads=pads, mode=mode, value=value)
    value = control(draw, draw.array(x.array.dtype, []), x.array.dtype) if is_constant and draw.maybe() else None
    inputs = [x, control(draw, pads), value]
    if draw.opset >= 18 and draw.maybe(0.4):
        axes = sorted(int(i) for i in draw.rng.permutation(len(dims))[: draw.integer(1, len(dims))])
        inputs[1] = control(draw, [draw.integer(0, min(bound, 3)) for _ in range(2 * len(axes))])
        inputs.append(control(draw, [axis - len(dims) if draw.maybe() else axis for axis in axes]))
    return sample(draw, inputs, EXACT, mode=mode)


def _indices(draw: Draw, shape: list[int], extent: int) -> Value:
    low = -extent if draw.opset >= 11 and draw.maybe() else 0
    values = draw.rng.integers(low, max(extent, low + 1), shape) if extent else np.zeros([0, *shape[1:]])
    return control(draw, values, draw.choice([np.int32, np.int64]))


@recipe("Gather")
def gather(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = draw.axis(len(dims)) if draw.maybe(0.7) else None
    return sample(draw, [filled(draw, dims), _indices(draw, draw.shape(0, 2), dims[axis or 0])], EXACT, axis=axis)


@recipe("GatherElements")
def gather_elements(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = draw.axis(len(dims)) if draw.maybe(0.7) else None
    own = [draw.integer(1, extent) for extent in dims]
    own[axis or 0] = draw.integer(1, 5)
    return sample(draw, [filled(draw, dims), _indices(draw, own, dims[axis or 0])], EXACT, axis=axis)


@recipe("GatherND")
def gather_nd(draw: Draw) -> Sample:
    dims = draw.shape(2, 4, extent_min=1)
    batch = draw.integer(0, 1) if draw.opset >= 12 else 0
    last = draw.integer(1, len(dims) - batch)
    shape = [*dims[:batch], draw.integer(1, 3), last]
    picked = np.stack([draw.rng.integers(-dims[batch + i], dims[batch + i], shape[:-1]) for i in range(last)], -1)
    picked = np.abs(picked) % np.array(dims[batch : batch + last]) if draw.maybe() else picked
    return sample(draw, [filled(draw, dims), control(draw, picked)], EXACT, batch_dims=batch or None)


@recipe("ScatterElements")
def scatter_elements(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = draw.integer(-len(dims), len(dims) - 1)
    own = [draw.integer(1, extent) for extent in dims]
    reductions = {16: ["none", "add", "mul"], 18: ["none", "add", "mul", "max", "min"]}
    known = next((names for start, names in reversed(reductions.items()) if draw.opset >= start), [])
    reduction = draw.choice([None, *known])
    if reduction in (None, "none"):
        # Where places repeat, which one counts is not said.
        whole = [dims[axis] if i == axis % len(dims) else n for i, n in enumerate(own)]
        order = np.argsort(draw.rng.random(whole), axis)
        where = control(draw, np.take(order, range(own[axis]), axis))
    else:
        where = _indices(draw, own, dims[axis])
    profile = draw.profile("ordinary", "non_finite", "zeros")
    inputs = [filled(draw, dims, profile=profile), where, filled(draw, own, profile=profile)]
    tolerance = CLOSE if reduction in ("add", "mul") else EXACT
    return sample(draw, inputs, tolerance, axis=optional(draw, axis) if axis == 0 else axis, reduction=reduction)


@recipe("ScatterND")
def scatter_nd(draw: Draw) -> Sample:
    dims = draw.shape(1, 3, extent_min=1)
    last = draw.integer(1, len(dims))
    places = np.stack(np.unravel_index(draw.rng.permutation(int(np.prod(dims[:last]))), dims[:last]), -1)
    places = places[: draw.integer(1, len(places))]
    reductions = {16: ["none", "add", "mul"], 18: ["none", "add", "mul", "max", "min"]}
    known = next((names for start, names in reversed(reductions.items()) if draw.opset >= start), [])
    reduction = draw.choice([None, *known])
    if reduction not in (None, "none") and draw.maybe():
        places = np.concatenate([places, places[:1]])
    profile = draw.profile("ordinary", "non_finite", "zeros")
    updates = filled(draw, [len(places), *dims[last:]], profile=profile)
    tolerance = CLOSE if reduction in ("add", "mul") else EXACT
    inputs = [filled(draw, dims, profile=profile), control(draw, places), updates]
    return sample(draw, inputs, tolerance, reduction=reduction)


@recipe("Compress")
def compress(draw: Draw) -> Sample:
    dims = draw.shape(1, extent_min=1)
    axis = optional(draw, draw.integer(-len(dims) if draw.opset >= 11 else 0, len(dims) - 1))
    n = dims[axis] if axis is not None else int(np.prod(dims))
    mask = control(draw, draw.rng.random(draw.integer(1, n)) < 0.5, np.bool_)
    return sample(draw, [filled(draw, dims), mask], EXACT, axis=axis)


@recipe("NonZero")
def non_zero(draw: Draw) -> Sample:
    array = draw.array(draw.dtype(), draw.shape(1), draw.profile("zeros", "non_finite", "edges"))
    # The shape of the result follows from the elements.
    return sample(draw, [Value(array)], EXACT)


@recipe("OneHot")
def one_hot(draw: Draw) -> Sample:
    dims = draw.shape(0, 3)
    indices = draw.array(draw.choice([np.int64, np.int32, np.float32]), dims, "ordinary")
    depth = control(draw, draw.choice([5, [5]]), draw.choice([np.int64, np.int32, np.float32]))
    values = draw.array(draw.dtype("T3"), [2], "ordinary")
    axis = optional(draw, draw.integer(-len(dims) - 1, len(dims)))
    chosen = data(draw, np.trunc(indices).astype(indices.dtype))
    return sample(draw, [chosen, depth, data(draw, values)], CLOSE, axis=axis)


@recipe("Range")
def range_(draw: Draw) -> Sample:
    dtype = draw.dtype()
    start, end, step = draw.integer(-9, 9), draw.integer(-9, 9), draw.choice([1, 2, 3, -1, -2, 7])
    scale = draw.choice([1, 0.25, 0.1]) if dtype.kind == "f" else 1
    return sample(draw, [control(draw, v * scale, dtype) for v in (start, end, step)])


@recipe("ConstantOfShape")
def constant_of_shape(draw: Draw) -> Sample:
    value = draw.array(draw.dtype("T2"), [1])
    tensor = optional(draw, numpy_helper.from_array(value))
    return sample(draw, [control(draw, draw.shape())], EXACT, value=tensor)


@recipe("Constant")
def constant(draw: Draw) -> Sample:
    if draw.opset < 12 or draw.maybe():
        return sample(draw, [], EXACT, value=numpy_helper.from_array(draw.array(draw.dtype(), draw.shape())))
    more = {"value_float": -0.0, "value_floats": [1.5, -0.0], "value_int": -7, "value_ints": [1, -(1 << 63)]}
    name = draw.choice(list(more))
    return sample(draw, [], EXACT, **{name: more[name]})


@recipe("DepthToSpace", "SpaceToDepth")
def depth_to_space(draw: Draw) -> Sample:
    block = draw.integer(1, 3)
    n, c, h, w = draw.shape(4, 4, extent_min=1, extent_max=3)
    if draw.op_type == "SpaceToDepth":
        return sample(draw, [filled(draw, [n, c, h * block, w * block])], EXACT, blocksize=block)
    mode = optional(draw, draw.choice(["DCR", "CRD"])) if draw.opset >= 11 else None
    return sample(draw, [filled(draw, [n, c * block * block, h, w])], EXACT, blocksize=block, mode=mode)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(draw: Draw) -> Sample:
    dtype = optional(draw, helper.np_dtype_to_tensor_dtype(np.dtype(draw.choice([np.float32, np.float64]))))
    more = {"periodic": optional(draw, draw.integer(0, 1)), "output_datatype": dtype}
    return sample(draw, [control(draw, draw.integer(2, 12), draw.choice([np.int32, np.int64]))], **more)
