"""The registry of recipes for samples, and the parts that recipes consist of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .draw import Draw
from .sample import CLOSE, Sample, Tolerance, Value

Recipe = Callable[[Draw], Sample]
RECIPES: dict[str, Recipe] = {}


def recipe(*op_types: str) -> Callable[[Recipe], Recipe]:
    """Registers a function that makes samples of these operators."""

    def register(function: Recipe) -> Recipe:
        for op_type in op_types:
            assert op_type not in RECIPES, op_type
            RECIPES[op_type] = function
        return function

    return register


def data(draw: Draw, array: NDArray) -> Value:
    """An input whose elements are free; sometimes a constant of the model."""
    return Value(array, is_constant=draw.maybe(0.2))


def control(draw: Draw, values: Any, dtype: Any = np.int64) -> Value:
    """An input that says where, or how many."""
    return Value(np.asarray(values, dtype=dtype), is_fixed=True, is_constant=draw.maybe(0.5))


def filled(draw: Draw, shape: Sequence[int], type_str: str = "T", profile: str = "") -> Value:
    """An input of the type that a type parameter represents."""
    return data(draw, draw.array(draw.dtype(type_str), shape, profile))


def sample(
    draw: Draw,
    inputs: Sequence[Value | None],
    tolerance: Tolerance = CLOSE,
    outputs: Sequence[bool] = (True,),
    **attributes: Any,
) -> Sample:
    """Attributes that are None are left out."""
    present = {key: value for key, value in attributes.items() if value is not None}
    return Sample(draw.op_type, draw.opset, list(inputs), present, tuple(outputs), tolerance)


def optional(draw: Draw, value: Any) -> Any:
    """The value, or none."""
    return value if draw.maybe() else None
