"""A tenth of the pairs of `tests/forms`: sound forms of a network agree, and a planted fault is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "forms" / "compare_forms.py"


def test_a_tenth_of_the_pairs_of_forms(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, os.environ["OPSCOPE"], tmp_path / "forms", "--sample", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of which 0 fail" in done.stdout, done.stdout
