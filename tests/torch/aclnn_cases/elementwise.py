"""Arithmetic of two or more operands."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aclnn import ALL, ALL_FLOATS, FLOATS, INTEGERS, NUMBERS, Case, Draw, Out

Reference = Callable[..., torch.Tensor]


def storable(draw: Draw, expected: torch.Tensor) -> torch.Tensor:
    """The result in its own type, or in another one that can hold it."""
    if draw.int(0, 3) or expected.dtype == torch.bool:
        return expected
    floats = expected.dtype.is_floating_point
    return expected.to(draw.choice(ALL_FLOATS if floats else [*INTEGERS, torch.float32]))


def binary(
    function: str,
    reference: Reference,
    dtypes: list[torch.dtype],
    others: list[torch.dtype] | None = None,
    tolerance: float = 1.0,
    scale: float = 0.0,
    low: float = -4.0,
    high: float = 4.0,
    nonzero: bool = False,
    special: float = 0.05,
    arguments: tuple[object, ...] = (),
    alpha: bool = False,
) -> list[Case]:
    """The operator on two tensors, and in place."""

    def other(draw: Draw, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        drawn = draw.tensor(shape, dtype, low, high, special)
        if nonzero and not dtype.is_floating_point:
            drawn[drawn == 0] = 1
        return drawn

    def factor(draw: Draw, is_float: bool) -> list[object]:
        if not alpha:
            return []
        return [draw.choice([1, 2, -3, draw.number()]) if is_float else draw.choice([1, 2, -3])]

    def result(x: torch.Tensor, y: torch.Tensor, extra: list[object]) -> torch.Tensor:
        return reference(x, y, alpha=extra[0]) if alpha else reference(x, y)

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        other_type = draw.choice([dtype, dtype, *(others or dtypes)])
        x, y = draw.tensor(a, dtype, low, high, special), other(draw, b, other_type)
        extra = factor(draw, dtype.is_floating_point or other_type.is_floating_point)
        expected = result(x, y, extra)
        if tolerance <= 1:
            expected = storable(draw, expected)
        return [x, y, *extra, *arguments, Out(expected, tolerance, scale)]

    def in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        full = torch.broadcast_shapes(a, b)
        x = draw.tensor(full, dtype, low, high, special)
        other_type = draw.choice([dtype, dtype, *(others or dtypes)])
        y = other(draw, b, other_type)
        extra = factor(draw, dtype.is_floating_point and other_type.is_floating_point)
        if result(x, y, extra).dtype != dtype:
            y = other(draw, b, dtype)
        expected = result(x, y, extra)
        return [Out(expected.to(dtype), tolerance, scale, start=x), y, *extra, *arguments]

    name = function.removeprefix("aclnn")
    kept = [dtype for dtype in dtypes if result(torch.ones(1, dtype=dtype), torch.ones(1, dtype=dtype), [1]).dtype == dtype]
    return [Case(function, plain, dtypes), Case(f"aclnnInplace{name}", in_place, kept)]


def with_scalar(
    function: str,
    reference: Reference,
    dtypes: list[torch.dtype],
    tolerance: float = 1.0,
    scale: float = 0.0,
    low: float = -4.0,
    high: float = 4.0,
    nonzero: bool = False,
    arguments: tuple[object, ...] = (),
    alpha: bool = False,
    integers: tuple[int, ...] = (2, -3, 1),
) -> list[Case]:
    """The operator on a tensor and a scalar, and in place."""

    def scalar(draw: Draw, is_float: bool) -> object:
        if is_float and draw.flag():
            return draw.number(max(low, 0.1) if nonzero else low, high)
        return draw.choice(integers)

    def extra(draw: Draw, is_float: bool) -> list[object]:
        return [draw.choice([1, 2])] if alpha else []

    def result(x: torch.Tensor, y: object, more: list[object]) -> torch.Tensor:
        return reference(x, y, alpha=more[0]) if alpha else reference(x, y)

    def plain(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, low, high, 0.05)
        y, more = scalar(draw, True), extra(draw, True)
        expected = result(x, y, more)
        if tolerance <= 1:
            # What differs in the last digit would differ by many digits of a wider type.
            expected = storable(draw, expected)
        return [x, y, *more, *arguments, Out(expected, tolerance, scale)]

    def in_place(draw: Draw, dtype: torch.dtype) -> list[object]:
        x = draw.tensor(draw.shape(), dtype, low, high, 0.05)
        y, more = scalar(draw, dtype.is_floating_point), extra(draw, False)
        return [Out(result(x, y, more).to(dtype), tolerance, scale, start=x), y, *more, *arguments]

    name = function.removeprefix("aclnn")
    kept = [dtype for dtype in dtypes if result(torch.ones(1, dtype=dtype), 1, [1]).dtype == dtype]
    return [Case(function, plain, dtypes), Case(f"aclnnInplace{name}", in_place, kept)]


def divided(mode: str | None) -> Reference:
    return lambda x, y: torch.div(x, y, rounding_mode=mode)


MODES = [(0, None), (1, "trunc"), (2, "floor")]


def by_mode(function: str, scalar: bool) -> list[Case]:
    """`DivMod` and `DivMods` draw their mode."""
    families = []
    for mode, name in MODES:
        make = with_scalar if scalar else binary
        more = {} if scalar else {"special": 0.0}
        families.append(make(function, divided(name), NUMBERS, nonzero=True, arguments=(mode,), **more))
    cases = []
    for position in range(2):
        variants = [family[position] for family in families]
        dtypes = variants[1].dtypes

        def draw(draw: Draw, dtype: torch.dtype, variants: list[Case] = variants) -> list[object]:
            chosen = [case for case in variants if dtype in case.dtypes]
            return draw.choice(chosen).draw(draw, dtype)

        cases.append(Case(variants[0].function, draw, dtypes, n_draws=8))
    return cases


def remainder_of_scalar(draw: Draw, dtype: torch.dtype) -> list[object]:
    y = draw.tensor(draw.shape(), dtype, 1, 4)
    x = draw.choice([7, -5, draw.number() if dtype.is_floating_point else 3])
    return [x, y, Out(torch.remainder(x, y), 1.0, 4)]


def no_place(cases: list[Case]) -> list[Case]:
    return cases[:1]


def clamp_scalars(draw: Draw, dtype: torch.dtype) -> list[object]:
    x = draw.tensor(draw.shape(), dtype, special=0.1)
    low, high = draw.choice([(-1, 2), (None, 1), (0, None), (2, -1), (0.5, 1.5)])
    if not dtype.is_floating_point and isinstance(low, float) or dtype == torch.uint8:
        low, high = 1, 2
    return [x, low, high, Out(torch.clamp(x, low, high))]


def clamp_tensors(draw: Draw, dtype: torch.dtype) -> list[object]:
    a, b, c = draw.shapes_to_broadcast(3)
    x = draw.tensor(torch.broadcast_shapes(a, b, c), dtype, special=0.1)
    low, high = draw.tensor(b, dtype, -2, 1), draw.tensor(c, dtype, 0, 3)
    match draw.int(0, 2):
        case 0:
            low = None
        case 1:
            high = None
    return [x, low, high, Out(torch.clamp(x, low, high))]


def clamp_one(function: str, keyword: str, is_tensor: bool, in_place: bool) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        x = draw.tensor(torch.broadcast_shapes(a, b), dtype, special=0.1)
        bound = draw.tensor(b, dtype, -2, 2) if is_tensor else draw.choice([0, 2])
        expected = torch.clamp(x, **{keyword: bound})
        return [Out(expected, start=x), bound] if in_place else [x, bound, Out(expected)]

    return Case(function, draw, NUMBERS)


def power_of_tensors(in_place: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b = draw.shapes_to_broadcast(2)
        low = 0.1 if dtype.is_floating_point else -4
        x = draw.tensor(torch.broadcast_shapes(a, b), dtype, low, 4)
        y = draw.tensor(b, dtype, -3, 9 if not dtype.is_floating_point else 3)
        expected = torch.pow(x, y)
        return [Out(expected, 4, start=x), y] if in_place else [x, y, Out(expected, 4)]

    return draw


def power_of_scalar(in_place: bool) -> Callable[[Draw, torch.dtype], list[object]]:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        low = 0.1 if dtype.is_floating_point else -4
        x = draw.tensor(draw.shape(), dtype, low, 4)
        floats = [0.5, -2, draw.number()] if dtype.is_floating_point else []
        y = draw.choice([0, 1, 2, 3, 7, *floats])
        expected = torch.pow(x, y)
        return [Out(expected, 4, start=x), y] if in_place else [x, y, Out(expected, 4)]

    return draw


def power_by_tensor(draw: Draw, dtype: torch.dtype) -> list[object]:
    y = draw.tensor(draw.shape(), dtype, 0, 5)
    x = draw.choice([2, 3, 0.5 if dtype.is_floating_point else -2])
    return [x, y, Out(torch.pow(x, y), 4)]


def with_product(function: str, reference: Reference, in_place: bool, dtypes: list[torch.dtype]) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b, c = draw.shapes_to_broadcast(3)
        x = draw.tensor(torch.broadcast_shapes(a, b, c), dtype)
        y, z = draw.tensor(b, dtype), draw.tensor(c, dtype, 1, 3)
        value = draw.choice([1, -2, draw.number() if dtype.is_floating_point else 3])
        expected = reference(x, y, z, value=value)
        out = Out(expected, 4, 16, start=x if in_place else None)
        return [out, y, z, value] if in_place else [x, y, z, value, out]

    return Case(function, draw, dtypes)


def interpolation(function: str, is_tensor: bool, in_place: bool) -> Case:
    def draw(draw: Draw, dtype: torch.dtype) -> list[object]:
        a, b, c = draw.shapes_to_broadcast(3)
        x = draw.tensor(torch.broadcast_shapes(a, b, c), dtype)
        y = draw.tensor(b, dtype)
        weight = draw.tensor(c, dtype, -1, 2) if is_tensor else draw.number(-1, 2)
        expected = torch.lerp(*torch.broadcast_tensors(x, y), weight)
        out = Out(expected, 3, 16, start=x if in_place else None)
        return [out, y, weight] if in_place else [x, y, weight, out]

    return Case(function, draw, ALL_FLOATS)


CASES = [
    *binary("aclnnAdd", torch.add, NUMBERS, scale=16, tolerance=2, alpha=True),
    *with_scalar("aclnnAdds", torch.add, NUMBERS, scale=16, tolerance=2, alpha=True),
    *binary("aclnnSub", torch.sub, NUMBERS, scale=16, tolerance=2, alpha=True),
    *with_scalar("aclnnSubs", torch.sub, NUMBERS, scale=16, tolerance=2, alpha=True),
    *binary("aclnnMul", torch.mul, ALL),
    *with_scalar("aclnnMuls", torch.mul, ALL),
    *binary("aclnnDiv", torch.div, NUMBERS),
    *with_scalar("aclnnDivs", torch.div, NUMBERS, nonzero=True, tolerance=1.5),
    *by_mode("aclnnDivMod", False),
    *by_mode("aclnnDivMods", True),
    *binary("aclnnFloorDivide", torch.floor_divide, NUMBERS, nonzero=True, special=0.0),
    *with_scalar("aclnnFloorDivides", torch.floor_divide, NUMBERS, nonzero=True),
    *binary("aclnnRemainderTensorTensor", torch.remainder, NUMBERS, nonzero=True, special=0.0, scale=4),
    *with_scalar("aclnnRemainderTensorScalar", torch.remainder, NUMBERS, nonzero=True, scale=4),
    Case("aclnnRemainderScalarTensor", remainder_of_scalar, NUMBERS),
    *binary("aclnnFmodTensor", torch.fmod, NUMBERS, nonzero=True, special=0.0, scale=4),
    *with_scalar("aclnnFmodScalar", torch.fmod, NUMBERS, nonzero=True, scale=4),
    *binary("aclnnAtan2", torch.atan2, FLOATS, tolerance=4, special=0.2),
    *no_place(binary("aclnnMaximum", torch.maximum, ALL, special=0.2)),
    *no_place(binary("aclnnMinimum", torch.minimum, ALL, special=0.2)),
    Case("aclnnClamp", clamp_scalars, NUMBERS),
    Case("aclnnClampTensor", clamp_tensors, NUMBERS),
    clamp_one("aclnnClampMin", "min", False, False),
    clamp_one("aclnnClampMinTensor", "min", True, False),
    clamp_one("aclnnInplaceClampMinTensor", "min", True, True),
    clamp_one("aclnnClampMax", "max", False, False),
    clamp_one("aclnnInplaceClampMax", "max", False, True),
    clamp_one("aclnnClampMaxTensor", "max", True, False),
    clamp_one("aclnnInplaceClampMaxTensor", "max", True, True),
    Case("aclnnPowTensorTensor", power_of_tensors(False), NUMBERS),
    Case("aclnnInplacePowTensorTensor", power_of_tensors(True), NUMBERS),
    Case("aclnnPowTensorScalar", power_of_scalar(False), NUMBERS),
    Case("aclnnInplacePowTensorScalar", power_of_scalar(True), NUMBERS),
    Case("aclnnPowScalarTensor", power_by_tensor, NUMBERS),
    with_product("aclnnAddcmul", torch.addcmul, False, NUMBERS),
    with_product("aclnnInplaceAddcmul", torch.addcmul, True, NUMBERS),
    with_product("aclnnAddcdiv", torch.addcdiv, False, ALL_FLOATS),
    with_product("aclnnInplaceAddcdiv", torch.addcdiv, True, ALL_FLOATS),
    interpolation("aclnnLerp", True, False),
    interpolation("aclnnInplaceLerp", True, True),
    interpolation("aclnnLerps", False, False),
    interpolation("aclnnInplaceLerps", False, True),
]
