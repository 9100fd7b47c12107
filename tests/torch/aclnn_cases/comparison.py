"""Comparisons, logic, and operators on bits."""

from __future__ import annotations

import torch
from aclnn import ALL, INTEGERS, NUMBERS, Case, Draw, Out

from .elementwise import Reference


def truth(draw: Draw, result: torch.Tensor) -> torch.Tensor:
    """Truths, in booleans or in numbers."""
    return result.to(draw.choice([torch.bool, torch.bool, torch.uint8, torch.float16]))


def compared(function: str, reference: Reference, dtypes: list[torch.dtype] = ALL) -> list[Case]:
    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x, y = draw.tensor(a, dtype, special=0.1), draw.tensor(b, draw.choice([dtype, *dtypes]), special=0.1)
        return [x, y, Out(truth(draw, reference(x, y)))]

    def in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x = draw.tensor(torch.broadcast_shapes(a, b), dtype, special=0.1)
        y = draw.tensor(b, draw.choice([dtype, *dtypes]), special=0.1)
        return [Out(reference(x, y).to(dtype), start=x), y]

    name = function.removeprefix("aclnn")
    return [Case(function, plain, dtypes), Case(f"aclnnInplace{name}", in_place, dtypes)]


def with_scalar(function: str, reference: Reference) -> list[Case]:
    def scalar(draw: Draw) -> object:
        return draw.choice([0, 1, -2, draw.number(), 0.1])

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, y = draw.tensor(draw.shape(), dtype, special=0.1), scalar(draw)
        return [x, y, Out(truth(draw, reference(x, y)))]

    def in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, y = draw.tensor(draw.shape(), dtype, special=0.1), scalar(draw)
        return [Out(reference(x, y).to(dtype), start=x), y]

    name = function.removeprefix("aclnn")
    return [Case(function, plain, ALL), Case(f"aclnnInplace{name}", in_place, ALL)]


WHOLE = [*INTEGERS, torch.bool]


def bits(kind: str, reference: Reference) -> list[Case]:
    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x, y = draw.tensor(a, dtype, -100, 100), draw.tensor(b, draw.choice([dtype, *WHOLE]), -100, 100)
        return [x, y, Out(reference(x, y))]

    def in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x, y = draw.tensor(torch.broadcast_shapes(a, b), dtype, -100, 100), draw.tensor(b, dtype, -100, 100)
        return [Out(reference(x, y), start=x), y]

    def scalar(draw: Draw, dtype: torch.dtype) -> object:
        return draw.flag() if dtype == torch.bool else draw.choice([5, 1, 77])

    def plain_scalar(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, y = draw.tensor(draw.shape(), dtype, -100, 100), scalar(draw, dtype)
        return [x, y, Out(reference(x, y))]

    def in_place_scalar(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, y = draw.tensor(draw.shape(), dtype, -100, 100), scalar(draw, dtype)
        return [Out(reference(x, y), start=x), y]

    return [
        Case(f"aclnnBitwise{kind}Tensor", plain, WHOLE),
        Case(f"aclnnInplaceBitwise{kind}Tensor", in_place, WHOLE),
        Case(f"aclnnBitwise{kind}Scalar", plain_scalar, WHOLE),
        Case(f"aclnnInplaceBitwise{kind}Scalar", in_place_scalar, WHOLE),
    ]


def of_one(function: str, reference: Reference, dtypes: list[torch.dtype] = ALL) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, special=0.3)
        return [x, Out(reference(x))]

    return Case(function, draw, dtypes)


def not_in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.3)
    return [Out(torch.logical_not(x).to(dtype), start=x)]


CASES = [
    *compared("aclnnEqTensor", torch.eq),
    *with_scalar("aclnnEqScalar", torch.eq),
    *compared("aclnnNeTensor", torch.ne),
    *with_scalar("aclnnNeScalar", torch.ne),
    *compared("aclnnLtTensor", torch.lt),
    *with_scalar("aclnnLtScalar", torch.lt),
    *compared("aclnnLeTensor", torch.le),
    *with_scalar("aclnnLeScalar", torch.le),
    *compared("aclnnGtTensor", torch.gt),
    *with_scalar("aclnnGtScalar", torch.gt),
    *compared("aclnnGeTensor", torch.ge),
    *with_scalar("aclnnGeScalar", torch.ge),
    *compared("aclnnLogicalAnd", torch.logical_and),
    *compared("aclnnLogicalOr", torch.logical_or),
    compared("aclnnLogicalXor", torch.logical_xor)[0],
    of_one("aclnnLogicalNot", torch.logical_not),
    Case("aclnnInplaceLogicalNot", not_in_place, ALL),
    *bits("And", torch.bitwise_and),
    *bits("Or", torch.bitwise_or),
    *bits("Xor", torch.bitwise_xor),
    of_one("aclnnBitwiseNot", torch.bitwise_not, WHOLE),
    of_one("aclnnIsFinite", torch.isfinite, NUMBERS),
    of_one("aclnnIsPosInf", torch.isposinf, NUMBERS),
    of_one("aclnnIsNegInf", torch.isneginf, NUMBERS),
]
