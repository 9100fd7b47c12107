"""Options are looked at where they are given, and not when a model runs: type and range of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from .._argument import shown


def _refused(name: str, value: Any, expected: str, kind: type[Exception] = TypeError) -> Exception:
    return kind(f"{name}: {expected} is expected, got {shown(value)} ({type(value).__name__})")


def boolean(name: str, value: Any) -> None:
    """Raises for what is no `bool`."""
    if not isinstance(value, bool):
        raise _refused(name, value, "True or False")


def whole(name: str, value: Any, lowest: int, *, is_optional: bool = False) -> None:
    """Raises for what is no whole number from `lowest` on."""
    if is_optional and value is None:
        return
    expected = f"a whole number of {lowest} or more{', or None' if is_optional else ''}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refused(name, value, expected)
    if not lowest <= value < 2**63:
        raise _refused(name, value, expected, ValueError)


def path(name: str, value: Any) -> None:
    """Raises for what is no path of text."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise _refused(name, value, "a path")
    if "\0" in os.fspath(value):
        raise _refused(name, value, "a path without a zero byte", ValueError)


def names(name: str, value: Any) -> None:
    """Raises for what is no list of texts."""
    if isinstance(value, str):
        return
    if not isinstance(value, Iterable):
        raise _refused(name, value, "a list of names")
    for item in value:
        if not isinstance(item, str):
            raise _refused(name, item, "a list of names")


def word(name: str, value: Any, words: Iterable[Any]) -> None:
    """Raises for what is none of some words."""
    words = list(words)
    if not any(type(value) is type(one) and value == one for one in words):
        kind = ValueError if isinstance(value, str) or value is None else TypeError
        raise kind(f"{name} `{value if type(value) is str else shown(value)}` is none of {', '.join(map(str, words))}")


def mapping(name: str, value: Any) -> None:
    """Raises for what is neither a mapping nor `None`."""
    if value is not None and not isinstance(value, Mapping):
        raise _refused(name, value, "a dictionary or None")


def ranges(name: str, value: Any) -> None:
    """Raises for what are no pairs of a first and a last number, and not `None` either."""
    if value is None:
        return
    expected = "pairs of a first and a last number, or None"
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise _refused(name, value, expected)
    for pair in value:
        is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
        if not is_pair or not all(isinstance(one, int) and not isinstance(one, bool) for one in pair):
            raise _refused(name, pair, expected)
        if not 0 <= pair[0] <= pair[1] < 2**64:
            raise _refused(name, pair, expected, ValueError)
