"""Lets these tests use the parsers and references of the end-to-end tests, with the embedded engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The embedded engine, whatever this environment has.
os.environ["OPSCOPE_ENGINE"] = "tract"

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
pytest_plugins = ["sampling"]
