"""Operators that sum products: matrices, convolutions, pools, norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Draw
from .recipe import control, data, filled, optional, recipe, sample
from .sample import CLOSE, EXACT, SUMMED, Sample

PROFILES = ("ordinary", "ordinary", "large", "tiny", "zeros", "non_finite")


@recipe("MatMul")
def matmul(draw: Draw) -> Sample:
    m, k, n = (draw.integer(1, 5) for _ in range(3))
    if draw.maybe(0.06):
        k = 0
    lead = draw.shape(0, 2, extent_min=1)
    a = [*(draw.broadcastable(lead)), m, k] if draw.maybe(0.85) else [k]
    b = [*lead, k, n] if draw.maybe(0.85) else [k]
    profile = draw.profile(*PROFILES)
    return sample(draw, [filled(draw, a, profile=profile), filled(draw, b, profile=profile)], SUMMED)


@recipe("Gemm")
def gemm(draw: Draw) -> Sample:
    m, k, n = (draw.integer(1, 5) for _ in range(3))
    profiles = PROFILES
    more: dict[str, Any] = {key: optional(draw, draw.choice([0.5, -2.0, 0.0])) for key in ("alpha", "beta")}
    more |= {key: optional(draw, draw.integer(0, 1)) for key in ("transA", "transB")}
    if draw.dtype().kind in "iu":
        more |= {"alpha": None, "beta": None}
        profiles = ("ordinary",)
    a = [k, m] if more["transA"] else [m, k]
    b = [n, k] if more["transB"] else [k, n]
    profile = draw.profile(*profiles)
    inputs = [filled(draw, shape, profile=profile) for shape in (a, b)]
    if draw.opset < 11 or draw.maybe(0.7):
        inputs.append(filled(draw, draw.choice([[m, n], [n], [1, n], [m, 1], [], [1]]), profile=profile))
    return sample(draw, inputs, SUMMED, **more)


@recipe("MatMulInteger")
def matmul_integer(draw: Draw) -> Sample:
    m, k, n = (draw.integer(1, 5) for _ in range(3))
    lead = draw.shape(0, 2, extent_min=1)
    a, b = draw.dtype("T1"), draw.dtype("T2")
    inputs = [data(draw, draw.array(a, [*lead, m, k])), data(draw, draw.array(b, [k, n]))]
    inputs.append(optional(draw, control(draw, draw.array(a, []), a)))
    inputs.append(optional(draw, control(draw, draw.array(b, draw.choice([[], [n]])), b)))
    return sample(draw, inputs, EXACT)


@recipe("QLinearMatMul")
def qlinear_matmul(draw: Draw) -> Sample:
    m, k, n = (draw.integer(1, 5) for _ in range(3))
    types = [draw.choice([np.int8, np.uint8])] * 3
    shapes = [[m, k], [k, n]]
    inputs = []
    for dtype, shape in zip(types, shapes, strict=False):
        inputs += [data(draw, draw.array(dtype, shape)), _scale(draw), control(draw, draw.array(dtype, []), dtype)]
    inputs += [_scale(draw, 4.0), control(draw, draw.array(types[2], []), types[2])]
    return sample(draw, inputs, CLOSE_STEPS)


CLOSE_STEPS = type(CLOSE)(0.0, 0.0, 0.0, steps=1)


def _scale(draw: Draw, factor: float = 0.1) -> Any:
    return control(draw, draw.rng.uniform(0.1, 1) * factor, np.float32)


def _window(draw: Draw, spatial: list[int], *, has_ceil: bool, has_dilation: bool) -> dict[str, Any]:
    n = len(spatial)
    kernel = [draw.integer(1, min(3, extent)) for extent in spatial]
    more: dict[str, Any] = {"kernel_shape": kernel, "strides": optional(draw, [draw.integer(1, 3) for _ in range(n)])}
    if draw.maybe(0.3):
        more["auto_pad"] = draw.choice(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    elif draw.maybe():
        more["pads"] = [draw.integer(0, kernel[i % n] - 1) for i in range(2 * n)]
    if has_dilation and draw.maybe(0.3) and "auto_pad" not in more:
        pairs = zip(spatial, kernel, strict=True)
        more["dilations"] = [draw.integer(1, 2) if extent >= 2 * k else 1 for extent, k in pairs]
    if has_ceil and draw.maybe(0.3):
        more["ceil_mode"] = draw.integer(0, 1)
    return more


@recipe("MaxPool")
def max_pool(draw: Draw) -> Sample:
    dims = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(1, 3, extent_min=1, extent_max=6)]
    more = _window(draw, dims[2:], has_ceil=draw.opset >= 10, has_dilation=draw.opset >= 10)
    outputs = (True, draw.opset >= 8 and draw.maybe(0.4))
    if outputs[1]:
        more["storage_order"] = optional(draw, draw.integer(0, 1)) if len(dims) == 4 else None
    return sample(draw, [filled(draw, dims)], EXACT, outputs, **more)


@recipe("AveragePool")
def average_pool(draw: Draw) -> Sample:
    dims = [draw.integer(1, 2), draw.integer(1, 3), *draw.shape(1, 3, extent_min=1, extent_max=6)]
    more = _window(draw, dims[2:], has_ceil=draw.opset >= 10, has_dilation=draw.opset >= 19)
    more["count_include_pad"] = optional(draw, draw.integer(0, 1))
    return sample(draw, [filled(draw, dims, profile=draw.profile(*PROFILES))], SUMMED, **more)


def _convolved(draw: Draw) -> tuple[list[int], list[int], dict[str, Any]]:
    """Shapes of data and weights, and attributes."""
    group = draw.choice([1, 1, 2, 3])
    spatial = draw.shape(1, 3, extent_min=2, extent_max=6)
    dims = [draw.integer(1, 2), group * draw.integer(1, 2), *spatial]
    more = _window(draw, spatial, has_ceil=False, has_dilation=True)
    weights = [group * draw.integer(1, 2), dims[1] // group, *more["kernel_shape"]]
    if draw.maybe(0.4):
        del more["kernel_shape"]
    return dims, weights, more | {"group": group if group > 1 else optional(draw, 1)}


@recipe("Conv")
def conv(draw: Draw) -> Sample:
    dims, weights, more = _convolved(draw)
    profile = draw.profile(*PROFILES)
    bias = optional(draw, filled(draw, weights[:1], profile="ordinary"))
    inputs = [filled(draw, dims, profile=profile), filled(draw, weights, profile="ordinary"), bias]
    return sample(draw, inputs, SUMMED, **more)


@recipe("ConvInteger")
def conv_integer(draw: Draw) -> Sample:
    dims, weights, more = _convolved(draw)
    a, b = draw.dtype("T1"), draw.dtype("T2")
    inputs = [data(draw, draw.array(a, dims)), data(draw, draw.array(b, weights))]
    if draw.maybe(0.7):
        inputs.append(control(draw, draw.array(a, []), a))
        inputs.append(optional(draw, control(draw, draw.array(b, []), b)))
    return sample(draw, inputs, EXACT, **more)


@recipe("QLinearConv")
def qlinear_conv(draw: Draw) -> Sample:
    dims, weights, more = _convolved(draw)
    dtype = draw.choice([np.int8, np.uint8])
    inputs = []
    for shape in (dims, weights):
        inputs += [data(draw, draw.array(dtype, shape)), _scale(draw), control(draw, draw.array(dtype, []), dtype)]
    inputs += [_scale(draw, 4.0), control(draw, draw.array(dtype, []), dtype)]
    if draw.maybe():
        inputs.append(data(draw, draw.array(np.int32, weights[:1], "ordinary")))
    return sample(draw, inputs, CLOSE_STEPS, **more)


@recipe("ConvTranspose")
def conv_transpose(draw: Draw) -> Sample:
    dims, weights, more = _convolved(draw)
    group = more["group"] or 1
    weights = [dims[1], draw.integer(1, 2), *weights[2:]]
    if more.get("strides") and draw.maybe(0.3) and "auto_pad" not in more:
        more["output_padding"] = [draw.integer(0, stride - 1) for stride in more["strides"]]
    bias = optional(draw, filled(draw, [weights[1] * group], profile="ordinary"))
    inputs = [filled(draw, dims, profile=draw.profile(*PROFILES)), filled(draw, weights, profile="ordinary"), bias]
    return sample(draw, inputs, SUMMED, **more)


@recipe("BatchNormalization")
def batch_normalization(draw: Draw) -> Sample:
    dims = draw.shape(2, 5, extent_min=1)
    names = [parameter.type_str for parameter in draw.schema.inputs]
    for name in names[1:]:
        draw.set_dtype(draw.dtype(names[0]), name)
    inputs = [filled(draw, dims, names[0], draw.profile(*PROFILES))]
    for name in names[1:4]:
        inputs.append(filled(draw, dims[1:2], name, "ordinary"))
    inputs.append(data(draw, np.abs(draw.array(draw.dtype(names[4]), dims[1:2], "ordinary"))))
    return sample(draw, inputs, SUMMED, epsilon=optional(draw, 0.1))


@recipe("InstanceNormalization", "GroupNormalization")
def instance_normalization(draw: Draw) -> Sample:
    dims = draw.shape(3, 5, extent_min=1, extent_max=4)
    more = {"epsilon": optional(draw, 0.1)}
    n = dims[1]
    if draw.op_type == "GroupNormalization":
        groups = draw.integer(1, 2)
        dims[1] *= groups
        more["num_groups"] = groups
        n = dims[1] if draw.opset >= 21 else groups
    inputs = [filled(draw, dims, profile="ordinary"), *(filled(draw, [n], profile="ordinary") for _ in range(2))]
    return sample(draw, inputs, SUMMED, **more)


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(draw: Draw) -> Sample:
    dims = draw.shape(1, 4, extent_min=1)
    axis = draw.axis(len(dims)) if draw.maybe(0.7) else None
    normal = dims[-1 if axis is None else axis :]
    profile = draw.profile("ordinary", "ordinary", "zeros", "non_finite")
    names = [parameter.type_str for parameter in draw.schema.inputs]
    for name in names[1:]:
        draw.set_dtype(draw.dtype(names[0]), name)
    inputs = [filled(draw, dims, names[0], profile), filled(draw, normal, names[1], "ordinary")]
    if draw.op_type == "LayerNormalization":
        inputs.append(optional(draw, filled(draw, normal, names[2], "ordinary")))
    return sample(draw, inputs, SUMMED, axis=axis, epsilon=optional(draw, 0.1))


@recipe("LRN")
def lrn(draw: Draw) -> Sample:
    more = {"alpha": optional(draw, 0.1), "beta": optional(draw, 0.5), "bias": optional(draw, 2.0)}
    x = filled(draw, draw.shape(4, 4, extent_min=1), profile=draw.profile("ordinary", "zeros", "tiny"))
    return sample(draw, [x], SUMMED, size=draw.choice([1, 3, 5]), **more)


@recipe("Einsum")
def einsum(draw: Draw) -> Sample:
    extents = {letter: draw.integer(1, 4) for letter in "ijkb"}
    equation = draw.choice(["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "i,j->ij", "ij,ij->", "ij,jk", "ii->i",
                            "bij->bi", "...ij,...jk->...ik", "i,i->"])
    parts = equation.split("->")[0].replace("...", "b").split(",")
    profile = draw.profile("ordinary", "large", "zeros")
    inputs = [filled(draw, [extents[letter] for letter in part], profile=profile) for part in parts]
    return sample(draw, inputs, SUMMED, equation=equation)


@recipe("Resize")
def resize(draw: Draw) -> Sample:
    n_axes = draw.integer(2, 4)
    dims = [draw.integer(1, 2) for _ in range(n_axes - 2)] + [draw.integer(2, 6) for _ in range(2)]
    mode = draw.choice(["nearest", "linear", "cubic"] if n_axes == 4 else ["nearest", "linear"])
    sizes = [*dims[:-2], *(draw.integer(1, 9) for _ in range(2))]
    x = filled(draw, dims, "T1" if draw.opset >= 11 else "T", "ordinary")
    scales = [size / extent for size, extent in zip(sizes, dims, strict=True)]
    if draw.opset < 11:
        return sample(draw, [x, control(draw, scales, np.float32)], SUMMED, mode=mode if mode != "cubic" else "linear")
    transformations = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    more = {
        "mode": mode,
        "coordinate_transformation_mode": optional(draw, draw.choice(transformations)),
        "nearest_mode": optional(draw, draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])),
        "cubic_coeff_a": optional(draw, -0.5),
        "exclude_outside": optional(draw, draw.integer(0, 1)) if mode == "cubic" else None,
    }
    if draw.opset >= 18 and draw.maybe(0.3):
        more["antialias"] = 1
    roi = None if draw.opset >= 13 else control(draw, [], np.float32)
    if draw.maybe():
        return sample(draw, [x, roi, control(draw, scales, np.float32)], SUMMED, **more)
    empty = None if draw.opset >= 13 else control(draw, [], np.float32)
    return sample(draw, [x, roi, empty, control(draw, sizes)], SUMMED, **more)


@recipe("GridSample")
def grid_sample(draw: Draw) -> Sample:
    n, c, h, w = draw.integer(1, 2), draw.integer(1, 2), draw.integer(2, 5), draw.integer(2, 5)
    grid = draw.rng.uniform(-1.3, 1.3, [n, draw.integer(1, 3), draw.integer(1, 3), 2])
    modes = ["bilinear", "nearest", "bicubic"] if draw.opset < 20 else ["linear", "nearest", "cubic"]
    more = {"mode": optional(draw, draw.choice(modes)), "align_corners": optional(draw, draw.integer(0, 1))}
    more["padding_mode"] = optional(draw, draw.choice(["zeros", "border", "reflection"]))
    x = filled(draw, [n, c, h, w], "T1", "ordinary")
    return sample(draw, [x, control(draw, grid, draw.dtype("T2"))], SUMMED, **more)
