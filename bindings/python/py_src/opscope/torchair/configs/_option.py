"""Options: each checks and stores the assigned value.

`cfg.x = value` assigns to the option; `cfg.x` is the option itself, `cfg.x.value` the stored value
as text. This matches TorchAir, although `cfg.x == True` is then false.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from opscope._argument import shown
from opscope._warning import warn


class OptionValue:
    """One of a list of values, or anything if there is no list. Values are compared with `==`, so 1
    equals `True`."""

    def __init__(self, default: Any, optional: Sequence[Any] | None = None) -> None:
        self._default = default
        self._optional = optional
        self._value = default
        # Set by the option's node.
        self._name = "the option"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        listed = f", optional={self._optional!r}" if self._optional is not None else ""
        return f"{type(self).__name__}({self._value!r}, default={self._default!r}{listed})"

    @property
    def default(self) -> Any:
        """The value until another is assigned."""
        return self._default

    @property
    def optional(self) -> Sequence[Any] | None:
        """The allowed values, or `None`."""
        return self._optional

    @property
    def value(self) -> Any:
        """The current value as text: `"1"` and `"0"` for booleans; `None` stays `None`."""
        if self._value is None or isinstance(self._value, str):
            return self._value
        text = str(self._value)
        # By text, so that numpy booleans count too.
        return {"True": "1", "False": "0"}.get(text, text)

    @value.setter
    def value(self, value: Any) -> None:
        self._value = self._checked(value)

    @property
    def raw(self) -> Any:
        """The current value, as it was assigned."""
        return self._value

    def _checked(self, value: Any) -> Any:
        """Returns what the option stores for `value`; raises if `value` is refused."""
        if self._optional is not None and not _is_in(value, self._optional):
            raise ValueError(
                f"{self._name}: value {shown(value)} (type: {type(value)}) not in optional list {list(self._optional)!r}"
            )
        return value


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    try:
        return value in values
    except (TypeError, ValueError):
        # A value with an ambiguous comparison, such as an array, is not in the list.
        return False


class IntRangeValue(OptionValue):
    """An `int` (or `bool`) between two inclusive bounds."""

    def __init__(self, default: int | None, lowest: int, highest: int) -> None:
        super().__init__(default)
        self._lowest = lowest
        self._highest = highest

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, int):
            raise ValueError(f"{self._name}: an integer is expected, got {type(value)}")
        if not self._lowest <= value <= self._highest:
            raise ValueError(f"{self._name}: {value} is out of range [{self._lowest}, {self._highest}]")
        return value


class _RawValue(OptionValue):
    """An option whose `value` is the assigned value rather than text."""

    @property
    def value(self) -> Any:
        """The current value, as it was assigned."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = self._checked(value)


class IntListValue(_RawValue):
    """A list or tuple of `int`; `None` is the empty list."""

    def _checked(self, value: Any) -> Any:
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{self._name}: None or a list is expected, got {type(value)}")
        if not all(isinstance(item, int) for item in value):
            raise TypeError(f"{self._name}: a list of int is expected, got a list of {[type(item) for item in value]}")
        return value


class StrOptionValue(OptionValue):
    """A text, or `None`."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{self._name}: str or None is expected, got {type(value)}")
        return value


class DictOptionValue(_RawValue):
    """A dictionary, or `None`."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not isinstance(value, dict):
            raise TypeError(f"{self._name}: dict or None is expected, got {type(value)}")
        return value


class CallableValue(_RawValue):
    """A callable, or `None`."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not isinstance(value, Callable):  # type: ignore[arg-type]
            raise TypeError(f"{self._name}: a callable or None is expected, got {type(value)}")
        return value


class FileValue(OptionValue):
    """An existing regular file, or `None`. The path is kept as given."""

    def _checked(self, value: Any) -> Any:
        if value is not None and not os.path.isfile(_path(self._name, value)):
            raise FileNotFoundError(f"{self._name}: `{value}` is not found or is not a file")
        return value


def _below_home(path: str) -> str | None:
    """The path with a leading `$HOME` or `~` expanded, if it has either."""
    home = os.environ.get("HOME")
    for word in ("$HOME", "~"):
        if home and (path == word or path.startswith(f"{word}/")):
            return os.path.join(home, path[len(word) :].lstrip("/"))
    return None


class MustExistedPathValue(OptionValue):
    """An existing directory. The path is stored as given, except that a leading home directory is
    expanded, which TorchAir takes literally; the default is not checked."""

    def _checked(self, value: Any) -> Any:
        home = None if value is None else _below_home(_path(self._name, value))
        if home is not None and os.path.isdir(home):
            warn(f"{self._name}: `{value}` is `{home}` here; TorchAir takes `$HOME` and `~` literally")
            return home
        if value is None or not os.path.isdir(_path(self._name, value)):
            raise FileNotFoundError(f"{self._name}: `{value}` is not found or is not a file directory")
        return value


class MustExistedFileAddr(OptionValue):
    """An existing regular file whose name ends in `.json`, or `None`. The path is kept as given."""

    SUFFIX = ".json"

    def _checked(self, value: Any) -> Any:
        if value is None:
            return None
        path = _path(self._name, value)
        if path == "":
            raise ValueError(f"{self._name}: the path of the file cannot be empty")
        if not (path.endswith(self.SUFFIX) and os.path.isfile(path)):
            raise FileNotFoundError(f"{self._name}: `{value}` is not found or is not a '{self.SUFFIX}' file")
        return value


class ParsedValue(OptionValue):
    """A text in a special format. `parse` returns the value to store, or raises `ValueError` with a
    reason."""

    def __init__(self, default: str, parse: Callable[[str], str], example: str, *, none_is_empty: bool = False) -> None:
        super().__init__(default)
        self._parse = parse
        self._example = example
        self._none_is_empty = none_is_empty

    def _checked(self, value: Any) -> Any:
        if value is None and self._none_is_empty:
            return ""
        if not isinstance(value, str):
            raise TypeError(f"{self._name}: str is expected, got {type(value)}")
        try:
            return self._parse(value)
        except ValueError as error:
            raise ValueError(f"{self._name}: {error}; an example of the form is {self._example!r}") from None


class RealPathValue(OptionValue):
    """A path that need not exist, stored as absolute path with symbolic links resolved."""

    def _checked(self, value: Any) -> Any:
        return os.path.realpath(_path(self._name, value))


def _path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: a path is expected, got {type(value)}")
    path: Any = os.fspath(value)
    if not isinstance(path, str):
        raise TypeError(f"{name}: a path of text is expected, got {type(path)}")
    return path
