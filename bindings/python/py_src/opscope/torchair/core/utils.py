"""The logger of the package."""

from __future__ import annotations

import logging
import os
from typing import Any

# Between warnings and errors.
EVENT_LEVEL = 35

__all__ = ["EVENT_LEVEL", "logger"]


class TorchairLogger(logging.Logger):
    """A logger with events, and with warnings that are logged once."""

    def event(self, message: object, *arguments: Any, **keywords: Any) -> None:
        """Logs something that happens once per compilation."""
        if self.isEnabledFor(EVENT_LEVEL):
            self._log(EVENT_LEVEL, message, arguments, **keywords)

    def warning_once(self, message: object, *arguments: Any, **keywords: Any) -> None:
        """Logs a warning unless the same text was logged before."""
        seen = self.__dict__.setdefault("_seen", set())
        words = (str(message), *map(str, arguments))
        if words not in seen:
            seen.add(words)
            self.warning(message, *arguments, **keywords)


def _made() -> TorchairLogger:
    logging.addLevelName(EVENT_LEVEL, "EVENT")
    found = logging.getLogger("torchair")
    # The program may have configured it before importing this package.
    is_new = found.level == logging.NOTSET
    found.__class__ = TorchairLogger
    assert isinstance(found, TorchairLogger)
    if is_new:
        found.setLevel(logging.DEBUG if os.environ.get("TORCH_COMPILE_DEBUG") == "1" else logging.ERROR)
    return found


logger = _made()
