"""Values of every kind for an option, and how those of a wrong kind have to be refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opscope import _argument


class Untold:
    """An object whose text must not be requested."""

    def __repr__(self) -> str:
        raise AssertionError("asked for its text")

    __str__ = __repr__


# Values of every kind, by the kind that they are of. Each option accepts some kinds; the others are refused.
VALUES: dict[str, list[Any]] = {
    "none": [None], "bool": [True, False], "negative": [-1, -(2**70)], "whole": [3], "huge": [2**70, 10**5000],
    "float": [1.5], "endless": [math.nan, math.inf], "text": ["zz"], "zero": ["a\0b"], "bytes": [b"zz"], "object": [Untold(), ...],
    "list": [[[]], [None], [1.5], [True], [b"zz"], [Untold()]], "texts": [["zz"]], "wholes": [[3]],
    "negatives": [[-1]], "dict": [{"zz": 1}],
}  # fmt: skip


def cases(accepted: dict[str, set[str]]) -> Iterator[tuple[str, Any]]:
    """Each option with every value that is of none of its kinds."""
    for option, kinds in accepted.items():
        for kind, values in VALUES.items():
            for value in values if kind not in kinds else ():
                yield option, value


def check(function: Callable[..., Any], option: str, value: Any, arguments: dict[str, Any]) -> None:
    """Calls a function with a wrong value, which it has to refuse by name."""
    with pytest.raises((TypeError, ValueError)) as raised:
        function(**{**arguments, option: value})
    message = str(raised.value)
    assert message.startswith(option), message
    assert re.search("expected|is none of|must be|is neither a number", message), message
    # The value that was given where it is short, or else its type.
    given = value[0] if isinstance(value, list) and len(value) == 1 else value
    telling = (type(given).__name__, type(value).__name__, _argument.shown(given).strip("'"))
    assert any(word in message for word in telling), message
    assert not re.search(r"argument '|object cannot be|instance of 'Seq|Traceback|panicked", message), message
    assert len(message) < 400, message
