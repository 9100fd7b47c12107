"""Pooling."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, Case, Draw, Out

SPATIAL = {2: (F.max_pool2d, F.avg_pool2d), 3: (F.max_pool3d, F.avg_pool3d)}


def planes(draw: Draw, n: int, low: int = 4, high: int = 8) -> list[int]:
    front = [draw.int(0 if draw.int(0, 9) == 0 else 1, 3) for _ in range(draw.int(1, 2))]
    front[-1] = max(front[-1], 1)
    return [*front, *[draw.int(low, high) for _ in range(n)]]


def one_or_each(draw: Draw, n: int, low: int, high: int) -> list[int]:
    return [draw.int(low, high) for _ in range(draw.choice([1, n]))]


def each(numbers: list[int], n: int) -> list[int]:
    return numbers * n if len(numbers) == 1 else numbers


def windows(draw: Draw, n: int) -> tuple[list[int], list[int], list[int]]:
    kernel = one_or_each(draw, n, 1, 3)
    stride = draw.choice([[], one_or_each(draw, n, 1, 3)])
    padding = [draw.int(0, 1) for _ in range(n)]
    padding = [min(pad, size // 2) for pad, size in zip(padding, each(kernel, n), strict=True)]
    return kernel, stride, padding


def distinct(draw: Draw, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Different values, so that each maximum has one place."""
    n = torch.Size(shape).numel()
    order = torch.randperm(max(n, 1), generator=draw.values)[:n]
    values = (order.double() - n / 2).reshape(shape)
    chosen = torch.rand(shape, generator=draw.values)
    values = torch.where(chosen < 0.02, torch.nan, torch.where(chosen > 0.98, -torch.inf, values))
    return draw.view(values.to(dtype))


def maximum(n: int) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = distinct(draw, planes(draw, n, 5), dtype)
        kernel, stride, padding = windows(draw, n)
        dilation, is_up = one_or_each(draw, n, 1, 2) if n == 2 else [1] * n, draw.flag()
        sizes = [*each(kernel, n)], [*each(stride or kernel, n)], padding, [*each(dilation, n)]
        out, places = SPATIAL[n][0](x.double().contiguous(), *sizes, ceil_mode=is_up, return_indices=True)
        index = draw.choice([torch.int64, torch.int32])
        return [x, kernel, stride, padding, dilation, is_up, Out(out.to(dtype)), Out(places.to(index))]

    return draw_one


def maximum_alone(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(planes(draw, 2), dtype, special=0.02)
    kernel, stride, _ = windows(draw, 2)
    pads = draw.choice([[], [draw.int(0, 1)], [0, 1], [draw.int(0, 1) for _ in range(4)]])
    pads = pads if all(pad < size for size in kernel for pad in pads) else []
    full = pads if len(pads) == 4 else each(pads or [0], 2) * 2
    is_up = draw.int(0, 1)
    strides = each(stride or [1], 2)
    if is_up:
        full = [0] * 4
        pads = []
    padded = F.pad(x.double(), [full[1], full[3], full[0], full[2]], value=-torch.inf)
    out = F.max_pool2d(padded, each(kernel, 2), strides, ceil_mode=bool(is_up))
    return [x, kernel, stride, 0, pads, [], is_up, Out(out.to(dtype))]


def average(n: int) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(planes(draw, n), dtype, special=0.02)
        kernel, stride, padding = windows(draw, n)
        is_up, counts = draw.flag(), draw.flag()
        divisor = draw.choice([0, 0, 3, -2])
        sizes = [*each(kernel, n)], [*each(stride or kernel, n)], padding
        wide = x.double().contiguous() if x.dim() == n + 2 else x.double().contiguous().unsqueeze(0)
        out = SPATIAL[n][1](wide, *sizes, is_up, counts, divisor or None)
        out = out if x.dim() == n + 2 else out.squeeze(0)
        mode = [draw.int(0, 1)] if n == 2 else []
        return [x, kernel, stride, padding, is_up, counts, divisor, *mode, Out(out.to(dtype), 4, 4)]

    return draw_one


def adaptive(n: int, maxima: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, sizes = planes(draw, n, 1, 7), [draw.int(1, 5) for _ in range(n)]
        x = distinct(draw, shape, dtype) if maxima else draw.tensor(shape, dtype, special=0.02)
        if not maxima:
            pool = F.adaptive_avg_pool2d if n == 2 else F.adaptive_avg_pool3d
            return [x, sizes, Out(pool(x.double().contiguous(), sizes).to(dtype), 4, 4)]
        pool = F.adaptive_max_pool2d if n == 2 else F.adaptive_max_pool3d
        out, places = pool(x.double().contiguous(), sizes, return_indices=True)
        return [x, sizes, Out(out.to(dtype)), Out(places)]

    return draw_one


def whole(reduce: Callable[..., torch.Tensor]) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor([draw.int(0, 3), draw.int(1, 3), *draw.shape(least=1, most=3, empty=0)], dtype, special=0.05)
        return [x, Out(reduce(x.double(), list(range(2, x.dim())), True).to(dtype), 4, 4)]

    return draw_one


CASES = [
    Case("aclnnMaxPool", maximum_alone, ALL_FLOATS, n_draws=8),
    Case("aclnnMaxPool2dWithIndices", maximum(2), ALL_FLOATS, n_draws=8),
    Case("aclnnMaxPool3dWithArgmax", maximum(3), ALL_FLOATS),
    Case("aclnnAvgPool2d", average(2), ALL_FLOATS, n_draws=8),
    Case("aclnnAvgPool3d", average(3), ALL_FLOATS),
    Case("aclnnAdaptiveAvgPool2d", adaptive(2, False), ALL_FLOATS),
    Case("aclnnAdaptiveAvgPool3d", adaptive(3, False), ALL_FLOATS),
    Case("aclnnAdaptiveMaxPool2d", adaptive(2, True), ALL_FLOATS),
    Case("aclnnAdaptiveMaxPool3d", adaptive(3, True), ALL_FLOATS),
    Case("aclnnGlobalAveragePool", whole(torch.mean), ALL_FLOATS),
    Case("aclnnGlobalMaxPool", whole(torch.amax), ALL_FLOATS),
]
