"""`python -m opscope.cluster compare|index … --on ray`, started by `opscope … --on ray`."""

from __future__ import annotations

import sys

from ._command import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
