"""Gradients of activations."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, FLOATS, NUMBERS, Case, Draw, Out

Function = Callable[..., torch.Tensor]
Scalars = Callable[[Draw], list[object]]


def gradient(function: Function, x: torch.Tensor, grad: torch.Tensor, *numbers: object) -> torch.Tensor:
    leaf = x.double().requires_grad_()
    with torch.enable_grad():
        function(leaf, *numbers).backward(grad.double())
    return leaf.grad


def no_scalars(draw: Draw) -> list[object]:
    return []


def backward(name: str, function: Function, scalars: Scalars = no_scalars, passed: Scalars | None = None) -> Case:
    """`scalars` are for both; `passed` draws what C takes besides, behind them."""

    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = draw.shape()
        x, grad, numbers = draw.tensor(shape, dtype, -6, 6), draw.tensor(shape, dtype), scalars(draw)
        expected = gradient(function, x, grad, *numbers).to(dtype)
        return [grad, x, *numbers, *(passed(draw) if passed else []), Out(expected, 8, 1)]

    return Case(f"aclnn{name}", draw_one)


def of_result(function: Function, slope: Function) -> Callable[[Draw, torch.dtype], list[object]]:
    """Of an activation whose result is passed; `slope` is in terms of it."""

    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = draw.shape()
        y, grad = draw.view(function(draw.tensor(shape, dtype))), draw.tensor(shape, dtype)
        return [grad, y, Out((grad.double() * slope(y.double())).to(dtype), 4, 1)]

    return draw_one


def threshold(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2)
    grad, x, limit = draw.tensor(a, dtype), draw.tensor(b, dtype), draw.int(0, 2)
    expected = torch.where(x <= limit, torch.zeros((), dtype=dtype), grad)
    return [grad, x, limit, Out(expected)]


def elu(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, is_result = draw.shape(), draw.flag()
    x, grad = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
    numbers = [draw.number(0.1), draw.number(0.1), draw.number(0.1, 1.5)]
    expected = torch.ops.aten.elu_backward(grad.double(), *numbers, is_result, x.double())
    return [grad, *numbers, is_result, x, Out(expected.to(dtype), 8, 4)]


def selu_slope(y: torch.Tensor) -> torch.Tensor:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return torch.where(y > 0, scale, y + scale * alpha)


def gelu_v2(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, approximate = draw.shape(), draw.choice(["none", "tanh"])
    x, grad = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
    expected = gradient(lambda x: F.gelu(x, approximate=approximate), x, grad)
    return [grad, x, approximate, Out(expected.to(dtype), 8, 4)]


def log_sigmoid(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape()
    x, grad = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
    return [grad, x, None, Out(gradient(F.logsigmoid, x, grad).to(dtype), 8)]


def halves(function: Function) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = draw.shape(least=1)
        dim = draw.int(0, len(shape) - 1)
        grad = draw.tensor(shape, dtype)
        shape = [2 * n if i == dim else n for i, n in enumerate(shape)]
        x = draw.tensor(shape, dtype)
        return [grad, x, dim, Out(gradient(function, x, grad, dim).to(dtype), 8, 4)]

    return draw_one


def swish_glu(x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b = x.chunk(2, dim)
    return F.silu(a) * b


def swish(x: torch.Tensor, beta: float | None) -> torch.Tensor:
    return x * torch.sigmoid(x * (1.0 if beta is None else beta))


def hard_swish(x: torch.Tensor) -> torch.Tensor:
    """With the inner slope at -3 and 3 as well, where torch has those of the sides."""
    inner = torch.where(x <= 3, x * (x + 3) / 6, x)
    return torch.where(x < -3, torch.zeros((), dtype=x.dtype), inner)


def one_positive(draw: Draw) -> list[object]:
    return [draw.number(0.1)]


CASES = [
    Case("aclnnThresholdBackward", threshold, NUMBERS),
    Case("aclnnSigmoidBackward", of_result(torch.sigmoid, lambda y: y * (1 - y)), ALL_FLOATS),
    backward("GeluBackward", F.gelu),
    Case("aclnnGeluBackwardV2", gelu_v2),
    backward("FastGeluBackward", lambda x: x * torch.sigmoid(1.702 * x)),
    backward("SiluBackward", F.silu),
    backward("SwishBackward", swish, lambda draw: [draw.number() if draw.flag() else None]),
    backward("MishBackward", F.mish),
    Case("aclnnEluBackward", elu),
    Case("aclnnSeluBackward", of_result(torch.selu, selu_slope)),
    backward("LeakyReluBackward", F.leaky_relu, one_positive, lambda draw: [draw.flag()]),
    backward("HardshrinkBackward", F.hardshrink, lambda draw: [draw.choice([0.5, 1.25])]),
    backward("SoftshrinkBackward", F.softshrink, lambda draw: [draw.choice([0.5, 1.25])]),
    backward("HardtanhBackward", F.hardtanh, lambda draw: [draw.choice([-1.5, -0.25]), draw.choice([0.5, 2.0])]),
    backward("HardsigmoidBackward", F.hardsigmoid),
    backward("HardswishBackward", hard_swish),
    backward("HardswishBackwardV2", F.hardswish),
    backward("SoftplusBackward", F.softplus, lambda draw: [draw.number(0.3), draw.choice([2.0, 20.0])]),
    Case("aclnnLogSigmoidBackward", log_sigmoid),
    Case("aclnnGluBackward", halves(F.glu), ALL_FLOATS),
    Case("aclnnSwiGluGrad", halves(swish_glu)),
]
assert FLOATS
