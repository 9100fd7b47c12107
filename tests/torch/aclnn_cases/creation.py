"""Tensors made from numbers, and conversion."""

from __future__ import annotations

import torch
from aclnn import ALL, ALL_FLOATS, INTEGERS, NUMBERS, Case, Draw, Out


def arange(draw: Draw, dtype: torch.dtype) -> list[object]:
    start, n, step = draw.int(-5, 5), draw.int(0, 9), draw.choice([1, 2, -1, -3])
    if dtype == torch.uint8:
        start, step = 3, 2
    end = start + step * n
    if dtype.is_floating_point and draw.flag():
        start, end, step = start + 0.25, end + 0.5, step * 1.5
    return [start, end, step, Out(torch.arange(start, end, step, dtype=dtype), 2, 16)]


def with_end(draw: Draw, dtype: torch.dtype) -> list[object]:
    start, n, step = draw.int(-5, 5), draw.int(0, 9), draw.choice([1, 2, -1, -3])
    if dtype == torch.uint8:
        start, step = 3, 2
    end = start + step * n + (draw.int(0, 1) if step > 1 else 0)
    count = (end - start) // step + 1
    expected = torch.tensor([start + i * step for i in range(count)], dtype=dtype)
    return [start, end, step, Out(expected)]


def linspace(draw: Draw, dtype: torch.dtype) -> list[object]:
    start, end, n = draw.number(), draw.number(), draw.int(0, 9)
    if dtype.is_floating_point:
        return [start, end, n, Out(torch.linspace(start, end, n, dtype=dtype), 4, 4)]
    # Whole ends, a power of two apart: torch adds steps, so that others may end on either side of an
    # integer.
    start, n = draw.int(0, 20), draw.choice([1, 2, 3, 5, 9])
    end = draw.int(0, 20)
    return [start, end, n, Out(torch.linspace(start, end, n, dtype=torch.float64).to(dtype))]


def eye(draw: Draw, dtype: torch.dtype) -> list[object]:
    n, m = draw.int(0, 5), draw.int(0, 5)
    return [n, m, Out(torch.eye(n, m).to(dtype))]


def fill_scalar(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    value = draw.choice([0, 1, 3, draw.number()])
    if not dtype.is_floating_point and isinstance(value, float):
        value = abs(value)
    return [Out(torch.full_like(x, value), start=x), value]


def fill_tensor(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    value = draw.tensor([], draw.choice([dtype, torch.int64]), 0, 3)
    return [Out(torch.full_like(x, 1).fill_(value), start=x), value]


def filled(function: str, number: int) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype)
        return [Out(torch.full_like(x, number), start=x)]

    return Case(function, draw, ALL)


def cast(draw: Draw, dtype: torch.dtype) -> list[object]:
    to = draw.choice(ALL)
    x = draw.tensor(draw.shape(), dtype, 0 if to == torch.uint8 else -100, 100, special=0.1 if to in ALL_FLOATS else 0)
    return [x, to, Out(x.to(to))]


CASES = [
    Case("aclnnArange", arange, [*ALL_FLOATS, *INTEGERS]),
    Case("aclnnRange", with_end, NUMBERS),
    Case("aclnnLinspace", linspace, NUMBERS),
    Case("aclnnEye", eye, ALL),
    Case("aclnnInplaceFillScalar", fill_scalar, ALL),
    Case("aclnnInplaceFillTensor", fill_tensor, ALL),
    filled("aclnnInplaceOne", 1),
    filled("aclnnInplaceZero", 0),
    Case("aclnnCast", cast, ALL, n_draws=9),
]
