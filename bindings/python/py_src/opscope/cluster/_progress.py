"""The progress of a call, in one line on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from .._visible import visible

# Seconds between two lines without a terminal.
_PAUSE_SECONDS = 10.0
_CLEAR = "\r\x1b[K"
_MB = 1e6


def tell(line: str, *, to: TextIO | None = None, clear: str = "") -> None:
    """Prints a line to standard error."""
    out = to or sys.stderr
    out.write(f"{clear}opscope: {visible(line)}\n")
    out.flush()


class Progress:
    """Finished units and bytes. On a terminal the line is overwritten, elsewhere there is one every
    10 seconds."""

    def __init__(self, n_units: int, n_bytes: int) -> None:
        self._n_units, self._n_bytes = n_units, n_bytes
        self._n_done = self._bytes_done = self._bytes_old = 0
        self._start = self._last = time.monotonic()
        self._has_begun = False
        # Stored, because standard error is redirected while Ray may write to it.
        self._out = sys.stderr
        self._is_terminal = self._out.isatty()

    def take(self, n_bytes: int, *, is_old: bool = False) -> None:
        """Counts a unit that is done, now or by an earlier call."""
        self._n_done += 1
        self._bytes_done += n_bytes
        # These bytes were not read now, so they do not count for the rate.
        self._bytes_old += n_bytes if is_old else 0

    def begin(self) -> None:
        """Records that the first task is running; the rate starts here."""
        if not self._has_begun:
            self._has_begun, self._start = True, time.monotonic()

    def show(self) -> None:
        """Shows the progress if it is time."""
        now = time.monotonic()
        if self._is_terminal:
            self._out.write(f"{_CLEAR}opscope: {self._words(now)}")
            self._out.flush()
        elif now - self._last >= _PAUSE_SECONDS:
            self._last = now
            tell(self._words(now), to=self._out)

    def tell(self, line: str) -> None:
        """Prints a line above the progress."""
        tell(line, to=self._out, clear=_CLEAR if self._is_terminal else "")

    def end(self) -> None:
        """Prints the final count."""
        self.tell(self._words(time.monotonic()))

    def _words(self, now: float) -> str:
        done = (self._bytes_done - self._bytes_old) / _MB
        seconds = max(now - self._start, 1e-3)
        return (
            f"{self._n_done}/{self._n_units} units, {self._bytes_done / _MB:.0f}/{self._n_bytes / _MB:.0f} MB,"
            f" {done / seconds:.0f} MB/s"
        )
