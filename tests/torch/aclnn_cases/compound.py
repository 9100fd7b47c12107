"""Arithmetic that consists of several simpler operators."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, ALL_FLOATS, FLOATS, INTEGERS, NUMBERS, Case, Draw, Out

from .elementwise import binary, with_scalar


def of_one(
    function: str,
    reference: Callable[[torch.Tensor], torch.Tensor],
    dtypes: list[torch.dtype],
    tolerance: float = 1.0,
    scale: float = 0.0,
) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, special=0.1)
        return [x, Out(reference(x), tolerance, scale)]

    return Case(function, draw, dtypes)


def subtracted(function: str, is_tensor: bool) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x = draw.tensor(a, dtype)
        y = draw.tensor(b, dtype) if is_tensor else draw.choice([2, -1])
        alpha = draw.choice([1, 2])
        return [x, y, alpha, Out(torch.rsub(x, y, alpha=alpha), 2, 16)]

    return Case(function, draw, NUMBERS)


def logarithm_times_scalar(draw: Draw, dtype: torch.dtype) -> list[object]:
    y = draw.tensor(draw.shape(), dtype, 0, 4)
    x = draw.choice([0, 2, -1])
    return [x, y, Out(torch.xlogy(x, y), 4, 0.1)]


def rounded(in_place: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, decimals = draw.tensor(draw.shape(), dtype, -100, 100), draw.int(-2, 2)
        if dtype in (torch.float16, torch.bfloat16):
            # torch rounds after each step there.
            decimals = 0
        expected = torch.round(x, decimals=decimals)
        out = Out(expected, 2, start=x if in_place else None)
        return [out, decimals] if in_place else [x, decimals, out]

    return draw


def sinc_in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    return [Out(torch.sinc(x), 2, 0.5, start=x)]


def close(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2)
    x, y = draw.tensor(a, dtype, -2, 2, 0.3), draw.tensor(b, dtype, -2, 2, 0.3)
    equal = draw.flag()
    expected = torch.isclose(x.double(), y.double(), 0.125, 0.25, equal)
    return [x, y, 0.125, 0.25, equal, Out(expected)]


def equal(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    y = draw.view(x.clone())
    if draw.flag() and y.numel():
        y[(0,) * y.dim()] = 1 - y[(0,) * y.dim()] if dtype != torch.bool else ~y[(0,) * y.dim()]
    elif draw.flag():
        y = draw.tensor([2, 3], dtype)
    return [x, y, Out(torch.tensor([torch.equal(x, y)]))]


def shifted(function: str, reference: Callable[..., torch.Tensor], is_tensor: bool) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x = draw.tensor(a, dtype, -100, 100)
        end = 8 * dtype.itemsize - 1
        y = draw.tensor(b, dtype, 0, end) if is_tensor else draw.int(0, end)
        return [x, y, Out(reference(x, y))]

    return Case(function, draw, INTEGERS)


def list_of(function: str, reference: Callable[..., torch.Tensor], dtypes: list[torch.dtype]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = draw.shape()
        tensors = [draw.tensor(shape, dtype, special=0.05) for _ in range(draw.int(1, 4))]
        wide = [one.double() if dtype.is_floating_point else one for one in tensors]
        expected = wide[0]
        for one in wide[1:]:
            expected = reference(expected, one)
        return [tensors, Out(expected.to(dtype), 4, 16)]

    return Case(function, draw, dtypes)


def gradient_of_tanh(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape()
    slope, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype, -1, 1)
    return [slope, y, Out((slope.double() * (1 - y.double() ** 2)).to(dtype), 4, 4)]


def gradient_of_root(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape()
    y, slope = draw.tensor(shape, dtype, 0.5, 4), draw.tensor(shape, dtype)
    return [y, slope, Out((slope.double() / (2 * y.double())).to(dtype), 2)]


CASES = [
    subtracted("aclnnRsub", True),
    subtracted("aclnnRsubs", False),
    binary("aclnnLogAddExp", torch.logaddexp, FLOATS, [torch.float32], 4, 1, special=0.1)[0],
    binary("aclnnLogAddExp2", torch.logaddexp2, FLOATS, [torch.float32], 4, 1, special=0.1)[0],
    *binary("aclnnXLogYTensor", torch.xlogy, ALL, tolerance=4, scale=0.1, special=0.1),
    *with_scalar("aclnnXLogYScalarOther", torch.xlogy, NUMBERS, tolerance=4, scale=0.1),
    Case("aclnnXLogYScalarSelf", logarithm_times_scalar, NUMBERS),
    of_one("aclnnSquare", torch.square, NUMBERS),
    Case("aclnnRoundDecimals", rounded(False), ALL_FLOATS),
    Case("aclnnInplaceRoundDecimals", rounded(True), ALL_FLOATS),
    of_one("aclnnSinc", torch.sinc, ALL, 4, 0.5),
    Case("aclnnInplaceSinc", sinc_in_place, ALL_FLOATS),
    of_one("aclnnSignbit", torch.signbit, NUMBERS),
    Case("aclnnIsClose", close, NUMBERS),
    Case("aclnnEqual", equal, ALL),
    shifted("aclnnLeftShift", torch.bitwise_left_shift, True),
    shifted("aclnnLeftShifts", torch.bitwise_left_shift, False),
    shifted("aclnnRightShift", torch.bitwise_right_shift, True),
    list_of("aclnnAddN", torch.add, NUMBERS),
    list_of("aclnnSum", torch.add, NUMBERS),
    list_of("aclnnMaxN", torch.maximum, NUMBERS),
    list_of("aclnnMinN", torch.minimum, NUMBERS),
    Case("aclnnTanhBackward", gradient_of_tanh, ALL_FLOATS),
    Case("aclnnSqrtBackward", gradient_of_root, ALL_FLOATS),
]
