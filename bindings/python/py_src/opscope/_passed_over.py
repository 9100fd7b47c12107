"""Files that were not read as a part of a dump."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple


class PassedOver(NamedTuple):
    """A file or directory that holds nothing of a dump, or is not looked into."""

    path: str
    """Where it is."""
    reason: str
    """The reason: `hidden`, `statistics` and so on, as in the JSON of `opscope show`."""


def passed_over_files(pairs: Iterable[tuple[str | os.PathLike[str], str]]) -> list[PassedOver]:
    """The list, from that of the extension module."""
    return [PassedOver(os.fspath(path), reason) for path, reason in pairs]
