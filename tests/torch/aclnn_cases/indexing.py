"""Elements by their places."""

from __future__ import annotations

import torch
from aclnn import ALL, Case, Draw, Out

INDEX_TYPES = [torch.int32, torch.int64]


def places(draw: Draw, shape: list[int], n: int, low: int = 0) -> torch.Tensor:
    return draw.tensor(shape, draw.choice(INDEX_TYPES), low, n - 1)


def some_shape(draw: Draw, **limits: int) -> list[int]:
    return draw.shape(empty=0, **limits)


def gather(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = some_shape(draw)
    x = draw.tensor(shape, dtype, special=0.1)
    dim = draw.int(-max(x.dim(), 1), max(x.dim(), 1) - 1)
    n = x.shape[dim] if shape else 1
    smaller = [draw.int(1, extent) for extent in shape]
    if shape:
        smaller[dim] = draw.int(0, 6)
    index = places(draw, smaller, n, -n)
    wide = torch.where(index < 0, index + n, index).long()
    return [x, dim, index, Out(torch.gather(x, dim, wide))]


def entries(x: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    found = x.index_select(dim, index.reshape(-1).long())
    dim %= x.dim()
    return found.reshape(torch.Size([*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]]))


def gather_entries(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=1, most=3), dtype, special=0.1)
    dim = draw.int(-x.dim(), x.dim() - 1)
    n = x.shape[dim]
    index = places(draw, draw.shape(most=3), n, -n)
    return [x, dim, index, Out(entries(x, dim, torch.where(index < 0, index + n, index)))]


def gather_batches(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=1), dtype, special=0.1)
    dim = draw.int(0, x.dim() - 1)
    batch = draw.int(0, dim)
    index = places(draw, [*x.shape[:batch], *some_shape(draw, most=2)], x.shape[dim])
    rows = x.reshape([-1, *x.shape[batch:]])
    rows_index = index.reshape([len(rows), *index.shape[batch:]])
    found = [entries(one, dim - batch, at) for one, at in zip(rows, rows_index, strict=True)]
    expected = torch.stack(found).reshape(torch.Size([*x.shape[:batch], *found[0].shape]))
    return [x, dim, index, batch, draw.int(0, 1), Out(expected)]


def gather_parts(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw, least=1), dtype, special=0.1)
    n = draw.int(1, x.dim())
    outer = draw.shape(most=2)
    has_negative = draw.flag()
    index_type = draw.choice(INDEX_TYPES)
    columns = [
        draw.tensor(outer, index_type, -extent if has_negative else 0, extent - 1) for extent in x.shape[:n]
    ]
    index = draw.view(torch.stack(columns, -1))
    expected = x[tuple(column.long() for column in columns)]
    return [x, index, has_negative, Out(expected)]


def select(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw), dtype, special=0.1)
    if not x.dim():
        return [x, 0, places(draw, [1], 1), Out(x.clone())]
    dim = draw.int(-x.dim(), x.dim() - 1)
    index = places(draw, draw.choice([[], [0], [3], [7]]), x.shape[dim])
    return [x, dim, index, Out(x.index_select(dim, index.long()))]


def take(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(some_shape(draw), dtype, special=0.1)
    index = places(draw, draw.shape(most=3), x.numel())
    return [x, index, Out(torch.take(x, index.long()))]


def embedding(draw: Draw, dtype: torch.dtype) -> list[object]:
    weight = draw.tensor([draw.int(1, 9), draw.int(1, 5)], dtype, special=0.1)
    index = places(draw, draw.shape(most=3), len(weight))
    return [weight, index, Out(weight[index.long()])]


def one_hot(draw: Draw, dtype: torch.dtype) -> list[object]:
    n = draw.int(1, 6)
    index_type = draw.choice([torch.uint8, *INDEX_TYPES])
    x = draw.tensor(draw.shape(least=1, most=3), index_type, -1, n)
    on, off = draw.tensor([draw.int(1, 2)], dtype), draw.tensor([1], dtype)
    axis = draw.int(-1, x.dim())
    at = x.dim() if axis == -1 else axis
    is_on = (x.unsqueeze(-1) == torch.arange(n)).movedim(-1, at)
    return [x, n, on, off, axis, Out(torch.where(is_on, on[0], off[0]))]


CASES = [
    Case("aclnnGather", gather, ALL),
    Case("aclnnGatherV2", gather_entries, ALL),
    Case("aclnnGatherV3", gather_batches, ALL),
    Case("aclnnGatherNd", gather_parts, ALL),
    Case("aclnnIndexSelect", select, ALL),
    Case("aclnnTake", take, ALL),
    Case("aclnnEmbedding", embedding, ALL),
    Case("aclnnOneHot", one_hot, ALL),
]
