"""Gradients of convolutions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import Case, Draw, Out

from aclnn_cases.convolution import PLAIN, TRANSPOSED, ints, samples


def gradients(
    function: Callable[..., torch.Tensor], operands: list[torch.Tensor], grad: torch.Tensor, dtype: torch.dtype
) -> list[Out]:
    """Those of all operands; the error of a sum goes by that of its terms' sizes."""
    found = []
    for change in (lambda x: x, torch.abs):
        leaves = [change(one.double()).contiguous().requires_grad_() for one in operands]
        out = function(*leaves)
        found.append(torch.autograd.grad(out, leaves, change(grad.double()).contiguous()))
    return [Out(value.to(dtype), 4, size) for value, size in zip(*found, strict=True)]


def convolution(draw: Draw, dtype: torch.dtype) -> list[object]:
    n, groups, is_transposed = draw.int(1, 3), draw.int(1, 2), draw.int(0, 2) == 0
    channels, results = groups * draw.int(1, 2), groups * draw.int(1, 2)
    x = draw.tensor([samples(draw), channels, *ints(draw, n, 5, 7)], dtype)
    kernel, stride, dilation = ints(draw, n, 1, 3), ints(draw, n, 1, 3), ints(draw, n, 1, 2)
    first, second = (channels, results // groups) if is_transposed else (results, channels // groups)
    weight = draw.tensor([first, second, *kernel], dtype)
    bias = draw.tensor([results], dtype)
    padding, passed, more = ints(draw, n, 0, 1), None, [0] * n
    sides: list[int] = []
    if is_transposed:
        more = [draw.int(0, max(a, b) - 1) for a, b in zip(stride, dilation, strict=True)]
    elif n == 2 and draw.flag():
        sides, padding = ints(draw, 2 * n, 0, 2), [0] * n
        passed = sides

    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if is_transposed:
            return TRANSPOSED[n](x, weight, bias, stride, padding, more, groups, dilation)
        if sides:
            pairs = [side for axis in reversed(range(n)) for side in sides[2 * axis : 2 * axis + 2]]
            x = F.pad(x, pairs)
        return PLAIN[n](x, weight, bias, stride, padding, dilation, groups)

    shape = function(x.double(), weight.double(), bias.double()).shape
    grad = draw.tensor(list(shape), dtype)
    outs = gradients(function, [x, weight, bias], grad, dtype)
    # Products of the type's range are added, so that small types are rounded once.
    mask = [draw.int(0, 4) > 0 for _ in range(3)]
    shown = [out if asked else None for out, asked in zip(outs, mask, strict=True)]
    sizes = draw.choice([[results], None]) if not mask[2] else [results]
    steps = [sizes, stride, passed or padding, dilation, is_transposed, more, groups]
    return [grad, x, weight, *steps, mask, draw.int(0, 4), *shown]


def time_first(draw: Draw, dtype: torch.dtype) -> list[object]:
    channels, results, pad = draw.int(1, 3), draw.int(1, 3), draw.int(0, 2)
    x = draw.tensor([draw.int(4, 6), draw.int(1, 3), channels], dtype)
    weight, bias = draw.tensor([draw.int(1, 3), channels, results], dtype), draw.tensor([results], dtype)

    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        # torch's own function along time knows no second kind of gradient.
        out = F.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
        return out.permute(2, 0, 1)

    grad = draw.tensor(list(function(x.double(), weight.double(), bias.double()).shape), dtype)
    outs = gradients(function, [x, weight, bias], grad, dtype)
    return [grad, x, weight, bias, pad, 0, *outs]


CASES = [
    Case("aclnnConvolutionBackward", convolution, n_draws=16),
    Case("aclnnConvTbcBackward", time_first),
]
