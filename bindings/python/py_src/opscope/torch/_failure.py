"""What is told about an operator that raised: its arguments, and where the program called it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable
from typing import Any

import torch

# Longest text of an argument, and most lines of a stack.
_ARGUMENT_CHARACTERS_MAX = 2000
_N_FRAMES_MAX = 60
_HERE = os.path.dirname(os.path.abspath(__file__))


def reason(error: BaseException) -> str:
    """The error in words."""
    return f"{type(error).__name__}: {error}"


def notes(target: Any, args: Iterable[Any], kwargs: dict[str, Any], error: BaseException, *, source: str) -> str:
    """The lines of the text about a failure that Python knows: source, arguments that are no tensors, the stack."""
    lines = [f"source: {source}"] if source else []
    for name in _written(target):
        lines.append(
            f"argument {name} is one that the operator writes to: it may hold part of the result, and not what the "
            "operator read"
        )
    lines += [f"argument {name}: {text}" for name, text in _arguments(target, args, kwargs)]
    lines.append("python stack (most recent call last):")
    lines += _stack(error)
    return "\n".join(lines)


def tensors(args: Iterable[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among arguments, in order, lists spread out."""
    return [one for given in (*args, *kwargs.values()) for one in _flat(given)]


def add_note(error: BaseException, text: str) -> None:
    """Adds a line to what Python prints of an error, from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(text)


def _flat(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (tuple, list)):
        return [one for part in given for one in _flat(part)]
    return []


def _written(target: Any) -> list[str]:
    schema = getattr(target, "_schema", None)
    if schema is None:
        return []
    return [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]


def _arguments(target: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> list[tuple[str, str]]:
    """Every argument in words: values of those that are no tensors, and what tensors are."""
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
    if isinstance(given, (tuple, list)):
        return "[" + ", ".join(_text(one) for one in given) + "]"
    try:
        text = repr(given)
    except Exception as error:  # noqa: BLE001
        return f"{type(given).__name__}, whose repr fails: {type(error).__name__}"
    is_long = len(text) > _ARGUMENT_CHARACTERS_MAX
    return text[:_ARGUMENT_CHARACTERS_MAX] + " …" if is_long else text


def _stack(error: BaseException) -> list[str]:
    """Calls from the program's first line to where the error was raised, without those of this package."""
    trace = error.__traceback__
    calls = [*traceback.extract_stack(trace.tb_frame if trace is not None else None)[:-1]]
    calls += traceback.extract_tb(trace)
    own = [call for call in calls if not os.path.abspath(call.filename).startswith(_HERE)]
    shown = [f"  {call.filename}:{call.lineno} {call.name}: {call.line or ''}".rstrip(": ") for call in own]
    n_more = len(shown) - _N_FRAMES_MAX
    return [f"  ({n_more} more)", *shown[-_N_FRAMES_MAX:]] if n_more > 0 else shown
