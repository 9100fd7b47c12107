"""Functions of one operand."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, ALL_FLOATS, NUMBERS, Case, Draw, Out

Reference = Callable[[torch.Tensor], torch.Tensor]


def function(
    name: str,
    reference: Reference,
    dtypes: list[torch.dtype] = ALL,
    tolerance: float = 4.0,
    scale: float = 0.0,
    low: float = -4.0,
    high: float = 4.0,
    special: float = 0.1,
    in_place: bool = True,
) -> list[Case]:
    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, low, high, special)
        return [x, Out(reference(x), tolerance, scale)]

    def inside(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, low, high, special)
        return [Out(reference(x), tolerance, scale, start=x)]

    kept = [dtype for dtype in dtypes if reference(torch.ones(1, dtype=dtype)).dtype == dtype]
    cases = [Case(f"aclnn{name}", plain, dtypes)]
    if in_place:
        cases.append(Case(f"aclnnInplace{name}", inside, kept))
    return cases


# Functions that the engine has for single precision alone.
SINGLE = [dtype for dtype in ALL if dtype != torch.float64]

CASES = [
    *function("Abs", torch.abs, NUMBERS, 0, in_place=False),
    *function("Neg", torch.neg, NUMBERS, 0),
    *function("Sign", torch.sign, ALL, 0, in_place=False),
    *function("Exp", torch.exp),
    *function("Exp2", torch.exp2),
    *function("Expm1", torch.expm1),
    *function("Log", torch.log, low=0.01),
    *function("Log2", torch.log2, low=0.01),
    *function("Log10", torch.log10, low=0.01),
    *function("Log1p", torch.log1p, low=-0.99),
    *function("Sqrt", torch.sqrt, low=0, tolerance=1),
    *function("Rsqrt", torch.rsqrt, low=0, tolerance=2),
    *function("Reciprocal", torch.reciprocal, tolerance=1),
    *function("Sin", torch.sin, tolerance=8, scale=0.1),
    *function("Cos", torch.cos, SINGLE, scale=0.1),
    *function("Tan", torch.tan, SINGLE, low=-1.4, high=1.4),
    *function("Asin", torch.asin, SINGLE, low=-1, high=1),
    *function("Acos", torch.acos, SINGLE, low=-1, high=1, scale=0.1),
    *function("Atan", torch.atan, SINGLE),
    *function("Sinh", torch.sinh, SINGLE),
    *function("Cosh", torch.cosh, SINGLE),
    *function("Tanh", torch.tanh),
    *function("Asinh", torch.asinh, SINGLE, scale=0.1),
    *function("Acosh", torch.acosh, SINGLE, low=1, high=6, scale=0.1),
    *function("Atanh", torch.atanh, SINGLE, low=-0.99, high=0.99),
    *function("Erf", torch.erf, SINGLE),
    *function("Erfc", torch.erfc, SINGLE),
    *function("Floor", torch.floor, NUMBERS, 0),
    *function("Ceil", torch.ceil, NUMBERS, 0),
    *function("Round", torch.round, NUMBERS, 0),
    *function("Trunc", torch.trunc, NUMBERS, 0),
    *function("Frac", torch.frac, ALL_FLOATS, 0),
]
