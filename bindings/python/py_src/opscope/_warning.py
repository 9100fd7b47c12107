"""Warnings that point at the program's own line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from ._visible import visible

_PACKAGE = "opscope"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line outside this package."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(visible(message), category, stacklevel=level)
