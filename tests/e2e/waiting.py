"""Waiting for what another process does: it ends when that is there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

# So long that a machine which is busy with other work comes to it, and less than what counts as hung.
SECONDS_MAX = 600
SECONDS_BETWEEN_CHECKS = 0.05


def wait_for(condition: Callable[[], object], expected: str, process: subprocess.Popen | None = None) -> None:
    """Waits until the condition holds; a process that has to bring it about must not end before."""
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert process is None or process.poll() is None, f"the process ended without {expected}"
        assert time.monotonic() < end, f"{expected} did not come within {SECONDS_MAX} s"
        time.sleep(SECONDS_BETWEEN_CHECKS)
