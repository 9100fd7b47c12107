"""Steps and dropout."""

from __future__ import annotations

import torch
from aclnn import ALL_FLOATS, FLOATS, Case, Draw, Out


def heaviside(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2)
    x, values = draw.view(draw.tensor(a, dtype, -1, 1, special=0.3).round()), draw.tensor(b, dtype, special=0.1)
    return [x, values, Out(torch.heaviside(x, values))]


def dropout(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype, special=0.1)
    p, train = draw.choice([(0.0, True), (1.0, True), (0.3, False)])
    mask = draw.tensor([16], torch.uint8, 0, 255)
    expected = torch.zeros_like(x) if p == 1.0 else x
    return [x, p, train, 7, 0, Out(expected), Out(mask, start=mask)]


CASES = [
    Case("aclnnHeaviside", heaviside, ALL_FLOATS),
    Case("aclnnDropout", dropout, FLOATS),
]
