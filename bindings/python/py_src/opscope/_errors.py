"""Exceptions for everything that goes wrong, each with a code.

Some are of Python's own kinds as well, so that `except FileNotFoundError` and `except ValueError` catch what they
should.
"""

from __future__ import annotations

import os
from typing import Any

from ._visible import visible

# Exit codes of the command line.
USAGE = 2
UNREADABLE = 3


class OpscopeError(Exception):
    """Something that Opscope could not do.

    `code` is a word for programs, `exit_code` what the command line ends with. Where a file is at fault, `path` names
    it; where its content is, `offset` is the byte, and `expected` and `found` say what should be there and what is.
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
    """A call that makes no sense, such as an unknown layout."""

    exit_code = USAGE


class FileError(OpscopeError, OSError):
    """A file or directory that the operating system refuses."""


class NotFoundError(FileError, FileNotFoundError):
    """A file or directory that is not there."""


class AccessError(FileError, PermissionError):
    """A file or directory that may not be read or written."""


class DamagedError(OpscopeError, ValueError):
    """Content that does not follow its format, or elements that do not fit their shape."""


class UnsupportedError(OpscopeError, ValueError):
    """Something that these elements do not have: a value, an order, another layout."""


for _kind in (OpscopeError, UsageError, FileError, NotFoundError, AccessError, DamagedError, UnsupportedError):
    # Where programs find them.
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
