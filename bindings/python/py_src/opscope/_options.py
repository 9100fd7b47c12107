"""Early checks of option types and ranges.

A wrong type raises `TypeError`, a value out of range `UsageError`, which is a `ValueError`. Both
name the option, the expected value and the actual one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from ._argument import shown
from ._errors import UsageError


# Maximum letters of a text that a message quotes in full.
_LETTERS_MAX = 200


def _refused(name: str, value: Any, expected: str, kind: type[Exception] = TypeError) -> Exception:
    message = f"{name}: {expected} is expected, got {shown(value)} ({type(value).__name__})"
    return UsageError(message, code="usage") if kind is ValueError else kind(message)


def quoted(value: Any) -> str:
    """A value for backticks in a message: a text as it is, unless it has invisible characters."""
    return value if type(value) is str and value.isprintable() and len(value) <= _LETTERS_MAX else shown(value)


def _is_whole(value: Any) -> bool:
    # numpy integers are accepted too.
    return isinstance(value, Integral) and not isinstance(value, bool)


def boolean(name: str, value: Any) -> None:
    """Raises unless the value is a `bool`."""
    if not isinstance(value, bool):
        raise _refused(name, value, "True or False")


def whole(name: str, value: Any, lowest: int, highest: int = 2**63 - 1, *, is_optional: bool = False) -> None:
    """Raises unless the value is an integer from `lowest` to `highest`."""
    if is_optional and value is None:
        return
    extent = f"of {lowest} or more" if highest == 2**63 - 1 else f"from {lowest} to {highest}"
    expected = f"a whole number {extent}{', or None' if is_optional else ''}"
    if not _is_whole(value):
        raise _refused(name, value, expected)
    if not lowest <= value <= highest:
        raise _refused(name, value, expected, ValueError)


def number(name: str, value: Any, lowest: float, *, is_optional: bool = False) -> None:
    """Raises unless the value is a finite number of at least `lowest`."""
    if is_optional and value is None:
        return
    expected = f"a finite number of {lowest:g} or more{', or None' if is_optional else ''}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _refused(name, value, expected)
    if not lowest <= value <= sys.float_info.max:
        raise _refused(name, value, expected, ValueError)


def wholes(name: str, value: Any, lowest: int, *, is_optional: bool = False) -> list[int] | None:
    """A list of integers of at least `lowest`; raises for anything else."""
    if is_optional and value is None:
        return None
    expected = f"a list of whole numbers of {lowest} or more{', or None' if is_optional else ''}"
    items = _items(name, value, expected)
    for item in items:
        if not _is_whole(item):
            raise _refused(name, item, expected)
        if not lowest <= item < 2**63:
            raise _refused(name, item, expected, ValueError)
    return [int(item) for item in items]


def _items(name: str, value: Any, expected: str) -> list[Any]:
    # A text is not accepted as a list of its characters.
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, (Iterable, Sequence)):
        raise _refused(name, value, expected)
    return list(value)


def texts(name: str, value: Any) -> list[str]:
    """A list of texts; raises for anything else, including a single text."""
    items = _items(name, value, "a list of texts")
    for item in items:
        if not isinstance(item, str):
            raise _refused(name, item, "a list of texts")
    return items


def instance(name: str, value: Any, kind: type, expected: str) -> None:
    """Raises unless the value is a `kind` or `None`."""
    if value is not None and not isinstance(value, kind):
        raise _refused(name, value, f"{expected} or None")


def string(name: str, value: Any, *, is_optional: bool = False) -> None:
    """Raises unless the value is a text."""
    if not isinstance(value, str) and not (is_optional and value is None):
        raise _refused(name, value, f"a text{' or None' if is_optional else ''}")


def path(name: str, value: Any, *, is_optional: bool = False) -> None:
    """Raises unless the value is a text path."""
    if is_optional and value is None:
        return
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise _refused(name, value, "a path")
    if "\0" in os.fspath(value):
        raise _refused(name, value, "a path without a zero byte", ValueError)


def place(value: Any) -> str:
    """A checked path, or the displayable URL of a dump, after something was found there."""
    text = os.fspath(value)
    if "://" not in text:
        return text
    from ._native import reading

    return reading.open_url(text) or text


def paths(name: str, value: Any) -> list[Any]:
    """A list of paths, also from a single path."""
    if isinstance(value, (str, os.PathLike)):
        path(name, value)
        return [value]
    items = _items(name, value, "a path or a list of paths")
    for item in items:
        path(name, item)
    return items


def names(name: str, value: Any) -> None:
    """Raises unless the value is a list of texts."""
    if isinstance(value, str):
        return
    for item in _items(name, value, "a list of names"):
        if not isinstance(item, str):
            raise _refused(name, item, "a list of names")


def word(name: str, value: Any, words: Iterable[Any]) -> None:
    """Raises unless the value is one of some words."""
    words = list(words)
    if not any(type(value) is type(word) and value == word for word in words):
        message = f"{name} `{quoted(value)}` is none of {', '.join(map(str, words))}"
        is_kind = isinstance(value, str) or value is None
        raise UsageError(message, code="usage") if is_kind else TypeError(message)


def mapping(name: str, value: Any) -> None:
    """Raises unless the value is a mapping or `None`."""
    if value is not None and not isinstance(value, Mapping):
        raise _refused(name, value, "a dictionary or None")


def ranges(name: str, value: Any) -> None:
    """Raises unless the value is a list of (first, last) pairs, or `None`."""
    if value is None:
        return
    expected = "pairs of a first and a last number, or None"
    for pair in _items(name, value, expected):
        is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not is_pair or not all(isinstance(number, int) and not isinstance(number, bool) for number in pair):
            raise _refused(name, pair, expected)
        if not 0 <= pair[0] <= pair[1] < 2**64:
            raise _refused(name, pair, expected, ValueError)
