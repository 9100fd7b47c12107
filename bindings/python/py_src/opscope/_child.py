"""The command line in a separate process."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ._errors import UsageError

# The child searches the same places for packages as this process, however they were set.
_SCRIPT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from opscope.__main__ import main; sys.exit(main())"
)


def command(arguments: Sequence[str]) -> list[str]:
    """The words that start an Opscope command in another process."""
    if not sys.executable:
        message = "sys.executable is empty: expected the path of a Python to run `opscope` in a separate process"
        raise UsageError(message, code="usage")
    return [sys.executable, "-c", _SCRIPT, json.dumps(sys.path), *arguments]
