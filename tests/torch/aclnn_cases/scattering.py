"""Elements put into places."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, Case, Draw, Out

from .indexing import INDEX_TYPES, places, some_shape
from .moves import exactly

Drawn = tuple[list[object], torch.Tensor, torch.Tensor]
"""Arguments behind the tensor, the tensor, and the result."""


def both(name: str, draw_one: Callable[[Draw, torch.dtype], Drawn], tolerance: float, dtypes=ALL) -> list[Case]:
    """The two forms of an operator."""

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        others, x, expected = draw_one(draw, dtype)
        return [x, *others, Out(expected, tolerance, 8)]

    def inside(draw: Draw, dtype: torch.dtype) -> list[object]:
        others, x, expected = draw_one(draw, dtype)
        return [Out(expected, tolerance, 8, start=x), *others]

    return [Case(f"aclnn{name}", plain, dtypes), Case(f"aclnnInplace{name}", inside, dtypes)]


def distinct_places(draw: Draw, shape: list[int], dim: int, n: int) -> torch.Tensor:
    """Places along an axis, none of them twice in its line."""
    order = torch.rand([*shape[:dim], n, *shape[dim + 1 :]], generator=draw.values).argsort(dim)
    return draw.view(order.narrow(dim, 0, shape[dim]).to(draw.choice(INDEX_TYPES)))


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.dtype.is_floating_point else x.long()


def narrow(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x != 0 if dtype == torch.bool else x.to(dtype)


def scatter_with(has_source: bool) -> Callable[[Draw, torch.dtype], Drawn]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> Drawn:
        shape = some_shape(draw)
        reduce = draw.int(0, 2)
        x = draw.tensor(shape, dtype)
        dim = draw.int(0, max(len(shape), 1) - 1)
        n = shape[dim] if shape else 1
        smaller = [draw.int(1, extent) for extent in shape]
        if reduce:
            if shape:
                smaller[dim] = draw.int(0, 6)
            index = places(draw, smaller, n)
        else:
            index = distinct_places(draw, smaller, dim, n) if shape else places(draw, [], 1)
        dim -= len(shape) * draw.int(0, 1)
        value = draw.choice([2, 3]) if dtype != torch.bool else True
        larger = [extent + draw.int(0, 2) for extent in index.shape]
        source = draw.tensor(larger, dtype)
        used = source if has_source else torch.full(index.shape, value).to(dtype)
        name = [None, "sum", "prod"][reduce]
        if name:
            expected = wide(x).scatter_reduce(dim, index.long(), wide(used), name)
        else:
            expected = wide(x).scatter(dim, index.long(), wide(used))
        return [dim, index, source if has_source else value, reduce], x, narrow(expected, dtype)

    return draw_one


def scatter_add(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = some_shape(draw, least=1)
    x, dim = draw.tensor(shape, dtype), draw.int(0, len(shape) - 1)
    smaller = [draw.int(1, extent) for extent in shape]
    smaller[dim] = draw.int(0, 6)
    index = places(draw, smaller, shape[dim])
    source = draw.tensor([extent + draw.int(0, 2) for extent in smaller], dtype)
    expected = narrow(wide(x).scatter_add(dim, index.long(), wide(source)), dtype)
    return [x, dim, index, source, Out(expected, 2, 8)]


def scatter_reduce(draw: Draw, dtype: torch.dtype) -> Drawn:
    shape = some_shape(draw, least=1)
    reduce, includes_self = draw.int(1, 5), draw.flag()
    special = 0.1 if reduce in (3, 4) else 0.0
    x, dim = draw.tensor(shape, dtype, special=special), draw.int(0, len(shape) - 1)
    smaller = [draw.int(1, extent) for extent in shape]
    smaller[dim] = draw.int(0, 6)
    index = places(draw, smaller, shape[dim])
    source = draw.tensor(smaller, dtype, special=special)
    name = ["", "sum", "prod", "amax", "amin", "mean"][reduce]
    expected = wide(x).scatter_reduce(dim, index.long(), wide(source), name, include_self=includes_self)
    return [dim, index, source, reduce, includes_self], x, narrow(expected, dtype)


def distinct_coordinates(draw: Draw, x: torch.Tensor, n: int) -> torch.Tensor:
    """Coordinates on the first `n` axes, none of them twice."""
    room = x.shape[:n].numel()
    flat = torch.randperm(room, generator=draw.values)[: draw.int(0, room)]
    columns = torch.unravel_index(flat, x.shape[:n])
    return draw.view(torch.stack(columns, -1).to(draw.choice(INDEX_TYPES)))


def scatter_parts(in_place: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(some_shape(draw, least=1), dtype, special=0.1)
        n = draw.int(1, x.dim())
        index = distinct_coordinates(draw, x, n)
        updates = draw.tensor([len(index), *x.shape[n:]], dtype, special=0.1)
        expected = x.clone()
        expected[tuple(index.long().unbind(-1))] = updates
        if in_place:
            return [Out(expected, start=x), index, updates]
        return [x, index, updates, Out(expected)]

    return draw_one


def scatter_update(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=2, low=2), dtype, special=0.1)
    axis = draw.int(1, x.dim() - 1)
    n, n_entries = draw.int(1, len(x)), draw.int(1, x.shape[axis])
    shape = [n, *x.shape[1:]]
    shape[axis] = n_entries
    updates = draw.tensor(shape, dtype, special=0.1)
    starts = places(draw, [n], x.shape[axis] - n_entries + 1)
    batches = torch.arange(n)
    index = starts
    if draw.flag():
        batches = torch.randperm(len(x), generator=draw.values)[:n]
        index = draw.view(torch.stack([batches.to(starts.dtype), starts], -1))
    expected = x.clone()
    for batch, start, update in zip(batches.tolist(), starts.tolist(), updates, strict=True):
        expected[batch].narrow(axis - 1, start, n_entries).copy_(update)
    return [Out(expected, start=x), index, updates, axis - x.dim() * draw.int(0, 1)]


def along(draw: Draw, dtype: torch.dtype, distinct: bool) -> tuple[torch.Tensor, int, torch.Tensor, torch.Tensor]:
    """A tensor, an axis, places in it, and a source with an entry for each."""
    x = draw.tensor(some_shape(draw, least=1), dtype)
    dim = draw.int(0, x.dim() - 1)
    n = x.shape[dim]
    if distinct:
        index = distinct_places(draw, [draw.int(0, n)], 0, n)
    else:
        index = places(draw, [draw.int(0, 6)], n)
    shape = list(x.shape)
    shape[dim] = len(index)
    source = draw.tensor(shape, dtype)
    return x, dim - x.dim() * draw.int(0, 1), index, source


def index_add(has_mode: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, dim, index, source = along(draw, dtype, False)
        alpha = draw.choice([1, 2, -1]) if dtype not in (torch.bool, torch.uint8) else 1
        if dtype.is_floating_point and draw.flag():
            alpha = draw.number()
        expected = narrow(wide(x).index_add(dim, index.long(), wide(source), alpha=alpha), dtype)
        mode = [1] if has_mode else []
        return [x, dim, index, source, alpha, *mode, Out(expected, 3, 16)]

    return draw_one


def index_copy(draw: Draw, dtype: torch.dtype) -> Drawn:
    x, dim, index, source = along(draw, dtype, True)
    return [dim, index, source], x, x.index_copy(dim, index.long(), source)


def index_fill(has_list: bool) -> Callable[[Draw, torch.dtype], Drawn]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> Drawn:
        x = draw.tensor(some_shape(draw, least=1), dtype, special=0.1)
        dim = draw.int(-x.dim(), x.dim() - 1)
        n = x.shape[dim]
        value = draw.choice([0, 1])
        index = draw.tensor([draw.int(0, 4)], draw.choice(INDEX_TYPES), -n, n - 1)
        fill = torch.where(index < 0, index + n, index).long()
        expected = exactly(lambda x: x.index_fill(dim, fill, value), x)
        if has_list:
            # A list belongs to the shapes: other places are another graph.
            return [dim, index.tolist(), value], x, expected
        # Places beyond the axis are left out.
        beyond = torch.tensor([n + 3, -n - 1], dtype=index.dtype)
        return [dim, torch.cat([index, beyond]) if draw.flag() else index, value], x, expected

    return draw_one


CASES = [
    *both("Scatter", scatter_with(True), 4),
    *both("ScatterValue", scatter_with(False), 4),
    *both("ScatterReduce", scatter_reduce, 4),
    Case("aclnnScatterAdd", scatter_add, ALL),
    Case("aclnnScatterNd", scatter_parts(False), ALL),
    Case("aclnnScatterNdUpdate", scatter_parts(True), ALL),
    Case("aclnnInplaceScatterUpdate", scatter_update, ALL),
    Case("aclnnIndexAdd", index_add(False), ALL),
    Case("aclnnIndexAddV2", index_add(True), ALL),
    *both("IndexCopy", index_copy, 0),
    *both("IndexFill", index_fill(False), 0),
    *both("IndexFillTensor", index_fill(True), 0),
]
