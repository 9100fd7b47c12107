"""Activations."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, FLOATS, INTEGERS, NUMBERS, Case, Draw, Out

Scalars = Callable[[Draw], list[object]]


def no_scalars(draw: Draw) -> list[object]:
    return []


def activation(
    name: str,
    reference: Callable[..., torch.Tensor],
    scalars: Scalars = no_scalars,
    dtypes: list[torch.dtype] = FLOATS,
    tolerance: float = 4.0,
    scale: float = 0.1,
    special: float = 0.0,
    in_place: bool = False,
) -> list[Case]:
    """`reference` takes the tensor and the numbers that `scalars` draws, which C takes after it."""

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, numbers = draw.tensor(draw.shape(), dtype, -8, 8, special), scalars(draw)
        return [x, *numbers, Out(reference(x, *numbers), tolerance, scale)]

    def inside(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, numbers = draw.tensor(draw.shape(), dtype, -8, 8, special), scalars(draw)
        return [Out(reference(x, *numbers), tolerance, scale, start=x), *numbers]

    cases = [Case(f"aclnn{name}", plain, dtypes)]
    if in_place:
        cases.append(Case(f"aclnnInplace{name}", inside, dtypes))
    return cases


def exact(x: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """In double precision, then rounded."""
    return function(x.double()).to(x.dtype)


def elu(x: torch.Tensor, alpha: float, scale: float, input_scale: float) -> torch.Tensor:
    return torch.ops.aten.elu(x, alpha, scale, input_scale)


def three_numbers(draw: Draw) -> list[object]:
    return [draw.number(0.1), draw.number(0.1), draw.number(0.1, 1.5)]


def one_positive(draw: Draw) -> list[object]:
    return [draw.number(0.1)]


def whole_bounds(draw: Draw) -> list[object]:
    return [draw.int(-6, 0), draw.int(0, 6)]


def slope(draw: Draw) -> list[object]:
    return [draw.choice([0.01, 0.25, draw.number()])]


def swish(x: torch.Tensor, beta: float | None) -> torch.Tensor:
    return exact(x, lambda x: x * torch.sigmoid(x * (1.0 if beta is None else beta)))


def prelu(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    n = x.shape[1] if x.dim() > 1 and draw.flag() else 1
    weight = draw.tensor([n], dtype)
    expected = torch.where(x > 0, x, x * (weight.reshape([n if i == 1 else 1 for i in range(x.dim())]) if n > 0 else x))
    return [x, weight, Out(expected, 1)]


def halves(draw: Draw, dtype: torch.dtype) -> tuple[torch.Tensor, int]:
    shape = draw.shape(least=1)
    dim = draw.int(0, len(shape) - 1)
    shape[dim] *= 2
    return draw.tensor(shape, dtype), dim - draw.choice([0, len(shape)])


def glu(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = halves(draw, dtype)
    return [x, dim, Out(exact(x, lambda x: F.glu(x, dim)), 2, 0.01)]


def swish_glu(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = halves(draw, dtype)
    a, b = x.double().chunk(2, dim)
    return [x, dim, Out((F.silu(a) * b).to(dtype), 2, 0.01)]


def gelu_glu(choose: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, dim = halves(draw, dtype)
        a, b = x.double().chunk(2, dim)
        approximate, left = draw.int(0, 1), choose and draw.flag()
        if left:
            a, b = b, a
        gelu = F.gelu(b, approximate=["none", "tanh"][approximate])
        outs = [Out((a * gelu).to(dtype), 4, 4), Out(gelu.to(dtype), 4, 1)]
        return [x, dim, approximate, *([left] if choose else []), *outs]

    return draw_one


def gelu_by_formula(x: torch.Tensor, approximate: int) -> torch.Tensor:
    return exact(x, lambda x: F.gelu(x, approximate=["none", "tanh"][approximate]))


def rounded(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: exact(x, function)


CASES = [
    *activation("Relu", torch.relu, dtypes=NUMBERS, tolerance=0, special=0.1, in_place=True),
    *activation("LeakyRelu", F.leaky_relu, slope, tolerance=1, in_place=True),
    *activation("Elu", elu, three_numbers, in_place=True),
    *activation("Selu", torch.selu, in_place=True),
    *activation("Celu", F.celu, one_positive, in_place=True),
    *activation("Gelu", rounded(F.gelu), scale=1),
    *activation("GeluV2", gelu_by_formula, lambda draw: [draw.int(0, 1)], scale=1),
    *activation("FastGelu", rounded(lambda x: x * torch.sigmoid(1.702 * x))),
    *activation("Silu", rounded(F.silu)),
    *activation("Swish", swish, lambda draw: [draw.number() if draw.flag() else None], tolerance=8),
    # Where there is no AVX-512, tract's hyperbolic tangent is four units off near one.
    *activation("Mish", rounded(F.mish), tolerance=8, in_place=True),
    *activation("Sigmoid", torch.sigmoid, dtypes=ALL_FLOATS, scale=0, special=0.1, in_place=True),
    *activation("LogSigmoid", rounded(F.logsigmoid)),
    *activation(
        "Hardsigmoid",
        lambda x: F.hardsigmoid(x.float()).to(x.dtype),
        dtypes=[*FLOATS, torch.int32],
        in_place=True,
    ),
    *activation("Hardswish", rounded(F.hardswish), in_place=True),
    *activation("Hardtanh", F.hardtanh, whole_bounds, [*FLOATS, *INTEGERS[:-1]], 0, special=0.1, in_place=True),
    *activation("Hardshrink", F.hardshrink, one_positive, tolerance=0, special=0.1),
    *activation("Softshrink", F.softshrink, lambda draw: [draw.choice([0.0, 0.5, 1.25])], tolerance=1, special=0.1),
    *activation("Softplus", F.softplus, lambda draw: [draw.number(0.3), draw.choice([2.0, 20.0])]),
    *activation("Softsign", rounded(F.softsign)),
    *activation("Threshold", F.threshold, whole_bounds, NUMBERS[:-1], 0, special=0.1, in_place=True),
    Case("aclnnPrelu", prelu),
    Case("aclnnGlu", glu, ALL_FLOATS),
    Case("aclnnGeGlu", gelu_glu(False)),
    Case("aclnnGeGluV3", gelu_glu(True)),
    Case("aclnnSwiGlu", swish_glu),
]
