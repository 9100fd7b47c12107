"""Operators that one engine lacks a kernel for are computed by the other one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import aclnn
import pytest

SCRIPT = """
import torch
import aclnn

x = torch.rand(3, 4, dtype=torch.float64)
names = ["tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "exp", "relu"]
for name in names:
    operand = x + 1 if name == "acosh" else x
    out = torch.zeros_like(x)
    aclnn.call(f"aclnn{name.capitalize()}", operand, out)
    expected = getattr(torch, name)(operand)
    assert torch.allclose(out, expected, rtol=1e-14, atol=0), name
out = torch.zeros_like(x)
aclnn.call("aclnnAtan2", x, x.flip(0), out)
assert torch.allclose(out, torch.atan2(x, x.flip(0)), rtol=1e-14, atol=0)
print("computed")
"""


@pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")
@pytest.mark.parametrize("has_library", [False, True])
def test_float64_goes_to_the_engine_that_has_it(has_library: bool) -> None:
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"OPSCOPE_ACLNN_ENGINE": "auto", "PYTHONPATH": here}
    for name in ("OPSCOPE_ENGINE", "OPSCOPE_ENGINE_LIB", "ORT_DYLIB_PATH"):
        environment.pop(name, None)
    if has_library:
        # A place to look, and no choice: a named library would be the only engine.
        found = importlib.util.find_spec("onnxruntime")
        assert found is not None and found.origin is not None
        libraries = Path(found.origin).parent.glob("capi/libonnxruntime.so*")
        environment["ORT_DYLIB_PATH"] = str(next(libraries))
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "computed" in done.stdout, done.stderr[-2000:]
