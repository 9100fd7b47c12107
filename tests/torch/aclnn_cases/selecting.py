"""Masks and conditions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, FLOATS, Case, Draw, Out

from .indexing import INDEX_TYPES, some_shape
from .scattering import narrow, wide


def mask_of(draw: Draw, shape: list[int]) -> torch.Tensor:
    return draw.tensor(shape, draw.choice([torch.bool, torch.bool, torch.uint8]), 0, 1)


def smaller(draw: Draw, shape: list[int]) -> list[int]:
    """A shape that broadcasts to another one."""
    return [draw.choice([1, n]) for n in shape[draw.int(0, len(shape)) :]]


def where(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b, c = draw.shapes_to_broadcast(3)
    condition = mask_of(draw, a)
    x, other = draw.tensor(b, dtype, special=0.1), draw.tensor(c, draw.choice([dtype, dtype, *ALL]))
    return [condition, x, other, Out(torch.where(condition.bool(), x, other))]


def masked_fill(has_tensor: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, special=0.1)
        mask = draw.tensor(smaller(draw, list(x.shape)), torch.bool)
        if has_tensor:
            value_type = draw.choice([dtype, torch.bool])
            value = draw.tensor([], value_type, 0)
            return [Out(torch.where(mask, value.to(dtype), x), start=x), mask, value]
        value = draw.choice([0, 1]) if not dtype.is_floating_point else draw.choice([draw.number(), -float("inf")])
        return [Out(x.masked_fill(mask, value), start=x), mask, value]

    return draw_one


def masked_scatter(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw), dtype, special=0.1)
    mask = mask_of(draw, smaller(draw, list(x.shape)))
    source = draw.tensor([2, max(x.numel(), 1)], dtype, special=0.1)
    expected = x.clone()
    at = mask.bool().expand(x.shape)
    expected[at] = source.reshape(-1)[: at.sum()]
    return [Out(expected, start=x), mask, source]


def padded(found: torch.Tensor, room: list[int]) -> Out:
    """A result whose shape depends on values: memory after it is unchanged. `room` has the most."""
    start = torch.ones(room, dtype=found.dtype)
    expected = start.clone()
    expected.reshape(-1)[: found.numel()] = found.reshape(-1)
    return Out(expected, start=start, dense=True)


def masked_select(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b = draw.shapes_to_broadcast(2)
    x, mask = draw.tensor(a, dtype, special=0.1), mask_of(draw, b)
    found = torch.masked_select(x, mask.bool())
    return [x, mask, padded(found, [torch.broadcast_shapes(a, b).numel()])]


def masked_scale(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    mask = draw.tensor(list(x.shape), draw.choice([torch.uint8, torch.int8, torch.float16, torch.float32]), 0, 1)
    scale = draw.number()
    return [x, mask, scale, Out((x.double() * mask.double() * scale).to(dtype), 2, 0)]


def nonzero(columns: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(most=3), dtype, -1, 1, special=0.1)
        x = draw.view(torch.where(torch.rand(x.shape, generator=draw.values) < 0.4, torch.zeros_like(x), x))
        found = x.nonzero()
        if columns:
            return [x, padded(found.T.contiguous(), [x.dim(), x.numel()])]
        return [x, padded(found, [x.numel(), x.dim()])]

    return draw_one


def nan_to_num(draw: Draw, dtype: torch.dtype) -> tuple[torch.Tensor, list[float], torch.Tensor]:
    x = draw.tensor(draw.shape(), dtype, special=0.4)
    numbers = [draw.number() for _ in range(3)]
    return x, numbers, torch.nan_to_num(x, *numbers)


def nan_to_num_plain(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, numbers, expected = nan_to_num(draw, dtype)
    return [x, *numbers, Out(expected)]


def nan_to_num_inside(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, numbers, expected = nan_to_num(draw, dtype)
    return [Out(expected, start=x), *numbers]


def indices(draw: Draw, x: torch.Tensor, distinct: bool = False) -> tuple[list[torch.Tensor], tuple[object, ...]]:
    """Indices as the operator takes them, and as torch does."""
    passed: list[torch.Tensor] = []
    used: list[object] = []
    n = draw.int(1, x.dim())
    # Places must fall on distinct elements where the order of writing would count.
    one = draw.int(0, n - 1)
    shape = draw.shape(most=2, empty=0)
    for axis in range(n):
        if axis != one and (distinct or draw.flag()):
            passed.append(torch.empty(0, dtype=torch.int64))
            used.append(slice(None))
            continue
        extent = x.shape[axis]
        if distinct:
            index = torch.randperm(extent, generator=draw.values)[: draw.int(1, extent)]
            index = draw.view(index.to(draw.choice(INDEX_TYPES)))
        else:
            kept = [draw.choice([1, size]) for size in shape[draw.int(0, len(shape)) :]]
            index = draw.tensor(kept or [1], draw.choice(INDEX_TYPES), -extent, extent - 1)
        passed.append(index)
        used.append(index.long())
    return passed, tuple(used)


def index(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=1), dtype, special=0.1)
    if draw.int(0, 3) == 0:
        # A mask: how much it takes belongs to the shapes.
        axis = draw.int(0, x.dim() - 1)
        covered = x.shape[axis:].numel() if draw.flag() else x.shape[axis]
        shape = list(x.shape[axis:]) if covered == x.shape[axis:].numel() else [x.shape[axis]]
        chosen = draw.int(1, covered)
        flat = torch.zeros(covered, dtype=torch.bool)
        flat[torch.randperm(covered, generator=draw.values)[:chosen]] = True
        mask = draw.view(flat.reshape(shape))
        before = [torch.empty(0, dtype=torch.int64)] * axis
        return [x, [*before, mask], Out(x[(*[slice(None)] * axis, mask)])]
    passed, used = indices(draw, x)
    return [x, passed, Out(x[used])]


def index_put(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=1), dtype)
    accumulate = draw.flag() and dtype != torch.bool
    passed, used = indices(draw, x, not accumulate)
    values = draw.tensor(smaller(draw, list(x[used].shape)), dtype)
    expected = wide(x).clone()
    if accumulate:
        whole = torch.arange(x.numel()).reshape(x.shape)[used].reshape(-1)
        added = wide(values).expand(x[used].shape).reshape(-1)
        expected = expected.reshape(-1).index_add(0, whole, added).reshape(x.shape)
    else:
        expected[used] = wide(values)
    return [Out(narrow(expected, dtype), 3, 16, start=x), passed, values, accumulate, True]


CASES = [
    Case("aclnnSWhere", where, ALL),
    Case("aclnnInplaceMaskedFillScalar", masked_fill(False), ALL),
    Case("aclnnInplaceMaskedFillTensor", masked_fill(True), ALL),
    Case("aclnnInplaceMaskedScatter", masked_scatter, ALL),
    Case("aclnnMaskedSelect", masked_select, ALL),
    Case("aclnnMaskedScale", masked_scale, FLOATS),
    Case("aclnnNonzero", nonzero(False), ALL),
    Case("aclnnNonzeroV2", nonzero(True), ALL),
    Case("aclnnNanToNum", nan_to_num_plain, ALL),
    Case("aclnnInplaceNanToNum", nan_to_num_inside, ALL),
    Case("aclnnIndex", index, ALL, 8),
    Case("aclnnIndexPutImpl", index_put, ALL, 8),
]
