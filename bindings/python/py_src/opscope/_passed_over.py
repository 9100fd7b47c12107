"""Files that were not read as part of a dump."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple


class PassedOver(NamedTuple):
    """A file or directory that does not belong to a dump, or is skipped."""

    path: str
    """Its path."""
    reason: str
    """The reason: `hidden`, `statistics` and so on, as in the JSON of `opscope show`."""


def passed_over_files(pairs: Iterable[tuple[str | os.PathLike[str], str]]) -> list[PassedOver]:
    """Converts the list of the extension module."""
    return [PassedOver(os.fspath(path), reason) for path, reason in pairs]
