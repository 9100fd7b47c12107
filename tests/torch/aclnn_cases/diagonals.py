"""Diagonals and triangles."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, ALL_FLOATS, INTEGERS, Case, Draw, Out

from .moves import exactly


def triangle(name: str, reference: Callable[..., torch.Tensor]) -> list[Case]:
    def drawn(draw: Draw, dtype: torch.dtype) -> tuple[torch.Tensor, int, torch.Tensor]:
        x = draw.tensor(draw.shape(least=2), dtype, special=0.1)
        diagonal = draw.choice([draw.int(-6, 6), draw.int(-1, 1), 2**62])
        return x, diagonal, exactly(lambda x: reference(x, max(min(diagonal, 99), -99)), x)

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, diagonal, expected = drawn(draw, dtype)
        return [x, diagonal, Out(expected)]

    def inside(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, diagonal, expected = drawn(draw, dtype)
        return [Out(expected, start=x), diagonal]

    return [Case(f"aclnn{name}", plain, ALL), Case(f"aclnnInplace{name}", inside, ALL)]


def diag(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape(least=1, most=2)
    rows, columns = shape if len(shape) == 2 else (4, 4)
    diagonal = draw.int(-rows, columns)
    x = draw.tensor(shape, dtype, special=0.1)
    return [x, diagonal, Out(exactly(lambda x: torch.diag(x, diagonal), x))]


def diag_flat(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(most=2), dtype, special=0.1)
    diagonal = draw.int(-3, 3)
    return [x, diagonal, Out(exactly(lambda x: torch.diagflat(x, diagonal), x))]


def fill_diagonal(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor([draw.int(1, 9), draw.int(1, 4)], dtype, special=0.1)
    value, wrap = draw.choice([1, 2]), draw.flag()
    expected = exactly(lambda x: x.clone(memory_format=torch.contiguous_format).fill_diagonal_(value, wrap=wrap), x)
    if dtype == torch.bool:
        expected = x.contiguous().int().fill_diagonal_(value, wrap=wrap).bool()
    return [Out(expected, start=x), value, wrap]


def trace(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=2, most=2), dtype)
    expected = x.double().trace() if dtype.is_floating_point else x.long().trace()
    return [x, Out(expected.to(dtype if dtype.is_floating_point else torch.int64), 2, 8)]


CASES = [
    *triangle("Tril", torch.tril),
    *triangle("Triu", torch.triu),
    Case("aclnnDiag", diag, ALL, 6),
    Case("aclnnDiagFlat", diag_flat, ALL),
    Case("aclnnInplaceFillDiagonal", fill_diagonal, ALL, 6),
    Case("aclnnTrace", trace, [*ALL_FLOATS, *INTEGERS, torch.bool]),
]
