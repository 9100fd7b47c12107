"""Joining, splitting and repeating."""

from __future__ import annotations

import torch
from aclnn import ALL, Case, Draw, Out


def cat(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape(least=1)
    dim = draw.int(-len(shape), len(shape) - 1)
    tensors = []
    for _ in range(draw.int(1, 4)):
        other_type = draw.choice([dtype] * 6 + ALL)
        shape[dim] = draw.int(0, 4)
        # PyTorch accepts this one among others of any shape.
        odd = [0] if draw.int(0, 9) == 0 else shape
        tensors.append(draw.tensor(odd, other_type, special=0.1))
    if all(tensor.dim() == 1 for tensor in tensors):
        dim = 0
    return [tensors, dim, Out(torch.cat(tensors, dim))]


def stack(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = draw.shape(most=3)
    types = [draw.choice([dtype] * 6 + ALL) for _ in range(draw.int(1, 4))]
    tensors = [draw.tensor(shape, one, special=0.1) for one in types]
    dim = draw.int(-len(shape) - 1, len(shape))
    wide = torch.cat([tensor.reshape(-1)[:0].to(one) for tensor, one in zip(tensors, types, strict=True)]).dtype
    if not shape:
        wide = torch.cat([tensor.reshape(1) for tensor in tensors]).dtype
    return [tensors, dim, Out(torch.stack([tensor.to(wide) for tensor in tensors], dim))]


def split_evenly(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype, special=0.1)
    dim, size = draw.int(-x.dim(), x.dim() - 1), draw.int(1, 3)
    return [x, size, dim, [Out(part) for part in torch.split(x, size, dim)]]


def split(draw: Draw, dtype: torch.dtype) -> list[object]:
    sizes = [draw.int(0, 3) for _ in range(draw.int(1, 4))]
    shape = draw.shape(least=1)
    dim = draw.int(-len(shape), len(shape) - 1)
    shape[dim] = sum(sizes)
    x = draw.tensor(shape, dtype, special=0.1)
    return [x, sizes, dim, [Out(part) for part in torch.split(x, sizes, dim)]]


def repeats(draw: Draw, n: int) -> torch.Tensor:
    """One number, or one for each; the sum belongs to the shapes."""
    dtype = draw.choice([torch.int32, torch.int64])
    count = draw.choice([n, n, 1])
    numbers = torch.tensor([draw.int(0, 3) for _ in range(count)], dtype=dtype)
    if count == 1 and draw.flag():
        return numbers.reshape(())
    return draw.view(numbers[torch.randperm(count, generator=draw.values)])


def repeat_all(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(most=3, empty=0), dtype, special=0.1)
    times = repeats(draw, x.numel())
    expected = x.reshape(-1).repeat_interleave(times)
    return [x, times, len(expected), Out(expected)]


def repeat_along(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1, most=3, empty=0), dtype, special=0.1)
    dim = draw.int(-x.dim(), x.dim() - 1)
    times = repeats(draw, x.shape[dim])
    expected = x.repeat_interleave(times, dim)
    return [x, times, dim, expected.shape[dim], Out(expected)]


def repeat_all_equally(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(most=3), dtype, special=0.1)
    times = draw.int(0, 3)
    expected = x.repeat_interleave(times)
    return [x, times, len(expected), Out(expected)]


def repeat_equally(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1, most=3), dtype, special=0.1)
    dim, times = draw.int(-x.dim(), x.dim() - 1), draw.int(0, 3)
    expected = x.repeat_interleave(times, dim)
    return [x, times, dim, expected.shape[dim], Out(expected)]


def repeat_positions(draw: Draw, dtype: torch.dtype) -> list[object]:
    n = draw.int(0, 6)
    numbers = torch.tensor([draw.int(0, 3) for _ in range(n)], dtype=dtype)
    numbers = draw.view(numbers[torch.randperm(n, generator=draw.values)])
    expected = torch.repeat_interleave(numbers)
    return [numbers, len(expected), Out(expected.to(dtype))]


CASES = [
    Case("aclnnCat", cat, ALL, 8),
    Case("aclnnStack", stack, ALL),
    Case("aclnnSplitTensor", split_evenly, ALL),
    Case("aclnnSplitWithSize", split, ALL),
    Case("aclnnRepeatInterleave", repeat_all, ALL),
    Case("aclnnRepeatInterleaveWithDim", repeat_along, ALL),
    Case("aclnnRepeatInterleaveInt", repeat_all_equally, ALL),
    Case("aclnnRepeatInterleaveIntWithDim", repeat_equally, ALL),
    Case("aclnnRepeatInterleaveTensor", repeat_positions, [torch.int32, torch.int64], 8),
]
