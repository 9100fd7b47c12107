"""Normalisations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from aclnn import FLOATS, Case, Draw, Out

EPS = [1e-5, 1e-3]


def optional(draw: Draw, shape: list[int], dtype: torch.dtype) -> torch.Tensor | None:
    return None if draw.int(0, 3) == 0 else draw.tensor(shape, dtype)


def wide(x: torch.Tensor | None) -> torch.Tensor | None:
    return None if x is None else x.double()


def statistics(x: torch.Tensor, axes: list[int], eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x.double().mean(axes, keepdim=True)
    variance = x.double().var(axes, correction=0, keepdim=True)
    return mean, 1 / (variance + eps).sqrt()


def shape_and_axes(draw: Draw) -> tuple[list[int], int]:
    shape = draw.shape(least=1, low=2)
    return shape, draw.int(0, len(shape) - 1)


def result(expected: torch.Tensor, dtype: torch.dtype, n: int, scale: float = 4.0) -> Out:
    """Of nothing there are no statistics; `n` is the number of elements."""
    return Out(expected.to(dtype), 8, scale)


def layer_norm(has_mode: bool):
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, first = shape_and_axes(draw)
        x, extents, eps = draw.tensor(shape, dtype), shape[first:], draw.choice(EPS)
        weight_type = draw.choice([dtype, torch.float32])
        weight, bias = optional(draw, extents, weight_type), optional(draw, extents, weight_type)
        expected = F.layer_norm(x.double(), extents, wide(weight), wide(bias), eps)
        mean, rstd = statistics(x, list(range(first, len(shape))), eps)
        saved: list[object] = [
            None if draw.int(0, 3) == 0 else Out(one.to(draw.choice([dtype, torch.float32])), 8, scale)
            for one, scale in [(mean, 4), (rstd, 0)]
        ]
        if x.numel() == 0:
            saved = [None, None]
        mode = [draw.int(0, 2)] if has_mode else []
        return [x, extents, weight, bias, eps, Out(expected.to(dtype), 8, 4), *saved, *mode]

    return draw_one


def add_layer_norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, first = shape_and_axes(draw)
    shape = [max(extent, 1) for extent in shape]
    x, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
    gamma, beta = draw.tensor(shape[first:], dtype), draw.tensor(shape[first:], dtype)
    bias = optional(draw, draw.choice([shape, shape[first:]]), dtype)
    eps, shows_sum = draw.choice(EPS), draw.flag()
    total = x.double() + y.double() + (0 if bias is None else bias.double())
    expected = F.layer_norm(total, shape[first:], gamma.double(), beta.double(), eps)
    mean, rstd = statistics(total, list(range(first, len(shape))), eps)
    return [
        *(x, y, gamma, beta, bias, eps, shows_sum),
        Out(expected.to(dtype), 8, 4),
        Out(mean.float(), 8, 4),
        Out(rstd.float(), 8),
        Out(total.to(dtype), 2, 8) if shows_sum else None,
    ]


def rms(x: torch.Tensor, gamma: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    axes = list(range(x.dim() - gamma.dim(), x.dim()))
    rstd = 1 / (x.double().square().mean(axes, keepdim=True) + eps).sqrt()
    return x.double() * rstd * gamma.double(), rstd.float()


def rms_norm(offset: float):
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, first = shape_and_axes(draw)
        x, gamma, eps = draw.tensor(shape, dtype), draw.tensor(shape[first:], dtype), draw.choice(EPS)
        expected, rstd = rms(x, gamma.double() + offset, eps)
        return [x, gamma, eps, Out(expected.to(dtype), 8, 1), Out(rstd, 8)]

    return draw_one


def add_rms_norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, first = shape_and_axes(draw)
    x, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
    gamma, eps = draw.tensor(shape[first:], dtype), draw.choice(EPS)
    total = x.double() + y.double()
    expected, rstd = rms(total, gamma, eps)
    shown = None if draw.int(0, 3) == 0 else Out(total.to(dtype), 1, 8)
    return [x, y, gamma, eps, Out(expected.to(dtype), 8, 1), Out(rstd, 8), shown]


def channels_last_axes(draw: Draw, least: int = 2) -> list[int]:
    return draw.shape(least=least, most=5, low=2)


def batch_norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = channels_last_axes(draw)
    n, kind = [shape[1]], draw.choice([dtype, torch.float32])
    x, weight, bias = draw.tensor(shape, dtype), optional(draw, n, kind), optional(draw, n, kind)
    training, momentum, eps = draw.flag(), draw.choice([0.1, 0.75]), draw.choice(EPS)
    running = [None, None]
    if not training or draw.int(0, 3) > 0:
        running = [draw.tensor(n, torch.float32), draw.tensor(n, torch.float32, 0.1, 2)]
    start = list(running)
    axes = [axis for axis in range(len(shape)) if axis != 1]
    mean, rstd = statistics(x, axes, eps)
    if x.numel() == 0:
        training = False
        mean, rstd = torch.zeros(n), torch.full(n, torch.nan)
    kept = [wide(one) if one is None else one.double().clone() for one in running]
    expected = F.batch_norm(x.double(), *kept, wide(weight), wide(bias), training or kept[0] is None, momentum, eps) if x.numel() else x.double()
    if training:
        saved = [Out(mean.flatten().float(), 8, 4), Out(rstd.flatten().float(), 8)]
    else:
        saved = [None, None]
        if x.numel() and kept[0] is None:
            raise AssertionError
    moved = [None if new is None else Out(new.float(), 8, 4, start=old) for new, old in zip(kept, start, strict=True)]
    return [x, weight, bias, *moved, training, momentum, eps, Out(expected.to(dtype), 8, 4), *saved]


def batch_statistics(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = [max(extent, 2) for extent in channels_last_axes(draw)]
    x, eps = draw.tensor(shape, dtype), draw.choice(EPS)
    mean, rstd = statistics(x, [axis for axis in range(len(shape)) if axis != 1], eps)
    return [x, eps, Out(mean.flatten().float(), 8, 4), Out(rstd.flatten().float(), 8)]


def batch_norm_of_statistics(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = channels_last_axes(draw)
    n = [shape[1]]
    x, weight, bias = draw.tensor(shape, dtype), optional(draw, n, dtype), optional(draw, n, dtype)
    mean, rstd = draw.tensor(n, torch.float32), draw.tensor(n, torch.float32)
    dims = [shape[1] if axis == 1 else 1 for axis in range(len(shape))]
    expected = (x.double() - mean.double().reshape(dims)) * rstd.double().reshape(dims)
    expected = expected if weight is None else expected * weight.double().reshape(dims)
    expected = expected if bias is None else expected + bias.double().reshape(dims)
    return [x, weight, bias, mean, rstd, 1e-5, Out(expected.to(dtype), 8, 4)]


def group_norm(kind: str):
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        groups, share = draw.int(1, 3), draw.int(1, 3)
        shape = [draw.int(0, 3), groups * share, *draw.shape(most=3, low=2)]
        x = draw.tensor(shape, dtype)
        gamma, beta, eps = optional(draw, shape[1:2], dtype), optional(draw, shape[1:2], dtype), draw.choice(EPS)
        if x.numel() == 0:
            area, shape[0] = x.shape[2:].numel(), max(shape[0], 0)
        area = x.shape[2:].numel()
        parts = x.reshape(shape[0], groups, share * area)
        mean, rstd = statistics(parts, [2], eps)
        if share * area == 0:
            mean, rstd = torch.zeros(shape[0], groups, 1), torch.full((shape[0], groups, 1), torch.nan)
        expected = (parts.double() - mean) * rstd
        dims = [1, shape[1], *[1] * (len(shape) - 2)]
        expected = expected.reshape(shape)
        expected = expected if gamma is None else expected * gamma.double().reshape(dims)
        expected = expected if beta is None else expected + beta.double().reshape(dims)
        sizes = [shape[0], shape[1], area] if kind == "GroupNorm" else []
        active = [draw.flag()] if kind == "GroupNormSiluV2" else []
        if kind == "GroupNormSilu" or active == [True]:
            expected = F.silu(expected)
        saved = [Out(one.squeeze(2).to(dtype), 8, scale) for one, scale in [(mean, 4), (rstd, 0)]]
        return [x, gamma, beta, *sizes, groups, eps, *active, Out(expected.to(dtype), 8, 4), *saved]

    return draw_one


def instance_norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    layout = draw.choice(["NCHW", "NHWC"])
    shape = [draw.int(1, 3), *[draw.int(2, 4) for _ in range(3)]]
    axes, channel = ([2, 3], 1) if layout == "NCHW" else ([1, 2], 3)
    x, eps = draw.tensor(shape, dtype), draw.choice(EPS)
    gamma, beta = draw.tensor([shape[channel]], dtype), draw.tensor([shape[channel]], dtype)
    dims = [shape[channel] if axis == channel else 1 for axis in range(4)]
    mean, rstd = statistics(x, axes, eps)
    variance = x.double().var(axes, correction=0, keepdim=True)
    expected = (x.double() - mean) * rstd * gamma.double().reshape(dims) + beta.double().reshape(dims)
    return [
        *(x, gamma, beta, layout, eps),
        Out(expected.to(dtype), 8, 4),
        Out(mean.to(dtype), 8, 4),
        Out(variance.to(dtype), 8),
    ]


def renorm(in_place: bool):
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(least=2, empty=0), dtype)
        p, dim, largest = draw.choice([1.0, 2.0, 0.5, float("inf")]), draw.int(-x.dim(), x.dim() - 1), draw.number(0.5, 6)
        expected = torch.renorm(x.double(), p, dim, largest).to(dtype)
        if in_place:
            return [Out(expected, 8, start=x), p, dim, largest]
        return [x, p, dim, largest, Out(expected, 8)]

    return draw_one


def layer_norm_backward(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, first = shape_and_axes(draw)
    x, grad, extents = draw.tensor(shape, dtype), draw.tensor(shape, dtype), shape[first:]
    weight = optional(draw, extents, dtype)
    mean, rstd = (draw.view(one.float()) for one in statistics(x, list(range(first, len(shape))), 1e-3))
    mask = [draw.flag() for _ in range(3)]
    leaf = x.double().requires_grad_()
    factor = (torch.ones(extents, dtype=torch.float64) if weight is None else weight.double()).requires_grad_()
    offset = torch.zeros(extents, dtype=torch.float64, requires_grad=True)
    F.layer_norm(leaf, extents, factor, offset, 1e-3).backward(grad.double())
    grads = [leaf.grad, factor.grad, offset.grad]
    outs = [
        Out((one if is_asked else torch.zeros_like(one)).to(dtype), 64, 16) if is_asked or draw.flag() else None
        for one, is_asked in zip(grads, mask, strict=True)
    ]
    return [grad, x, extents, mean, rstd, weight, None, mask, *outs]


def batch_norm_backward(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = [max(extent, 2) for extent in channels_last_axes(draw)]
    n, training, eps = [shape[1]], draw.flag(), draw.choice(EPS)
    x, grad, weight = draw.tensor(shape, dtype), draw.tensor(shape, dtype), optional(draw, n, torch.float32)
    mask = [draw.flag() for _ in range(3)]
    running = [draw.tensor(n, torch.float32), draw.tensor(n, torch.float32, 0.1, 2)]
    mean, rstd = statistics(x, [axis for axis in range(len(shape)) if axis != 1], eps)
    saved = [draw.view(one.flatten().float()) for one in (mean, rstd)]
    leaf = x.double().requires_grad_()
    factor = (torch.ones(n, dtype=torch.float64) if weight is None else weight.double()).requires_grad_()
    offset = torch.zeros(n, dtype=torch.float64, requires_grad=True)
    kept = [one.double().clone() for one in running]
    F.batch_norm(leaf, *kept, factor, offset, training, 0.1, eps).backward(grad.double())
    kinds = [(leaf.grad, dtype), (factor.grad, torch.float32), (offset.grad, torch.float32)]
    outs = [
        Out((one if is_asked else torch.zeros_like(one)).to(kind), 64, 64) if is_asked or draw.flag() else None
        for (one, kind), is_asked in zip(kinds, mask, strict=True)
    ]
    return [grad, x, weight, *running, *saved, training, eps, mask, *outs]


def rms_norm_backward(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, first = shape_and_axes(draw)
    x, grad, gamma = draw.tensor(shape, dtype), draw.tensor(shape, dtype), draw.tensor(shape[first:], dtype)
    _, rstd = rms(x, gamma, 1e-3)
    leaf, factor = x.double().requires_grad_(), gamma.double().requires_grad_()
    axes = list(range(first, len(shape)))
    (leaf / (leaf.square().mean(axes, keepdim=True) + 1e-3).sqrt() * factor).backward(grad.double())
    # The document's shape lacks the axes whose size is 1 in the forward operator.
    rstd = rstd.reshape(shape[:first]) if draw.flag() else rstd
    return [
        *(grad, x, draw.view(rstd), gamma),
        Out(leaf.grad.to(dtype), 64, 16),
        Out(factor.grad.float(), 64, 16),
    ]


CASES = [
    Case("aclnnLayerNorm", layer_norm(False), n_draws=8),
    Case("aclnnLayerNormWithImplMode", layer_norm(True)),
    Case("aclnnAddLayerNorm", add_layer_norm),
    Case("aclnnRmsNorm", rms_norm(0)),
    Case("aclnnGemmaRmsNorm", rms_norm(1)),
    Case("aclnnAddRmsNorm", add_rms_norm),
    Case("aclnnBatchNorm", batch_norm, n_draws=8),
    Case("aclnnBatchNormBackward", batch_norm_backward),
    Case("aclnnBatchNormStats", batch_statistics),
    Case("aclnnBatchNormElemt", batch_norm_of_statistics),
    Case("aclnnGroupNorm", group_norm("GroupNorm")),
    Case("aclnnGroupNormSilu", group_norm("GroupNormSilu")),
    Case("aclnnGroupNormSiluV2", group_norm("GroupNormSiluV2")),
    Case("aclnnInstanceNorm", instance_norm, FLOATS[:2]),
    Case("aclnnLayerNormBackward", layer_norm_backward),
    Case("aclnnRmsNormGrad", rms_norm_backward, n_draws=6),
    Case("aclnnRenorm", renorm(False)),
    Case("aclnnInplaceRenorm", renorm(True)),
]
