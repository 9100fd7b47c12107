"""Padding."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL, Case, Draw, Out

from .moves import exactly


def constant(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.1)
    pads = []
    for n in list(x.shape)[::-1][: draw.int(0, x.dim())]:
        before = draw.int(-1 if n > 1 else 0, 3)
        pads += [before, draw.int(-1 if n > 2 else 0, 3)]
    value = draw.choice([0, 1, 2])
    if dtype.is_floating_point:
        value = draw.number()
    expected = F.pad(x, pads, "constant", value) if pads else x.clone()
    return [x, pads, value, Out(expected)]


def by_mode(n_axes: int, mode: str) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = [draw.int(1, 3) for _ in range(draw.int(1, 2))] + [draw.int(1, 4) for _ in range(n_axes)]
        x = draw.tensor(shape, dtype, special=0.1)
        pads = []
        for n in shape[::-1][:n_axes]:
            most = {"reflect": n - 1, "replicate": 5, "circular": n}[mode]
            pads += [draw.int(0, most), draw.int(0, most)]

        def padded(x: torch.Tensor) -> torch.Tensor:
            # Torch wants a batch for these.
            one = x if x.dim() == n_axes + 2 else x[None]
            result = F.pad(one.double(), pads, mode)
            return result if x.dim() == n_axes + 2 else result[0]

        return [x, pads, Out(exactly(padded, x))]

    return draw_one


CASES = [
    Case("aclnnConstantPadNd", constant, ALL, 8),
    *[Case(f"aclnnReflectionPad{n}d", by_mode(n, "reflect"), ALL) for n in (1, 2, 3)],
    *[Case(f"aclnnReplicationPad{n}d", by_mode(n, "replicate"), ALL) for n in (1, 2, 3)],
    *[Case(f"aclnnCircularPad{n}d", by_mode(n, "circular"), ALL) for n in (2, 3)],
]
