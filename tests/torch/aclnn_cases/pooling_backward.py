"""Gradients of pooling."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, Case, Draw, Out

from aclnn_cases.pooling import SPATIAL, distinct, each, one_or_each, planes, windows


def gradient(
    draw: Draw, x: torch.Tensor, dtype: torch.dtype, pool: Callable[[torch.Tensor], object]
) -> tuple[torch.Tensor, Out, torch.Tensor | None]:
    """A gradient of the result, that of the operand, and the positions if the pool returns them."""
    leaf = x.double().contiguous().requires_grad_()
    found = pool(leaf)
    out, places = found if isinstance(found, tuple) else (found, None)
    grad = draw.tensor(list(out.shape), dtype, special=0.02)
    (expected,) = torch.autograd.grad(out, leaf, grad.double())
    return grad, Out(expected.to(dtype), 4, 16), places


def maximum(n: int) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = distinct(draw, planes(draw, n, 5), dtype)
        kernel, stride, padding = windows(draw, n)
        dilation, is_up = one_or_each(draw, n, 1, 2) if n == 2 else [1] * n, draw.flag()
        sizes = [*each(kernel, n)], [*each(stride or kernel, n)], padding, [*each(dilation, n)]
        grad, out, places = gradient(
            draw, x, dtype, lambda leaf: SPATIAL[n][0](leaf, *sizes, ceil_mode=is_up, return_indices=True)
        )
        index = draw.view(places.to(draw.choice([torch.int64, torch.int32])))
        return [grad, x, index, kernel, stride, padding, dilation, is_up, out]

    return draw_one


def average(n: int) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(planes(draw, n), dtype)
        kernel, stride, padding = windows(draw, n)
        is_up, counts, divisor = draw.flag(), draw.flag(), draw.choice([0, 0, 3, -2])
        sizes = [*each(kernel, n)], [*each(stride or kernel, n)], padding

        def pool(leaf: torch.Tensor) -> torch.Tensor:
            batches = leaf if leaf.dim() == n + 2 else leaf.unsqueeze(0)
            out = SPATIAL[n][1](batches, *sizes, is_up, counts, divisor or None)
            return out if leaf.dim() == n + 2 else out.squeeze(0)

        grad, out, _ = gradient(draw, x, dtype, pool)
        mode = [draw.int(0, 1)] if n == 2 else []
        return [grad, x, kernel, stride, padding, is_up, counts, divisor, *mode, out]

    return draw_one


def adaptive(n: int, maxima: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, sizes = planes(draw, n, 1, 7), [draw.int(1, 5) for _ in range(n)]
        x = distinct(draw, shape, dtype)
        if not maxima:
            pool = F.adaptive_avg_pool2d if n == 2 else F.adaptive_avg_pool3d
            grad, out, _ = gradient(draw, x, dtype, lambda leaf: pool(leaf, sizes))
            return [grad, x, out]
        pool = F.adaptive_max_pool2d if n == 2 else F.adaptive_max_pool3d
        grad, out, places = gradient(draw, x, dtype, lambda leaf: pool(leaf, sizes, return_indices=True))
        return [grad, x, draw.view(places.to(draw.choice([torch.int64, torch.int32]))), out]

    return draw_one


CASES = [
    Case("aclnnAvgPool2dBackward", average(2), ALL_FLOATS, n_draws=8),
    Case("aclnnAvgPool3dBackward", average(3), ALL_FLOATS),
    Case("aclnnMaxPool2dWithIndicesBackward", maximum(2), ALL_FLOATS, n_draws=8),
    Case("aclnnMaxPool3dWithArgmaxBackward", maximum(3), ALL_FLOATS),
    Case("aclnnAdaptiveAvgPool2dBackward", adaptive(2, False), ALL_FLOATS),
    Case("aclnnAdaptiveAvgPool3dBackward", adaptive(3, False), ALL_FLOATS),
    Case("aclnnAdaptiveMaxPool2dBackward", adaptive(2, True), ALL_FLOATS),
    Case("aclnnAdaptiveMaxPool3dBackward", adaptive(3, True), ALL_FLOATS),
]
