"""Different elements."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, Case, Draw, Out

from .scattering import wide
from .selecting import padded


def unique(has_counts: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        inverse_wanted, counts_wanted = draw.flag(), has_counts and draw.flag()
        x = draw.tensor(draw.shape(), dtype, -2, 2)
        if dtype.is_floating_point:
            x = draw.view(x.round())
            if x.numel() > 2 and draw.flag():
                # No NaN is like another one, infinities are. PyTorch leaves the order of NaN open.
                last = float("inf") if inverse_wanted or counts_wanted else float("nan")
                odd = torch.tensor([float("nan"), float("inf"), last], dtype=dtype)
                x = draw.view(torch.cat([odd, x.reshape(-1)[3:]]).reshape(x.shape))
        values, inverse, counts = torch.unique(wide(x), return_inverse=True, return_counts=True)
        n = x.numel()
        if not (inverse_wanted or counts_wanted):
            inverse = torch.zeros_like(inverse)
        passed = [x, True, inverse_wanted]
        outputs = [padded(values.to(dtype), [n]), Out(inverse)]
        if has_counts:
            passed.append(counts_wanted)
            outputs.append(padded(counts, [n]) if counts_wanted else Out(torch.zeros(n, dtype=torch.int64)))
        return [*passed, *outputs]

    return draw_one


CASES = [
    Case("aclnnUnique", unique(False), ALL),
    Case("aclnnUnique2", unique(True), ALL),
]
