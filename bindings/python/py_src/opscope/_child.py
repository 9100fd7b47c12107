"""The command line in a process of its own, beside this one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ._errors import UsageError

# The child looks for packages where this process found them, however it came to know of these places.
_SCRIPT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from opscope.__main__ import main; sys.exit(main())"
)


def command(arguments: Sequence[str]) -> list[str]:
    """The words that start a command of Opscope in another process."""
    if not sys.executable:
        message = "sys.executable is empty: expected the path of a Python, which runs `opscope` beside this process"
        raise UsageError(message, code="usage")
    return [sys.executable, "-c", _SCRIPT, json.dumps(sys.path), *arguments]
