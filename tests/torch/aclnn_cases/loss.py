"""Softmax and losses."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL_FLOATS, FLOATS, Case, Draw, Out

REDUCTIONS = ["none", "mean", "sum", "batchmean"]


def softmax(reference: Callable[..., torch.Tensor]) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, -8, 8)
        dim = draw.int(-max(x.dim(), 1), max(x.dim(), 1) - 1)
        return [x, dim, Out(reference(x.double(), dim).to(dtype), 4, 0.01 if reference is torch.softmax else 8)]

    return draw_one


def softmax_backward(reference: Callable[..., torch.Tensor]) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape = draw.shape()
        grad, x = draw.tensor(shape, dtype), draw.tensor(shape, torch.float64)
        dim = draw.int(-max(x.dim(), 1), max(x.dim(), 1) - 1)
        leaf = x.clone().requires_grad_()
        output = reference(leaf, dim)
        rounded = draw.view(output.detach().to(dtype))
        if reference is torch.softmax:
            product = grad.double() * rounded.double()
            expected = product - product.sum(dim, keepdim=True) * rounded.double()
        else:
            expected = grad.double() - rounded.double().exp() * grad.double().sum(dim, keepdim=True)
        return [grad, rounded, dim, Out(expected.to(dtype), 8, 4)]

    return draw_one


def softmax_cross_entropy(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = [draw.int(0, 4), draw.int(1, 5)]
    x, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype, 0, 1)
    loss = -(y.double() * torch.log_softmax(x.double(), 1)).sum(1)
    back = torch.softmax(x.double(), 1) - y.double()
    return [x, y, Out(loss.to(dtype), 8, 4), Out(back.to(dtype), 4, 1)]


def placed(draw: Draw, expected: torch.Tensor, reduction: int, dtype: torch.dtype, scale: float = 8.0) -> Out:
    """One number of a reduction may be stored with an axis as well."""
    if reduction and draw.flag():
        expected = expected.reshape(1)
    return Out(expected.to(dtype), 8, scale)


def error(
    reference: Callable[..., torch.Tensor], last: int = 2, low: float = -4.0, high: float = 4.0, beta: bool = False
) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x, y = draw.tensor(a, dtype, low, high), draw.tensor(b, dtype, low, high)
        reduction = draw.int(0, last)
        more = {"beta": draw.choice([0.0, 0.5, 1.0])} if beta else {}
        both = torch.broadcast_tensors(x.double(), y.double())
        expected = reference(*both, reduction=REDUCTIONS[reduction], **more)
        scale = 8.0 * max(x.numel(), y.numel(), 1)
        return [x, y, reduction, *more.values(), placed(draw, expected, reduction, dtype, scale)]

    return draw_one


def squared_error_along_batch(draw: Draw, dtype: torch.dtype) -> list[object]:
    """A reduction leaves the first axis out, unlike torch's, which leaves all of them out."""
    shapes = draw.shapes_to_broadcast(2)
    x, target = (draw.tensor(shape, dtype) for shape in shapes)
    square = (x.double() - target.double()).square()
    reduction = draw.int(0, 2) if square.dim() else 0
    expected = [lambda: square, lambda: square.mean(0), lambda: square.sum(0)][reduction]().to(dtype)
    if reduction and expected.dim() == 0 and draw.flag():
        expected = expected.reshape(1)
    return [x, target, reduction, Out(expected, 8, 16)]


def error_backward(
    reference: Callable[..., torch.Tensor], beta: bool = False
) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, reduction = draw.shape(), draw.int(0, 2)
        x, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype)
        grad = draw.tensor(shape if reduction == 0 else [], dtype)
        more = {"beta": draw.choice([0.5, 1.0])} if beta else {}
        leaf = x.double().requires_grad_()
        reference(leaf, y.double(), reduction=REDUCTIONS[reduction], **more).backward(grad.double())
        return [grad, x, y, reduction, *more.values(), Out(leaf.grad.to(dtype), 8, 1)]

    return draw_one


def binary_cross_entropy(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, reduction = draw.shape(), draw.int(0, 2)
    x, y = draw.tensor(shape, dtype, 0, 1), draw.tensor(shape, dtype, 0, 1)
    weight = draw.tensor(shape, dtype) if draw.flag() else None
    wide = None if weight is None else weight.double()
    expected = F.binary_cross_entropy(x.double(), y.double(), wide, reduction=REDUCTIONS[reduction])
    return [x, y, weight, reduction, placed(draw, expected, reduction, dtype, 64)]


def binary_cross_entropy_of_logits(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, reduction = draw.shape(), draw.int(0, 2)
    x, y = draw.tensor(shape, dtype, -8, 8), draw.tensor(shape, dtype, 0, 1)
    last = shape[-1:]
    weights = [draw.tensor(draw.choice([shape, last]), dtype) if draw.flag() else None for _ in range(2)]
    first, second = (None if one is None else one.double() for one in weights)
    expected = F.binary_cross_entropy_with_logits(
        x.double(), y.double(), first, reduction=REDUCTIONS[reduction], pos_weight=second
    )
    return [x, y, *weights, reduction, placed(draw, expected, reduction, dtype, 256)]


def divergence(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, reduction, is_log = draw.shape(least=1), draw.int(0, 3), draw.flag()
    x, y = draw.tensor(shape, dtype), draw.tensor(shape, dtype, -4 if is_log else 0, 2)
    expected = F.kl_div(x.double(), y.double(), reduction=REDUCTIONS[reduction], log_target=is_log)
    return [x, y, reduction, is_log, placed(draw, expected, reduction, dtype, 256)]


def classes(draw: Draw, shape: list[int], ignored: int) -> torch.Tensor:
    """Classes of samples, some of them ignored."""
    dims = shape[:1] + shape[2:] if len(shape) > 1 else []
    drawn = torch.randint(0, shape[-1 if len(shape) == 1 else 1], tuple(dims), generator=draw.values)
    drop = torch.rand(dims, generator=draw.values) < 0.3
    return draw.view(torch.where(drop, ignored, drawn))


def likelihood(shapes: Callable[[Draw], list[int]]) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        shape, reduction, ignored = shapes(draw), draw.int(0, 2), draw.choice([-100, 1])
        x, target = draw.tensor(shape, dtype), classes(draw, shape, ignored)
        n = shape[0] if len(shape) == 1 else shape[1]
        weight = draw.tensor([n], dtype, 0.1, 2) if draw.flag() else None
        wide = None if weight is None else weight.double()
        expected = F.nll_loss(x.double(), target, wide, reduction=REDUCTIONS[reduction], ignore_index=ignored)
        kept = target[target != ignored]
        total = torch.tensor(float(kept.numel())) if weight is None else weight.double()[kept].sum()
        total = total if reduction else torch.tensor(0.0)
        return [
            *(x, target if draw.flag() else draw.view(target.int()), weight, reduction, ignored),
            placed(draw, expected, reduction, dtype, 64),
            placed(draw, total, 1, dtype, 8),
        ]

    return draw_one


def one_or_more_samples(draw: Draw) -> list[int]:
    return draw.choice([[draw.int(2, 5)], [draw.int(0, 4), draw.int(2, 5)], [draw.int(1, 4), draw.int(2, 5)]])


def pictures(draw: Draw) -> list[int]:
    return [draw.int(1, 3), draw.int(2, 4), draw.int(1, 4), draw.int(1, 4)]


def cross_entropy(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape, reduction, ignored = [draw.int(1, 4), draw.int(2, 5)], draw.int(0, 2), draw.choice([-100, 1])
    x, target = draw.tensor(shape, dtype), classes(draw, shape, ignored)
    weight = draw.tensor(shape[1:], torch.float32, 0.1, 2) if draw.flag() else None
    wide = None if weight is None else weight.double()
    name = REDUCTIONS[reduction]
    expected = F.cross_entropy(x.double(), target, wide, reduction=name, ignore_index=ignored)
    log = torch.log_softmax(x.double(), 1).to(dtype)
    return [x, target, weight, name, ignored, 0.0, 0.0, False, placed(draw, expected, reduction, dtype, 64), Out(log, 8, 1), None, None]


CASES = [
    Case("aclnnSoftmax", softmax(torch.softmax), ALL_FLOATS),
    Case("aclnnLogSoftmax", softmax(torch.log_softmax), ALL_FLOATS),
    Case("aclnnSoftmaxBackward", softmax_backward(torch.softmax), ALL_FLOATS),
    Case("aclnnLogSoftmaxBackward", softmax_backward(torch.log_softmax), ALL_FLOATS),
    Case("aclnnSoftmaxCrossEntropyWithLogits", softmax_cross_entropy),
    Case("aclnnMseLoss", error(F.mse_loss)),
    Case("aclnnMseLossOut", squared_error_along_batch, n_draws=8),
    Case("aclnnMseLossBackward", error_backward(F.mse_loss)),
    Case("aclnnL1Loss", error(F.l1_loss)),
    Case("aclnnL1LossBackward", error_backward(F.l1_loss)),
    Case("aclnnSmoothL1Loss", error(F.smooth_l1_loss, beta=True)),
    Case("aclnnSmoothL1LossBackward", error_backward(F.smooth_l1_loss, beta=True)),
    Case("aclnnBinaryCrossEntropy", binary_cross_entropy),
    Case("aclnnBinaryCrossEntropyWithLogits", binary_cross_entropy_of_logits),
    Case("aclnnKlDiv", divergence),
    Case("aclnnNLLLoss", likelihood(one_or_more_samples), n_draws=8),
    Case("aclnnNLLLoss2d", likelihood(pictures)),
    Case("aclnnCrossEntropyLoss", cross_entropy),
]
assert FLOATS
