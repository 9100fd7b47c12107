"""Exceptions of the package, each with a code.

Some are also subclasses of Python's own, so that `except FileNotFoundError` and `except ValueError`
work as expected.
"""

from __future__ import annotations

import os
from typing import Any

from ._visible import visible

# Exit codes of the command line.
USAGE = 2
UNREADABLE = 3


class OpscopeError(Exception):
    """An error of Opscope.

    `code` is a word for programs, `exit_code` that of the command line. For a file error, `path`
    names the file; for wrong content, `offset` is the byte, and `expected` and `found` are the
    expected and actual content.
    """

    exit_code: int = UNREADABLE

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        path: str | os.PathLike[str] | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        errno: int | None = None,
    ) -> None:
        message = visible(message)
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = None if path is None else os.fspath(path)
        self.offset = offset
        self.expected = expected
        self.found = found
        if isinstance(self, OSError):
            self.errno = errno
            self.filename = self.path

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("code", "path", "offset", "expected", "found", "errno")
        return (_restore, (type(self), self.message, {name: getattr(self, name, None) for name in names}))


class UsageError(OpscopeError, ValueError):
    """An invalid call, for example with an unknown layout."""

    exit_code = USAGE


class FileError(OpscopeError, OSError):
    """An operating system error for a file or directory."""


class NotFoundError(FileError, FileNotFoundError):
    """A file or directory that does not exist."""


class AccessError(FileError, PermissionError):
    """A file or directory without permission to read or write."""


class DamagedError(OpscopeError, ValueError):
    """Content that violates its format, or elements that do not fit their shape."""


class UnsupportedError(OpscopeError, ValueError):
    """Something that these elements do not support: a value, an order, another layout."""


for _kind in (OpscopeError, UsageError, FileError, NotFoundError, AccessError, DamagedError, UnsupportedError):
    # The public name of their module.
    _kind.__module__ = "opscope"

_CLASSES: dict[str, type[OpscopeError]] = {
    "usage": UsageError,
    "not_found": NotFoundError,
    "no_permission": AccessError,
    "io": FileError,
    "exists": FileError,
    "damaged": DamagedError,
    "size": DamagedError,
    "no_slot": DamagedError,
    "unknown_dtype": UnsupportedError,
    "no_value": UnsupportedError,
    "no_elements": UnsupportedError,
    "no_statistics": UnsupportedError,
    "layout": UnsupportedError,
    "safetensors": UnsupportedError,
}


def of_native(code: str, message: str, **details: Any) -> OpscopeError:
    """The exception for an error of the extension module."""
    return _CLASSES.get(code, OpscopeError)(message, code=code, **details)


def _restore(kind: type[OpscopeError], message: str, details: dict[str, Any]) -> OpscopeError:
    return kind(message, **details)
