"""Orders of elements. Where PyTorch leaves the order of equal elements open, it is that of their places."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, INTEGERS, NUMBERS, Case, Draw, Out

from .scattering import narrow, wide


def drawn(draw: Draw, dtype: torch.dtype, **limits: int) -> tuple[torch.Tensor, int]:
    """A tensor with equal elements and NaN in it, and an axis."""
    x = draw.tensor(draw.shape(**limits), dtype, -2, 2, special=0.3)
    if dtype.is_floating_point and draw.flag():
        x = draw.view(x.round())
    n = max(x.dim(), 1)
    return x, draw.int(-n, n - 1)


def top(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = drawn(draw, dtype, least=1)
    k, largest = draw.int(0, x.shape[dim]), draw.flag()
    values, places = x.sort(dim=dim, descending=largest, stable=True)
    expected = torch.topk(wide(x), k, dim, largest).values.to(dtype)
    assert torch.equal(expected.nan_to_num(), values.narrow(dim, 0, k).nan_to_num())
    return [x, k, dim, largest, True, Out(expected), Out(places.narrow(dim, 0, k))]


def sort(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = drawn(draw, dtype)
    descending = draw.flag()
    values, places = x.sort(dim=dim, descending=descending, stable=True)
    return [x, draw.flag(), dim, descending, Out(values), Out(places)]


def sort_with_index(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, _ = drawn(draw, dtype, least=1)
    index = draw.tensor(list(x.shape), torch.int32, 0, 99)
    descending = draw.flag()
    values, places = x.sort(dim=-1, descending=descending, stable=True)
    return [x, index, -1, descending, True, Out(values), Out(index.gather(-1, places))]


def argsort(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = drawn(draw, dtype)
    descending = draw.flag()
    return [x, dim, descending, Out(x.argsort(dim=dim, descending=descending, stable=True))]


def kth_value(draw: Draw, dtype: torch.dtype) -> list[object]:
    x, dim = drawn(draw, dtype, least=1)
    while not x.shape[dim]:
        x, dim = drawn(draw, dtype, least=1)
    k, keeps = draw.int(1, x.shape[dim]), draw.flag()
    values, places = x.sort(dim=dim, stable=True)
    found = [one.narrow(dim, k - 1, 1) for one in (values, places)]
    if not keeps:
        found = [one.squeeze(dim) for one in found]
    return [x, k, dim, keeps, *map(Out, found)]


def middle(x: torch.Tensor, dim: int, shows_nan: bool) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = x.sort(dim=dim, stable=True)
    is_nan = x.isnan() if x.dtype.is_floating_point else torch.zeros_like(x, dtype=torch.bool)
    n_numbers = (~is_nan).sum(dim, keepdim=True)
    at = ((n_numbers - 1) // 2).clamp(min=0)
    if shows_nan:
        at = torch.where(is_nan.any(dim, keepdim=True), n_numbers, at)
    return values.gather(dim, at), places.gather(dim, at)


def median_along(shows_nan: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    reference = torch.median if shows_nan else torch.nanmedian

    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, dim = drawn(draw, dtype, least=1)
        while not x.shape[dim]:
            x, dim = drawn(draw, dtype, least=1)
        keeps = draw.flag()
        values, places = middle(x, dim, shows_nan)
        expected = reference(wide(x), dim, keepdim=True).values.to(dtype)
        assert torch.equal(expected.nan_to_num(), values.nan_to_num())
        if not keeps:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return [x, dim, keeps, Out(values), Out(places)]

    return draw_one


def median(shows_nan: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    reference = torch.median if shows_nan else torch.nanmedian

    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, _ = drawn(draw, dtype, empty=0)
        expected = reference(wide(x)).to(dtype)
        return [x, Out(expected.reshape(1) if draw.flag() else expected)]

    return draw_one


def running(reference: Callable[..., object]) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        x, dim = drawn(draw, dtype, high=9)
        values, places = reference(x.clone(memory_format=torch.contiguous_format), dim)
        return [x, dim, Out(values), Out(places.to(draw.choice([torch.int32, torch.int64])))]

    return draw_one


def running_product(in_place: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw_one(draw: Draw, dtype: torch.dtype) -> list[object]:
        low = 0.5 if dtype.is_floating_point else -4
        x = draw.tensor(draw.shape(high=7), dtype, low, 2)
        dim = draw.int(-max(x.dim(), 1), max(x.dim(), 1) - 1)
        if in_place:
            return [Out(narrow(wide(x).cumprod(dim), dtype), 8, start=x), dim]
        given = draw.choice([None, torch.float32, torch.float16]) if dtype.is_floating_point else None
        kind = given or dtype
        expected = narrow(wide(x.to(kind)).cumprod(dim), kind)
        return [x, dim, -1 if given is None else given, Out(expected, 8)]

    return draw_one


def search(draw: Draw, dtype: torch.dtype) -> list[object]:
    rows = draw.shape(most=2, empty=0)
    n, right, is_small = draw.int(1, 6), draw.flag(), draw.flag()
    kind = torch.int32 if is_small else torch.int64
    sequence = draw.tensor([*rows, n], dtype, -3, 3)
    sorter = sequence.argsort(-1) if draw.flag() else None
    in_order = sequence.sort(-1).values
    if sorter is None:
        sequence = draw.view(in_order)
    shape = draw.shape(least=1, most=3) if not rows else [*rows, draw.int(0, 4)]
    values = draw.tensor(shape, dtype, -4, 4)
    if dtype.is_floating_point and draw.flag():
        sequence, values, in_order = sequence.round(), values.round(), in_order.round()
        sorter = None if sorter is None else sequence.argsort(dim=-1, stable=True)
    expected = torch.searchsorted(wide(in_order).contiguous(), wide(values).contiguous(), right=right)
    return [sequence, values, is_small, right, sorter, Out(expected.to(kind))]


def search_one(draw: Draw, dtype: torch.dtype) -> list[object]:
    sequence = draw.tensor([draw.int(0, 6)], dtype, -3, 3).sort().values
    value = draw.number() if dtype.is_floating_point else draw.choice([0, 1, 2])
    right = draw.flag()
    expected = torch.searchsorted(wide(sequence).contiguous(), value, right=right)
    return [draw.view(sequence), value, False, right, None, Out(expected.reshape(1))]


def count(draw: Draw, dtype: torch.dtype) -> list[object]:
    n, least = draw.int(0, 8), draw.choice([0, 5, 9])
    x = draw.tensor([n], dtype, 0, 6)
    if n:
        # How long the result is belongs to the shapes.
        x[0] = 6
    weights = draw.tensor([n], draw.choice([torch.float32, torch.float64, torch.int32])) if draw.flag() else None
    expected = torch.bincount(x, weights, least)
    out_type = torch.float32 if weights is not None else torch.int32
    kind = draw.choice([expected.dtype, out_type])
    return [x, weights, least, Out(expected.to(kind), 4, 16)]


SORTED = [dtype for dtype in ALL if dtype != torch.bool]

CASES = [
    Case("aclnnTopk", top, SORTED),
    Case("aclnnSort", sort, ALL),
    Case("aclnnSortWithIndex", sort_with_index, SORTED),
    Case("aclnnArgsort", argsort, SORTED),
    Case("aclnnKthvalue", kth_value, SORTED),
    Case("aclnnMedian", median(True), SORTED),
    Case("aclnnMedianDim", median_along(True), SORTED),
    Case("aclnnNanMedian", median(False), SORTED),
    Case("aclnnNanMedianDim", median_along(False), SORTED),
    Case("aclnnCummax", running(torch.cummax), ALL),
    Case("aclnnCummin", running(torch.cummin), ALL),
    Case("aclnnCumprod", running_product(False), NUMBERS),
    Case("aclnnInplaceCumprod", running_product(True), NUMBERS),
    Case("aclnnSearchSorted", search, NUMBERS),
    Case("aclnnSearchSorteds", search_one, NUMBERS),
    Case("aclnnBincount", count, INTEGERS, 8),
]
