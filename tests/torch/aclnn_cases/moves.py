"""Shapes and orders of elements."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from aclnn import ALL, Case, Draw, Out


def exactly(change: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """A change that moves elements, through a type that torch has it for."""
    wide = torch.float64 if x.dtype.is_floating_point else torch.int64
    return change(x.to(wide)).to(x.dtype)


def permute(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.1)
    order = list(range(x.dim()))
    draw.shapes.shuffle(order)
    dims = [axis - x.dim() * draw.int(0, 1) for axis in order]
    return [x, dims, Out(x.permute(dims))]


def expand(draw: Draw, dtype: torch.dtype) -> list[object]:
    full = draw.shape()
    kept = full[draw.int(0, len(full)) :]
    x = draw.tensor([draw.choice([1, n]) for n in kept], dtype, special=0.1)
    size = list(full)
    if x.dim() and x.shape[-1] == full[-1] and draw.flag():
        size[-1] = -1
    return [x, size, Out(x.expand(size))]


def repeat(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(most=3), dtype, special=0.1)
    repeats = [draw.int(0 if draw.int(0, 9) == 0 else 1, 3) for _ in range(x.dim() + draw.int(0, 2))]
    return [x, repeats, Out(x.repeat(repeats))]


def some_axes(draw: Draw, n: int) -> list[int]:
    axes = list(range(n))
    draw.shapes.shuffle(axes)
    return [axis - n * draw.int(0, 1) for axis in axes[: draw.int(0, n)]]


def flip(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.1)
    dims = some_axes(draw, x.dim())
    return [x, dims, Out(x.flip(dims))]


def roll(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.1)
    dims = some_axes(draw, x.dim())
    shifts = [draw.int(-7, 7) for _ in dims] or [draw.int(-7, 7)]
    expected = exactly(lambda x: x.roll(shifts, dims) if dims else x.roll(shifts[0]), x)
    return [x, shifts, dims, Out(expected)]


def flatten(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype, special=0.1)
    axis = draw.int(0, x.dim() - 1)
    rows = 1
    for n in x.shape[:axis]:
        rows *= n
    columns = x.numel() // rows if rows else torch.tensor(x.shape[axis:]).prod().item()
    return [x, axis - x.dim() * draw.int(0, 1), Out(x.reshape(rows, columns))]


def slice_bounds(draw: Draw, n: int) -> tuple[int, int, int]:
    return draw.int(-n - 2, n + 2), draw.choice([draw.int(-n - 2, n + 2), 2**63 - 1]), draw.int(1, 3)


def slice_one(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype, special=0.1)
    dim = draw.int(-x.dim(), x.dim() - 1)
    start, end, step = slice_bounds(draw, x.shape[dim])
    index = [slice(None)] * x.dim()
    index[dim] = slice(start, end, step)
    return [x, dim, start, end, step, Out(x[tuple(index)])]


def slice_several(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype, special=0.1)
    axes = some_axes(draw, x.dim())
    bounds = [slice_bounds(draw, x.shape[axis]) for axis in axes]
    index = [slice(None)] * x.dim()
    for axis, bound in zip(axes, bounds, strict=True):
        index[axis] = slice(*bound)
    starts, ends, steps = ([bound[i] for bound in bounds] for i in range(3))
    return [x, starts, ends, axes, steps, Out(x[tuple(index)])]


def strided_slice(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1, empty=0.03), dtype, special=0.1)
    index: list[object] = []
    begin, end, strides = [], [], []
    masks = dict.fromkeys(["begin", "end", "ellipsis", "new", "shrink"], 0)
    n_taken = draw.int(0, x.dim())
    entries = ["axis"] * n_taken + ["new"] * draw.int(0, 1) + ["ellipsis"] * draw.int(0, 1)
    draw.shapes.shuffle(entries)
    axis = 0
    for i, entry in enumerate(entries):
        first, last, step = 0, 0, 1
        if entry == "new":
            index.append(None)
            masks["new"] |= 1 << i
        elif entry == "ellipsis":
            index.append(Ellipsis)
            masks["ellipsis"] |= 1 << i
            axis += x.dim() - n_taken
        else:
            n = x.shape[axis]
            axis += 1
            first, last = draw.int(-n - 1, n + 1), draw.int(-n - 1, n + 1)
            step = draw.choice([1, 1, 2, -1, -2])
            if n and draw.int(0, 4) == 0:
                first, last, step = draw.int(-n, n - 1), 7, 1
                masks["shrink"] |= 1 << i
                index.append(first)
            else:
                free = draw.flag(), draw.flag()
                masks["begin"] |= free[0] << i
                masks["end"] |= free[1] << i
                index.append(slice(None if free[0] else first, None if free[1] else last, step))
        begin.append(first)
        end.append(last)
        strides.append(step)
    # Only numpy steps backwards.
    expected = exactly(lambda x: torch.tensor(x.numpy()[tuple(index)].copy()), x)
    return [x, begin, end, strides, *masks.values(), Out(expected)]


def copy(draw: Draw, dtype: torch.dtype) -> list[object]:
    full = draw.shape()
    source_type = draw.choice([dtype, dtype, *ALL])
    source_shape = [draw.choice([1, n]) for n in full[draw.int(0, len(full)) :]]
    low = 0 if torch.uint8 in (dtype, source_type) else -4
    source = draw.tensor(source_shape, source_type, low)
    out = draw.tensor(full, dtype)
    return [Out(source.to(dtype).expand(full), start=out), source]


def shuffle_channels(draw: Draw, dtype: torch.dtype) -> list[object]:
    groups, per_group = draw.int(1, 3), draw.int(1, 3)
    shape = [draw.int(1, 3), groups * per_group, *draw.shape(least=1, most=3)]
    x = draw.tensor(shape, dtype, special=0.1)
    split = x.reshape(shape[0], groups, per_group, *shape[2:])
    return [x, groups, Out(split.transpose(1, 2).reshape(shape))]


def im2col(draw: Draw, dtype: torch.dtype) -> list[object]:
    shape = [*([draw.int(1, 2)] if draw.flag() else []), draw.int(1, 3), draw.int(4, 7), draw.int(4, 7)]
    x = draw.tensor(shape, dtype)
    kernel, dilation = [draw.int(1, 2), draw.int(1, 3)], [draw.int(1, 2), 1]
    padding, stride = [draw.int(0, 1), draw.int(0, 2)], [draw.int(1, 2), draw.int(1, 2)]
    wide = x.double()
    expected = F.unfold(wide, kernel, dilation, padding, stride).to(dtype)
    return [x, kernel, dilation, padding, stride, Out(expected)]


CASES = [
    Case("aclnnPermute", permute, ALL),
    Case("aclnnExpand", expand, ALL),
    Case("aclnnRepeat", repeat, ALL),
    Case("aclnnFlip", flip, ALL),
    Case("aclnnRoll", roll, ALL),
    Case("aclnnFlatten", flatten, ALL),
    Case("aclnnSlice", slice_one, ALL),
    Case("aclnnSliceV2", slice_several, ALL),
    Case("aclnnStridedSlice", strided_slice, ALL, 6),
    Case("aclnnInplaceCopy", copy, ALL, 8),
    Case("aclnnChannelShuffle", shuffle_channels, ALL),
    Case("aclnnIm2col", im2col, ALL),
]
