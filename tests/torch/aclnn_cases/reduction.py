"""Sums, extremes and other numbers of many elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from aclnn import ALL, ALL_FLOATS, INTEGERS, NUMBERS, Case, Draw, Out


def axes_of(draw: Draw, x: torch.Tensor) -> list[int]:
    """Some axes in any order, from either end; all of them where none is named."""
    chosen = [axis for axis in range(x.dim()) if draw.flag()]
    draw.shapes.shuffle(chosen)
    return [axis - x.dim() if draw.flag() else axis for axis in chosen]


def all_or(axes: list[int], x: torch.Tensor) -> list[int]:
    return axes or list(range(x.dim()))


def rough(x: torch.Tensor) -> float:
    """What elements add up to, for the scale of a sum's error."""
    if not x.dtype.is_floating_point:
        return 0.0
    sizes = x.double().abs()
    return sizes[sizes.isfinite()].sum().item()


def over_axes(
    function: str,
    reference: Callable[..., torch.Tensor],
    dtypes: list[torch.dtype],
    tolerance: float = 2.0,
    special: float = 0.0,
    empty: float = 0.06,
    integer: bool = False,
    more: tuple[object, ...] = (),
) -> Case:
    """An operator of a tensor, axes and whether they stay."""

    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(empty=empty), dtype, special=special)
        axes, keeps = axes_of(draw, x), draw.flag()
        expected = reference(x, all_or(axes, x), keeps)
        return [x, axes, keeps, *more, Out(expected, tolerance, rough(x))]

    return Case(function, draw, dtypes)


def typed_sum(function: str, reference: Callable[..., torch.Tensor]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        special = 0.2 if reference is torch.nansum and dtype.is_floating_point else 0.0
        x = draw.tensor(draw.shape(), dtype, special=special)
        axes, keeps = axes_of(draw, x), draw.flag()
        result = draw.choice([dtype, torch.float32, torch.int64 if not dtype.is_floating_point else dtype])
        if dtype == torch.bool:
            result = torch.int64
        expected = reference(x, all_or(axes, x), keeps, dtype=result)
        return [x, axes, keeps, result, Out(expected, 3, rough(x))]

    return Case(function, draw, [dtype for dtype in ALL if reference is torch.sum or dtype.is_floating_point])


def mean_over(x: torch.Tensor, axes: list[int], keeps: bool, dtype: torch.dtype) -> torch.Tensor:
    """torch's mean, and of integers that of the vendor, which cuts it towards 0."""
    if dtype.is_floating_point:
        return torch.mean(x, all_or(axes, x), keeps, dtype=dtype)
    chosen = all_or(axes, x)
    n = math.prod(x.shape[axis] for axis in chosen)
    return torch.div(torch.sum(x, chosen, keeps, dtype=torch.int64), n, rounding_mode="trunc").to(dtype)


def mean(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(empty=0.06 if dtype.is_floating_point else 0), dtype, -40, 40)
    axes, keeps = axes_of(draw, x), draw.flag()
    wider = [dtype] if dtype.is_floating_point else [dtype, torch.int64, torch.float16]
    named = draw.choice([*wider, torch.float32, torch.float64])
    expected = mean_over(x, axes, keeps, named)
    # The vendor's number for "no type" asks for the tensor's.
    passed = draw.choice([named, -1]) if named == dtype else named
    return [x, axes, keeps, passed, Out(expected, 2, 40)]


def mean_v2(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(empty=0.06 if dtype.is_floating_point else 0), dtype, -40, 40)
    axes, keeps, noop = axes_of(draw, x), draw.flag(), draw.flag()
    expected = x.clone() if noop and not axes else mean_over(x, axes, keeps, dtype)
    return [x, axes, keeps, noop, Out(expected, 2, 40)]


def all_elements(function: str, reference: Callable[[torch.Tensor], torch.Tensor]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(empty=0), dtype, special=0.03)
        return [x, Out(reference(x))]

    return Case(function, draw, ALL)


def both_extremes(kind: str) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(least=1, empty=0), dtype, special=0.03)
        keeps = draw.flag()
        if kind == "all":
            return [x, Out(x.amin()), Out(x.amax())]
        if kind == "dim":
            axis = draw.int(-x.dim(), x.dim() - 1)
            return [x, axis, keeps, Out(x.amin(axis, keeps)), Out(x.amax(axis, keeps))]
        axes = axes_of(draw, x)
        chosen = all_or(axes, x)
        return [x, axes, keeps, Out(x.amin(chosen, keeps)), Out(x.amax(chosen, keeps))]

    return draw


def with_place(function: str, reference: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(empty=0), dtype, special=0.1)
        axis, keeps = draw.int(-max(x.dim(), 1), max(x.dim() - 1, 0)), draw.flag()
        values, places = reference(x, axis, keeps)
        return [x, axis, keeps, Out(values), Out(places.to(draw.choice([torch.int64, torch.int32])))]

    return Case(function, draw, ALL)


def place(function: str, reference: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(empty=0), dtype, special=0.1)
        axis, keeps = draw.int(-max(x.dim(), 1), max(x.dim() - 1, 0)), draw.flag()
        # With values that repeat, the first position is returned; torch's own argmax does not promise it.
        return [x, axis, keeps, Out(reference(x, axis, keeps)[1])]

    return Case(function, draw, NUMBERS)


def product(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(most=2), dtype, -2, 3)
    result = dtype if dtype.is_floating_point else draw.choice([dtype, torch.int64])
    return [x, result, Out(torch.prod(x, dtype=result), 20)]


def product_along(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, -2, 3)
    axis, keeps = draw.int(-max(x.dim(), 1), max(x.dim() - 1, 0)), draw.flag()
    result = dtype if dtype.is_floating_point else draw.choice([dtype, torch.int64])
    return [x, axis, keeps, result, Out(torch.prod(x, axis, keeps, dtype=result), 20)]


def truth(function: str, reference: Callable[..., torch.Tensor]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, -1, 1, special=0.05)
        axes, keeps = axes_of(draw, x), draw.flag()
        expected = reference(x, all_or(axes, x), keeps) if x.dim() else reference(x)
        return [x, axes, keeps, Out(expected.to(draw.choice([torch.bool, torch.uint8])))]

    return Case(function, draw, ALL)


def running_sum(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype)
    axis = draw.int(-max(x.dim(), 1), max(x.dim() - 1, 0))
    result = dtype if dtype.is_floating_point else draw.choice([dtype, torch.int64])
    return [x, axis, result, Out(torch.cumsum(x, axis, dtype=result), 4, 20)]


def running_sum_v2(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(least=1), dtype)
    axis = draw.int(-x.dim(), x.dim() - 1)
    exclusive, reverse = draw.flag(), draw.flag()
    turned = x.flip(axis) if reverse else x
    expected = torch.cumsum(turned.double() if dtype.is_floating_point else turned, axis)
    if exclusive:
        expected = expected - turned
    expected = (expected.flip(axis) if reverse else expected).to(dtype)
    return [x, axis, exclusive, reverse, Out(expected, 4, 20)]


def spread(
    function: str, reference: Callable[..., torch.Tensor], flag: bool = False, with_mean: bool = False
) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype)
        axes, keeps = axes_of(draw, x), draw.flag()
        correction = draw.int(0, 1)
        chosen = all_or(axes, x)
        expected = reference(x, chosen, correction=correction, keepdim=keeps)
        passed = draw.choice([axes, None]) if not axes else axes
        outputs = [Out(expected, 4, 4)]
        if with_mean:
            outputs.append(Out(torch.mean(x, chosen, keeps), 2, 4))
        return [x, passed, bool(correction) if flag else correction, keeps, *outputs]

    return Case(function, draw, ALL_FLOATS)


def norm(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(empty=0), dtype)
    axes, keeps = axes_of(draw, x), draw.flag()
    order = draw.choice([2, 1, 0, 3.0, float("inf"), float("-inf"), None, 0.5])
    expected = torch.linalg.vector_norm(x, 2 if order is None else order, all_or(axes, x) or None, keeps)
    return [x, order, axes, keeps, Out(expected, 10, 4)]




CASES = [
    typed_sum("aclnnReduceSum", torch.sum),
    typed_sum("aclnnReduceNansum", torch.nansum),
    Case("aclnnMean", mean, NUMBERS),
    Case("aclnnMeanV2", mean_v2, NUMBERS),
    over_axes("aclnnAmax", torch.amax, ALL, 0, special=0.03, empty=0),
    over_axes("aclnnAmin", torch.amin, ALL, 0, special=0.03, empty=0),
    Case("aclnnAminmax", both_extremes("axes"), NUMBERS),
    Case("aclnnAminmaxAll", both_extremes("all"), NUMBERS),
    Case("aclnnAminmaxDim", both_extremes("dim"), NUMBERS),
    all_elements("aclnnMax", torch.max),
    all_elements("aclnnMin", torch.min),
    with_place("aclnnMaxDim", torch.max),
    with_place("aclnnMinDim", torch.min),
    place("aclnnArgMax", torch.max),
    place("aclnnArgMin", torch.min),
    Case("aclnnProd", product, [*ALL_FLOATS, *INTEGERS]),
    Case("aclnnProdDim", product_along, [*ALL_FLOATS, *INTEGERS]),
    truth("aclnnAll", torch.all),
    truth("aclnnAny", torch.any),
    Case("aclnnCumsum", running_sum, NUMBERS),
    Case("aclnnCumsumV2", running_sum_v2, NUMBERS),
    spread("aclnnVar", torch.var, flag=True),
    spread("aclnnVarCorrection", torch.var),
    spread("aclnnVarMean", torch.var, with_mean=True),
    spread("aclnnStd", torch.std),
    spread("aclnnStdMeanCorrection", torch.std, with_mean=True),
    Case("aclnnNorm", norm, ALL_FLOATS),
    over_axes("aclnnLogSumExp", torch.logsumexp, ALL_FLOATS, 4),
]
