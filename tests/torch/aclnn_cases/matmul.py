"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL_FLOATS, FLOATS, INTEGERS, Case, Draw, Out

NUMBERS = [*ALL_FLOATS, *INTEGERS]
Shapes = Callable[[Draw], list[list[int]]]


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.dtype.is_floating_point else x.long()


def extent(draw: Draw) -> int:
    return draw.choice([0, *range(1, 7), *range(1, 7), *range(1, 7)])


def matrices(draw: Draw) -> list[list[int]]:
    m, k, n = extent(draw), extent(draw), extent(draw)
    return [[m, k], [k, n]]


def batches(draw: Draw) -> list[list[int]]:
    batch, (a, b) = extent(draw), matrices(draw)
    return [[draw.choice([batch, batch, 1]), *a], [batch, *b]]


def any_axes(draw: Draw) -> list[list[int]]:
    a, b = draw.shapes_to_broadcast(2, most=3)
    first, second = matrices(draw)
    return [
        first[1:] if draw.int(0, 4) == 0 else a + first,
        second[:1] if draw.int(0, 4) == 0 else b + second,
    ]


def matrix_and_vector(draw: Draw) -> list[list[int]]:
    a, b = matrices(draw)
    return [a, b[:1]]


def vectors(draw: Draw) -> list[list[int]]:
    n = extent(draw)
    return [[n], [n]]


def two_vectors(draw: Draw) -> list[list[int]]:
    return [[extent(draw)], [extent(draw)]]


def sum_of_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b).sum(0)


Multiply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def product(
    function: str, shapes: Shapes, multiply: Multiply, dtypes: list[torch.dtype] = ALL_FLOATS, has_mode: bool = True
) -> Case:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = shapes(draw)
        other = draw.choice([dtype, dtype, dtype, *FLOATS]) if dtype.is_floating_point else dtype
        x, y = draw.tensor(a, dtype), draw.tensor(b, other)
        result = multiply(wide(x), wide(y)).to(torch.promote_types(dtype, other))
        size = multiply(wide(x).abs(), wide(y).abs())
        return [x, y, Out(result, 2, size), *([draw.int(0, 4)] if has_mode else [])]

    return Case(function, draw_one, dtypes)


def addition(
    name: str,
    shapes: Shapes,
    multiply: Multiply,
    dtypes: list[torch.dtype] = ALL_FLOATS,
    in_place: bool = True,
    alpha_first: bool = False,
    has_mode: bool = True,
) -> list[Case]:
    def draw_any(draw: Draw, dtype: torch.dtype, inside: bool) -> list[object]:
        a, b = shapes(draw)
        x, y = draw.tensor(a, dtype), draw.tensor(b, dtype)
        dims = list(multiply(wide(x), wide(y)).shape)
        if not inside:
            kept = dims[draw.int(0, len(dims)) :]
            dims = [1 if draw.int(0, 3) == 0 else n for n in kept]
        addend = draw.tensor(dims, dtype)
        if dtype.is_floating_point:
            alpha, beta = draw.choice([1, draw.number()]), draw.choice([0.0, 1.0, draw.number()])
        else:
            alpha, beta = draw.choice([1, -2]), draw.choice([0, 1, 3])
        if not has_mode and draw.flag():
            beta, scalars = 1, [None, alpha]
        else:
            scalars = [alpha, beta] if alpha_first else [beta, alpha]
        result = (beta * wide(addend) + alpha * multiply(wide(x), wide(y))).to(dtype)
        size = abs(beta) * wide(addend).abs() + abs(alpha) * multiply(wide(x).abs(), wide(y).abs())
        mode = [draw.int(0, 4)] if has_mode else []
        if inside:
            return [Out(result, 2, size, start=addend), x, y, *scalars, *mode]
        return [addend, x, y, *scalars, Out(result, 2, size), *mode]

    cases = [Case(f"aclnn{name}", lambda draw, dtype: draw_any(draw, dtype, False), dtypes)]
    if in_place:
        cases.append(Case(f"aclnnInplace{name}", lambda draw, dtype: draw_any(draw, dtype, True), dtypes))
    return cases


def gemm(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = matrices(draw)
    flips = [draw.flag(), draw.flag()]
    x = draw.tensor(a[::-1] if flips[0] else a, dtype)
    y = draw.tensor(b[::-1] if flips[1] else b, dtype)
    left, right = (wide(one).T if flip else wide(one) for one, flip in zip([x, y], flips, strict=True))
    addend = draw.tensor(draw.choice([[a[0], b[1]], [1, b[1]], [a[0], 1]]), dtype)
    alpha, beta = draw.number(), draw.number()
    result = (alpha * left @ right + beta * wide(addend)).to(dtype)
    size = abs(alpha) * left.abs() @ right.abs() + abs(beta) * wide(addend).abs()
    return [x, y, addend, alpha, beta, *map(int, flips), Out(result, 2, size), draw.int(0, 4)]


CASES = [
    product("aclnnMatmul", any_axes, torch.matmul),
    product("aclnnMm", matrices, torch.mm),
    product("aclnnBatchMatMul", batches, torch.matmul),
    product("aclnnMv", matrix_and_vector, torch.mv),
    product("aclnnDot", vectors, torch.dot, NUMBERS, has_mode=False),
    product("aclnnGer", two_vectors, torch.outer, NUMBERS, has_mode=False),
    *addition("Addmm", matrices, torch.mm),
    *addition("Addbmm", batches, sum_of_products),
    *addition("Baddbmm", batches, torch.matmul),
    *addition("Addmv", matrix_and_vector, torch.mv, NUMBERS, in_place=False, alpha_first=True),
    *addition("Addr", two_vectors, torch.outer, NUMBERS, has_mode=False),
    Case("aclnnGemm", gemm),
]
