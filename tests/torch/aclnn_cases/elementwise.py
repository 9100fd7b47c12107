"""Arithmetic on elements."""

from __future__ import annotations

import torch
from aclnn import ALL_FLOATS, INTEGERS, NUMBERS, Case, Draw, Out


def with_alpha(function: str, reference, in_place: bool) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        other_type = draw.choice([dtype, dtype, *NUMBERS])
        x, y = draw.tensor(a, dtype), draw.tensor(b, other_type)
        is_float = dtype.is_floating_point or other_type.is_floating_point
        alpha = draw.choice([1, 2, -3, draw.number()]) if is_float else draw.choice([1, 2, -3])
        expected = reference(x, y, alpha=alpha)
        if in_place:
            # The result has to have the type and the shape of the tensor.
            x = draw.tensor(expected.shape, expected.dtype)
            expected = reference(x, y, alpha=alpha)
            return [Out(expected, 2, 12, start=x), y, alpha]
        return [x, y, alpha, Out(expected, 2, 12)]

    return Case(function, draw, [*ALL_FLOATS, *INTEGERS])


CASES = [
    with_alpha("aclnnAdd", torch.add, False),
    with_alpha("aclnnInplaceAdd", torch.add, True),
]
