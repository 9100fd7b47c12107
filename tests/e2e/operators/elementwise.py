"""Operators that compute element by element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .draw import Draw
from .recipe import control, data, filled, optional, recipe, sample
from .sample import CLOSE, EXACT, ROUNDED, SUMMED, Sample


@recipe("Abs", "BitwiseNot", "Ceil", "Floor", "Identity", "IsNaN", "Neg", "Not", "Relu", "Round", "Sign", "Size")
def exact(draw: Draw) -> Sample:
    name = draw.schema.inputs[0].type_str
    return sample(draw, [filled(draw, draw.shape(), name)], EXACT)


@recipe("Reciprocal", "Sqrt")
def rounded(draw: Draw) -> Sample:
    return sample(draw, [filled(draw, draw.shape())], ROUNDED)


@recipe(
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf", "Exp", "HardSwish", "Log", "Mish"),
    *("Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh"),
)
def close(draw: Draw) -> Sample:
    return sample(draw, [filled(draw, draw.shape())])


@recipe("Celu", "Elu", "LeakyRelu", "Swish", "ThresholdedRelu")
def with_alpha(draw: Draw) -> Sample:
    alpha = optional(draw, draw.choice([0.1, 1.0, 2.5, -0.5] if draw.op_type != "Celu" else [0.1, 1.0, 2.5]))
    return sample(draw, [filled(draw, draw.shape())], alpha=alpha)


@recipe("Selu")
def selu(draw: Draw) -> Sample:
    more = {"alpha": optional(draw, 1.2), "gamma": optional(draw, 0.7)}
    return sample(draw, [filled(draw, draw.shape())], **more)


@recipe("HardSigmoid")
def hard_sigmoid(draw: Draw) -> Sample:
    more = {"alpha": optional(draw, 0.4), "beta": optional(draw, 0.3)}
    return sample(draw, [filled(draw, draw.shape())], **more)


@recipe("Shrink")
def shrink(draw: Draw) -> Sample:
    more = {"bias": optional(draw, 1.5), "lambd": optional(draw, 2.0)}
    return sample(draw, [filled(draw, draw.shape())], **more)


@recipe("Gelu")
def gelu(draw: Draw) -> Sample:
    return sample(draw, [filled(draw, draw.shape())], approximate=optional(draw, draw.choice(["none", "tanh"])))


@recipe("IsInf")
def is_inf(draw: Draw) -> Sample:
    more = {key: optional(draw, draw.integer(0, 1)) for key in ("detect_negative", "detect_positive")}
    return sample(draw, [filled(draw, draw.shape(), "T1")], EXACT, **more)


@recipe("Shape")
def shape(draw: Draw) -> Sample:
    dims = draw.shape()
    more = {}
    if draw.opset >= 15:
        more = {"start": optional(draw, draw.integer(-5, 5)), "end": optional(draw, draw.integer(-5, 5))}
    return sample(draw, [filled(draw, dims)], EXACT, **more)


@recipe("Dropout")
def dropout(draw: Draw) -> Sample:
    outputs = (True, draw.maybe())
    if draw.opset < 12:
        return sample(draw, [filled(draw, draw.shape())], EXACT, outputs, ratio=optional(draw, 0.3))
    ratio = draw.array(draw.dtype("T1"), [], "zeros") + draw.dtype("T1").type(0.25)
    inputs = [filled(draw, draw.shape()), optional(draw, control(draw, ratio, ratio.dtype))]
    if draw.maybe(0.3):
        inputs.append(control(draw, False, np.bool_))
    return sample(draw, inputs, EXACT, outputs)


@recipe("Cast")
def cast(draw: Draw) -> Sample:
    source, target = draw.dtype("T1"), draw.dtype("T2")
    array = _castable(draw, source, target)
    return sample(draw, [data(draw, array)], EXACT, to=helper.np_dtype_to_tensor_dtype(target))


@recipe("CastLike")
def cast_like(draw: Draw) -> Sample:
    source, target = draw.dtype("T1"), draw.dtype("T2")
    return sample(draw, [data(draw, _castable(draw, source, target)), filled(draw, [2], "T2")], EXACT)


def _castable(draw: Draw, source: np.dtype, target: np.dtype) -> NDArray:
    """Numbers within the range of an integer, outside of which the standard leaves open what a float becomes."""
    if target.kind in "fb" or source.kind != "f":
        return draw.array(source, draw.shape())
    array = draw.array(source, draw.shape(), "ordinary")
    return np.abs(array) if target.kind == "u" else array


@recipe("Clip")
def clip(draw: Draw) -> Sample:
    x = filled(draw, draw.shape())
    if draw.opset < 11:
        return sample(draw, [x], EXACT, min=optional(draw, -1.5), max=optional(draw, 1.5))
    bounds = sorted(draw.array(draw.dtype(), [2], "ordinary").tolist())
    limits = [control(draw, bound, draw.dtype()) for bound in bounds]
    if draw.maybe(0.1):
        limits.reverse()
    return sample(draw, [x, optional(draw, limits[0]), optional(draw, limits[1])], EXACT)


@recipe("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
        "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def binary(draw: Draw) -> Sample:
    name = draw.schema.inputs[0].type_str
    dims = draw.shape()
    shapes = [dims, draw.broadcastable(dims)]
    if draw.maybe(0.4):
        shapes.reverse()
    a, b = (draw.array(draw.dtype(name), shape) for shape in shapes)
    if draw.op_type == "Div" and b.dtype.kind in "iu":
        b = np.where(b == 0, b.dtype.type(3), b)
        if b.dtype.kind == "i":
            b = np.where(b == -1, b.dtype.type(2), b)
    if draw.op_type in ("Equal", "GreaterOrEqual", "LessOrEqual") and shapes[0] == shapes[1]:
        a = np.where(draw.rng.random(shapes[0]) < 0.5, a, b)
    return sample(draw, [data(draw, a), data(draw, b)], ROUNDED)


@recipe("Mod")
def mod(draw: Draw) -> Sample:
    dims = draw.shape()
    a, b = draw.array(draw.dtype(), dims), draw.array(draw.dtype(), draw.broadcastable(dims))
    if b.dtype.kind in "iu":
        b = np.where(b == 0, b.dtype.type(3), b)
        if b.dtype.kind == "i":
            b = np.where(b == -1, b.dtype.type(2), b)
    fmod = 1 if b.dtype.kind == "f" else optional(draw, draw.integer(0, 1))
    return sample(draw, [data(draw, a), data(draw, b)], EXACT, fmod=fmod)


@recipe("Pow")
def power(draw: Draw) -> Sample:
    dims = draw.shape()
    a = draw.array(draw.dtype(), dims)
    dtype = draw.dtype("T1") if draw.opset >= 12 else a.dtype
    b = draw.array(dtype, draw.broadcastable(dims), "ordinary" if dtype.kind != "f" else "")
    if a.dtype.kind == "i" and dtype.kind == "f":
        b = np.round(b)
    if a.dtype.kind == "i":
        a, b = np.where(a > 100, a.dtype.type(7), np.where(a < -100, a.dtype.type(-3), a)), np.clip(b, -5, 5)
        b = np.where(np.isnan(b), b.dtype.type(1), b) if b.dtype.kind == "f" else b
        a = np.where(a == 0, a.dtype.type(1), a)
        if draw.maybe(0.7):
            b = np.abs(b)
    elif dtype.kind == "f" and draw.maybe(0.4):
        b = np.round(b)
    return sample(draw, [data(draw, a), data(draw, b.astype(dtype))])


@recipe("BitShift")
def bit_shift(draw: Draw) -> Sample:
    dims = draw.shape()
    a = draw.array(draw.dtype(), dims)
    b = draw.rng.integers(0, a.dtype.itemsize * 8 + 3, draw.broadcastable(dims)).astype(a.dtype)
    return sample(draw, [data(draw, a), data(draw, b)], EXACT, direction=draw.choice(["LEFT", "RIGHT"]))


@recipe("PRelu")
def prelu(draw: Draw) -> Sample:
    dims = draw.shape()
    return sample(draw, [filled(draw, dims), filled(draw, draw.broadcastable(dims))], ROUNDED)


@recipe("Max", "Min", "Sum", "Mean")
def many(draw: Draw) -> Sample:
    dims = draw.shape()
    is_sum = draw.op_type in ("Sum", "Mean")
    profile = draw.profile("ordinary", "large", "tiny", "non_finite", "zeros") if is_sum else ""
    inputs = [filled(draw, draw.broadcastable(dims), profile=profile) for _ in range(draw.integer(0, 2))]
    inputs.insert(draw.integer(0, len(inputs)), filled(draw, dims, profile=profile))
    return sample(draw, inputs, SUMMED if is_sum else EXACT)


@recipe("Where")
def where(draw: Draw) -> Sample:
    dims = draw.shape()
    a, b = filled(draw, draw.broadcastable(dims)), filled(draw, draw.broadcastable(dims))
    return sample(draw, [data(draw, draw.array(np.bool_, dims)), a, b], EXACT)


@recipe("QuantizeLinear")
def quantise(draw: Draw) -> Sample:
    draw.set_dtype(np.float32, "T1" if "T1" in _parameters(draw) else "T")
    dims, axis, parameters = _quantised(draw)
    x = data(draw, draw.array(np.float32, dims, draw.profile("ordinary", "large", "zeros", "tiny")))
    dtype = draw.choice([np.int8, np.uint8])
    scale = control(draw, draw.rng.uniform(0.01, 2, parameters), np.float32)
    zero = control(draw, draw.array(dtype, parameters), dtype)
    inputs = [x, scale, zero] if parameters or draw.maybe(0.7) else [x, scale]
    return sample(draw, inputs, EXACT, axis=axis)


@recipe("DequantizeLinear")
def dequantise(draw: Draw) -> Sample:
    dims, axis, parameters = _quantised(draw)
    dtype = draw.choice([np.int8, np.uint8, np.int32])
    x = data(draw, draw.array(dtype, dims))
    scale = control(draw, draw.rng.uniform(0.01, 2, parameters), np.float32)
    zero = control(draw, np.zeros(parameters) if dtype == np.int32 else draw.array(dtype, parameters), dtype)
    inputs = [x, scale, zero] if draw.maybe(0.7) else [x, scale]
    return sample(draw, inputs, ROUNDED, axis=axis)


@recipe("DynamicQuantizeLinear")
def dynamic_quantise(draw: Draw) -> Sample:
    profile = draw.profile("ordinary", "large", "zeros")
    x = data(draw, draw.array(np.float32, draw.shape(extent_min=1), profile))
    return sample(draw, [x], CLOSE, (True, True, True))


def _parameters(draw: Draw) -> list[str]:
    return [constraint.type_param_str for constraint in draw.schema.type_constraints]


def _quantised(draw: Draw) -> tuple[list[int], int | None, list[int]]:
    """A shape, and the axis and shape of scales."""
    dims = draw.shape(1)
    if draw.opset < 13 or draw.maybe(0.4):
        return dims, None, []
    axis = draw.axis(len(dims))
    return dims, axis, [dims[axis]]


@recipe("EyeLike")
def eye_like(draw: Draw) -> Sample:
    k = optional(draw, draw.integer(-3, 3))
    dtype = optional(draw, draw.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE]))
    return sample(draw, [filled(draw, draw.shape(2, 2), "T1")], EXACT, k=k, dtype=dtype)


@recipe("Trilu")
def trilu(draw: Draw) -> Sample:
    k = optional(draw, control(draw, draw.integer(-6, 6)))
    return sample(draw, [filled(draw, draw.shape(2, 4)), k], EXACT, upper=optional(draw, draw.integer(0, 1)))
