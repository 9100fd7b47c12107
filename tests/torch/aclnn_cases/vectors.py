"""Vectors."""

from __future__ import annotations

import torch
from aclnn import ALL_FLOATS, FLOATS, INTEGERS, NUMBERS, Case, Draw, Out

from .scattering import narrow, wide


def cross(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2, most=3)
    n = max(len(a), len(b)) + 1
    a, b = [1] * (n - 1 - len(a)) + a, [1] * (n - 1 - len(b)) + b
    at = draw.int(0, n - 1)
    x = draw.tensor([*a[:at], 3, *a[at:]], dtype)
    other = draw.tensor([*b[:at], 3, *b[at:]], dtype)
    expected = narrow(torch.linalg.cross(wide(x), wide(other), dim=at), dtype)
    return [x, other, at - n * draw.int(0, 1), Out(expected, 4, 32)]


def distances(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2, most=2)
    n = draw.int(1, 5)
    x1, x2 = draw.tensor([*a, draw.int(1, 4), n], dtype), draw.tensor([*b, draw.int(1, 4), n], dtype)
    p = draw.choice([0.0, 1.0, 2.0, 3.0, float("inf")])
    expected = torch.cdist(x1.double(), x2.double(), p, "donot_use_mm_for_euclid_dist")
    return [x1, x2, p, 2, Out(expected.to(dtype), 16, 1)]


def norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(empty=0), dtype)
    order = draw.choice([0.0, 1.0, 2.0, 3.0, -1.0, float("inf"), -float("inf")])
    axes = list(range(x.dim()))
    draw.shapes.shuffle(axes)
    axes = axes[: draw.int(0, len(axes))]
    keeps = draw.flag()
    kind = draw.choice([torch.float32, dtype])
    dims = axes or None
    expected = torch.linalg.vector_norm(x.to(kind).double(), order, dims, keeps).to(kind)
    return [x, order, draw.choice([axes, None]) if not axes else axes, keeps, kind, Out(expected, 16, 0)]


def einsum(draw: Draw, dtype: torch.dtype) -> list[object]:
    n = {letter: draw.int(1, 4) for letter in "abcde"}
    equation = draw.choice(["abcd,abced->abce", "a,b->ab"])
    terms = equation.split("->")[0].split(",")
    tensors = [draw.tensor([n[letter] for letter in term], dtype) for term in terms]
    expected = torch.einsum(equation, *map(wide, tensors))
    return [tensors, equation, Out(narrow(expected, dtype), 8, 64)]


CASES = [
    Case("aclnnLinalgCross", cross, NUMBERS),
    Case("aclnnCdist", distances, FLOATS, 8),
    Case("aclnnLinalgVectorNorm", norm, ALL_FLOATS, 8),
    Case("aclnnEinsum", einsum, [*FLOATS, *INTEGERS]),
]
