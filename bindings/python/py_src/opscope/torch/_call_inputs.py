"""The arguments of both sides: the same tensors, copied for each."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy
from torch import Tensor

from .._argument import reason, shown
from .._errors import UsageError

# Maximum nesting depth in which tensors are searched.
_N_LEVELS_MAX = 16


@dataclass(frozen=True)
class CallInputs:
    """The arguments of one call."""

    args: tuple
    kwargs: dict[str, Any]

    def copied(self) -> CallInputs:
        """The same arguments with copied tensors, so that a side that writes to its inputs does not
        affect the other."""
        # A tensor that is passed twice is copied once.
        copies: dict[int, Any] = {id(tensor): _cloned(tensor) for tensor in tensors_in((self.args, self.kwargs))}
        try:
            args, kwargs = copy.deepcopy((self.args, self.kwargs), copies)
        except Exception as error:
            raise UsageError(
                f"inputs: each side gets copies of them, and they cannot be copied ({reason(error)}); expected "
                "tensors, numbers, texts, and lists, tuples and dictionaries of these",
                code="usage",
            ) from error
        return CallInputs(args, kwargs)

    def device_type(self) -> str:
        """The device type of the first tensor."""
        return next((tensor.device.type for tensor in tensors_in((self.args, self.kwargs))), "cpu")


def steps(inputs: Any) -> list[CallInputs]:
    """The calls in `inputs`: one, or one for each item of a list."""
    if not isinstance(inputs, list):
        return [_one("inputs", inputs)]
    if not inputs:
        raise UsageError("inputs: a list has the inputs of one step in each item, and this one is empty", code="usage")
    return [_one(f"inputs[{step}]", one) for step, one in enumerate(inputs)]


def are_equal(one: Any, other: Any) -> bool:
    """Whether two sides get the same tensors and the same other arguments."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        if (one.dtype, one.shape, one.device) != (other.dtype, other.shape, other.device):
            return False
        # NaN equals NaN here.
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, numpy.ndarray):
        return one.dtype == other.dtype and numpy.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(are_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return bool(one == other)


def _one(name: str, given: Any) -> CallInputs:
    if isinstance(given, (Tensor, numpy.ndarray)):
        return CallInputs((given,), {})
    if isinstance(given, tuple):
        return CallInputs(given, {})
    if isinstance(given, Mapping):
        if not all(isinstance(key, str) for key in given):
            raise TypeError(
                f"{name}: names of arguments are expected as keys of the dictionary, got {shown(list(given))}"
            )
        return CallInputs((), dict(given))
    raise TypeError(
        f"{name}: a tensor, a tuple of arguments, a dictionary of arguments by name, or a list with one of these for "
        f"each step is expected, got {shown(given)} ({type(given).__name__})"
    )


def tensors_in(value: Any, n_levels: int = _N_LEVELS_MAX) -> Iterator[Tensor]:
    """The tensors in lists, dictionaries and dataclasses, in order, such as a model's outputs."""
    if isinstance(value, Tensor):
        yield value
        return
    if n_levels == 0 or isinstance(value, (str, bytes)):
        return
    items: Any = ()
    # Outputs of transformers are both dictionaries and dataclasses, and omit entries that are
    # `None`.
    if isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, (list, tuple)):
        items = value
    elif is_dataclass(value) and not isinstance(value, type):
        items = (getattr(value, field.name, None) for field in fields(value))
    for item in items:
        yield from tensors_in(item, n_levels - 1)


def _cloned(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)
