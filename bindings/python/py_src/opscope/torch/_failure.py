"""The report of an operator that raised: its arguments, and the program's call."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable
from typing import Any

import torch

from .._argument import reason, shown

__all__ = ["add_note", "notes", "reason", "tensors"]

# Maximum number of described tensors in a list, and of stack lines.
_N_ITEMS_MAX = 64
_N_FRAMES_MAX = 60
_HERE = os.path.dirname(os.path.abspath(__file__))


def notes(target: Any, args: Iterable[Any], kwargs: dict[str, Any], error: BaseException, *, source: str) -> str:
    """The Python part of a failure report: source, non-tensor arguments, the stack."""
    lines = [f"source: {source}"] if source else []
    for name in _written(target):
        lines.append(
            f"argument {name} is written by the operator: it may contain part of the result "
            "instead of the value that the operator read"
        )
    lines += [f"argument {name}: {text}" for name, text in _arguments(target, args, kwargs)]
    lines.append("python stack (most recent call last):")
    lines += _stack(error)
    return "\n".join(lines)


def tensors(args: Iterable[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among arguments, in order, with lists flattened."""
    return [item for given in (*args, *kwargs.values()) for item in _flat(given)]


def add_note(error: BaseException, text: str) -> None:
    """Adds a note to a printed error, from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(text)


def _flat(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (tuple, list)):
        return [item for part in given for item in _flat(part)]
    return []


def _written(target: Any) -> list[str]:
    schema = getattr(target, "_schema", None)
    if schema is None:
        return []
    return [arg.name for arg in schema.arguments if arg.alias_info is not None and arg.alias_info.is_write]


def _arguments(target: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> list[tuple[str, str]]:
    """Every argument as text: values of non-tensors, and descriptions of tensors."""
    schema = getattr(target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    told = []
    for i, given in enumerate(args):
        told.append((names[i] if i < len(names) else str(i), _text(given)))
    return told + [(name, _text(given)) for name, given in kwargs.items()]


def _text(given: Any) -> str:
    if isinstance(given, torch.Tensor):
        kind = type(given).__name__
        return f"{kind} {str(given.dtype).removeprefix('torch.')} {list(given.shape)} {given.device}"
    if isinstance(given, (tuple, list)) and any(isinstance(item, torch.Tensor) for item in given):
        more = [] if len(given) <= _N_ITEMS_MAX else [f"... {len(given)} in all"]
        return "[" + ", ".join([*map(_text, given[:_N_ITEMS_MAX]), *more]) + "]"
    return shown(given)


def _stack(error: BaseException) -> list[str]:
    """Calls from the program's first line to the raising one, without this package's."""
    trace = error.__traceback__
    calls = [*traceback.extract_stack(trace.tb_frame if trace is not None else None)[:-1]]
    calls += traceback.extract_tb(trace)
    own = [call for call in calls if not os.path.abspath(call.filename).startswith(_HERE)]
    shown = [f"  {call.filename}:{call.lineno} {call.name}: {call.line or ''}".rstrip(": ") for call in own]
    n_more = len(shown) - _N_FRAMES_MAX
    return [f"  ({n_more} more)", *shown[-_N_FRAMES_MAX:]] if n_more > 0 else shown
