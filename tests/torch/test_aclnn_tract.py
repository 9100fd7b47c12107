"""The tests of `test_aclnn.py` with the embedded engine: a process has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aclnn
import pytest


@pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")
def test_results_are_those_of_torch() -> None:
    tests = Path(__file__).with_name("test_aclnn.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", str(tests)]
    environment = os.environ | {"OPSCOPE_ACLNN_ENGINE": "tract"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
