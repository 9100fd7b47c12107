"""The program's own lines in the log."""

from __future__ import annotations

import os
import sys

LEVELS = ("debug", "info", "warning", "error")
# Errors only, as the vendor's library does.
LEVEL_DEFAULT = 3


def app_log(log_level: int, log_str: str) -> None:
    """ACL_APP_LOG: a line on standard error, if its level is at least ASCEND_GLOBAL_LOG_LEVEL."""
    if not isinstance(log_level, int) or not isinstance(log_str, str):
        raise TypeError("app_log takes a number and a text")
    try:
        lowest = int(os.environ.get("ASCEND_GLOBAL_LOG_LEVEL", ""))
    except ValueError:
        lowest = LEVEL_DEFAULT
    if log_level >= lowest and sys.stderr is not None:
        name = LEVELS[log_level] if 0 <= log_level < len(LEVELS) else str(log_level)
        print(f"app: {name}: {log_str}", file=sys.stderr)
