"""Interpolation."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, FLOATS, Case, Draw, Out


def resized(n_axes: int, mode: str, has_factors: bool = True) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = [draw.int(1, 2), draw.int(1, 3), *(draw.int(1, 6) for _ in range(n_axes))]
        special = 0.1 if "nearest" in mode else 0.0
        x = draw.tensor(shape, dtype, 0, 4, special=special)
        sizes = [draw.int(1, 9) for _ in range(n_axes)]
        factors = [0.0] * n_axes
        given = {}
        if has_factors and draw.flag():
            factors = [draw.choice([0.5, 1.25, 2.0, 3.0]) for _ in range(n_axes)]
            sizes = [int(n * factor) for n, factor in zip(shape[2:], factors, strict=True)]
            if 0 in sizes:
                factors, sizes = [2.0] * n_axes, [2 * n for n in shape[2:]]
            given = {"scale_factor": factors, "recompute_scale_factor": False}
        else:
            given = {"size": sizes}
        # Places are those of single precision, whatever the elements are.
        wide = x.float() if dtype != torch.float64 else x
        numbers = factors if has_factors else []
        if "nearest" in mode:
            expected = F.interpolate(wide, mode=mode, **given).to(dtype)
            return [x, sizes, *numbers, Out(expected)]
        aligns = draw.flag()
        expected = F.interpolate(wide, mode=mode, align_corners=aligns, **given).to(dtype)
        return [x, sizes, aligns, *numbers, Out(expected, 8, 4)]

    return draw_one


EXACT = [*ALL_FLOATS, torch.uint8]

CASES = [
    Case("aclnnUpsampleNearest1d", resized(1, "nearest", False), EXACT),
    Case("aclnnUpsampleNearest2d", resized(2, "nearest", False), EXACT),
    Case("aclnnUpsampleNearest3d", resized(3, "nearest"), EXACT),
    *[Case(f"aclnnUpsampleNearestExact{n}d", resized(n, "nearest-exact"), EXACT) for n in (1, 2, 3)],
    Case("aclnnUpsampleLinear1d", resized(1, "linear"), FLOATS, 8),
    Case("aclnnUpsampleBilinear2d", resized(2, "bilinear"), FLOATS, 8),
    Case("aclnnUpsampleTrilinear3d", resized(3, "trilinear"), FLOATS, 8),
    Case("aclnnUpsampleBicubic2d", resized(2, "bicubic"), FLOATS, 8),
]
