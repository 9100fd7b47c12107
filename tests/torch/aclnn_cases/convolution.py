"""Convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from aclnn import Case, Draw, Out

PLAIN = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def samples(draw: Draw) -> int:
    return draw.choice([0, 1, 2, 3, 1, 2, 3])


def ints(draw: Draw, n: int, low: int, high: int) -> list[int]:
    return [draw.int(low, high) for _ in range(n)]


def result(function, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *steps, dtype: torch.dtype) -> Out:
    expected = function(x.double(), weight.double(), None if bias is None else bias.double(), *steps)
    size = function(x.double().abs(), weight.double().abs(), None if bias is None else bias.double().abs(), *steps)
    return Out(expected.to(dtype), 4, size)


def convolution(draw: Draw, dtype: torch.dtype) -> list[object]:
    n, groups, is_transposed = draw.int(1, 3), draw.int(1, 2), draw.int(0, 2) == 0
    channels, results = groups * draw.int(1, 2), groups * draw.int(1, 2)
    x = draw.tensor([samples(draw), channels, *ints(draw, n, 5, 7)], dtype)
    kernel, stride, dilation = ints(draw, n, 1, 3), ints(draw, n, 1, 3), ints(draw, n, 1, 2)
    first, second = (channels, results // groups) if is_transposed else (results, channels // groups)
    weight = draw.tensor([first, second, *kernel], dtype)
    bias = draw.tensor([results], dtype) if draw.flag() else None
    padding, groups_and_mode = ints(draw, n, 0, 1), (groups, draw.int(0, 4))
    if is_transposed:
        more = [draw.int(0, max(a, b) - 1) for a, b in zip(stride, dilation, strict=True)]
        out = result(
            TRANSPOSED[n], x, weight, bias, stride, padding, more, groups, dilation, dtype=dtype
        )
        return [x, weight, bias, stride, padding, dilation, True, more, groups, out, groups_and_mode[1]]
    padded, passed = x, padding
    if n < 3 and draw.flag():
        sides = ints(draw, 2 * n, 0, 2)
        padded = F.pad(x, [side for axis in reversed(range(n)) for side in sides[2 * axis : 2 * axis + 2]])
        padding, passed = [0] * n, sides
    out = result(PLAIN[n], padded, weight, bias, stride, padding, dilation, groups, dtype=dtype)
    return [x, weight, bias, stride, passed, dilation, False, [0] * n, groups, out, groups_and_mode[1]]


def time_first(draw: Draw, dtype: torch.dtype) -> list[object]:
    channels, results, pad = draw.int(1, 3), draw.int(1, 3), draw.int(0, 2)
    x = draw.tensor([draw.int(4, 6), draw.int(1, 3), channels], dtype)
    weight, bias = draw.tensor([draw.int(1, 3), channels, results], dtype), draw.tensor([results], dtype)
    expected = torch.conv_tbc(*[one.double().contiguous() for one in (x, weight, bias)], pad)
    return [x, weight, bias, pad, Out(expected.to(dtype), 4, 64), 0]


def depthwise(draw: Draw, dtype: torch.dtype) -> list[object]:
    channels, kernel = draw.int(1, 3), ints(draw, 2, 1, 3)
    x = draw.tensor([samples(draw), channels, *ints(draw, 2, 5, 7)], dtype)
    weight = draw.tensor([channels * draw.int(1, 2), 1, *kernel], dtype)
    bias = draw.tensor(weight.shape[:1], dtype) if draw.flag() else None
    stride, padding, dilation = ints(draw, 2, 1, 2), ints(draw, 2, 0, 1), ints(draw, 2, 1, 2)
    out = result(F.conv2d, x, weight, bias, stride, padding, dilation, channels, dtype=dtype)
    return [x, weight, kernel, bias, stride, padding, dilation, out, 1]


CASES = [
    Case("aclnnConvolution", convolution, n_draws=16),
    Case("aclnnConvTbc", time_first),
    Case("aclnnConvDepthwise2d", depthwise),
]
