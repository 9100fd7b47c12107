"""Selecting records of a dump."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Union

from . import _options
from ._argument import shown
from ._errors import UsageError

if TYPE_CHECKING:
    from ._record import Record

Pattern = Union[str, "re.Pattern[str]", None]

_VALUES = {"side": ("input", "output"), "kind": ("operator", "parameter", "constant", "overflow_record")}


class Search:
    """The conditions on a record; `None` means no condition."""

    def __init__(
        self,
        *,
        patterns: Mapping[str, Pattern],
        values: Mapping[str, Any],
        choices: Mapping[str, Any],
    ) -> None:
        self._patterns = {name: _compiled(name, pattern) for name, pattern in patterns.items() if pattern is not None}
        self._values = {name: value for name, value in values.items() if value is not None}
        self._choices = {name: _several(name, choice) for name, choice in choices.items() if choice is not None}
        for name, known in _VALUES.items():
            _options.word(name, values[name], (None, *known))
        _options.whole("slot", values["slot"], 0, is_optional=True)

    def fits(self, record: Record) -> bool:
        """Whether a record meets all conditions."""
        return (
            all(getattr(record, name) == value for name, value in self._values.items())
            and all(getattr(record, name) in choice for name, choice in self._choices.items())
            and all(pattern.search(getattr(record, name) or "") for name, pattern in self._patterns.items())
        )


def _compiled(name: str, pattern: Pattern) -> re.Pattern[str]:
    if isinstance(pattern, re.Pattern):
        return pattern
    if not isinstance(pattern, str):
        message = f"{name}: a pattern is expected, got {shown(pattern)} ({type(pattern).__name__})"
        raise UsageError(message, code="usage")
    # Case-sensitive, and `/` is not special, on any system.
    return re.compile(fnmatch.translate(pattern))


def _several(name: str, choice: Any) -> frozenset[Any]:
    if name == "dtype":
        return frozenset((choice,) if isinstance(choice, str) else _options.texts(name, choice))
    return frozenset(_options.wholes(name, (choice,) if isinstance(choice, Integral) else choice, 0) or ())
