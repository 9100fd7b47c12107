"""The program's own lines in the log."""

from __future__ import annotations

import os
import sys
from datetime import datetime

from .. import _options
from .._visible import visible

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
# Errors only, as the vendor's library does.
LEVEL_DEFAULT = 3


def app_log(log_level: int, log_str: str) -> None:
    """ACL_APP_LOG: writes a line to the log if its level is at least `ASCEND_GLOBAL_LOG_LEVEL`.

    The log is standard error, or standard output if `ASCEND_SLOG_PRINT_TO_STDOUT` is 1.
    """
    _options.whole("log_level", log_level, -(2**31), 2**31 - 1)
    _options.string("log_str", log_str)
    if log_level < _lowest_level():
        return
    to_stdout = os.environ.get("ASCEND_SLOG_PRINT_TO_STDOUT") == "1"
    log = sys.stdout if to_stdout else sys.stderr
    level = LEVELS[log_level] if 0 <= log_level < len(LEVELS) else "EVENT"
    program = os.path.basename(sys.executable or "python")
    time = datetime.now().strftime("%Y-%m-%d-%H:%M:%S.%f")[:-3]
    caller = sys._getframe(1)
    place = f"[{caller.f_code.co_filename}:{caller.f_lineno}] {caller.f_code.co_name}"
    if log is not None:
        line = f"[{level}] APP({os.getpid()},{program}):{time} {place}: {log_str}"
        print(visible(line, keep="\n\t"), file=log)


def _lowest_level() -> int:
    try:
        return int(os.environ.get("ASCEND_GLOBAL_LOG_LEVEL", ""))
    except ValueError:
        return LEVEL_DEFAULT
