"""The numbers that devices compute, by both forms, against the core's statistics of the same elements.

The kernels run in Triton's interpreter, which has to be asked for before Triton is imported: a program of its own does.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import device_cases
import opscope
import pytest
import torch
from opscope.torch._device import rows

CASES = dict(device_cases.cases())
FORMS = ("triton", "torch")
# What sums and norms may be off by, as a part of the sum of magnitudes or of the norm. `docs/statistics.md` says so.
_SUM_BOUNDS = {
    torch.float32: 4 * 2**-24,
    torch.float16: 8 * 2**-24,
    torch.bfloat16: 8 * 2**-24,
    torch.float8_e4m3fn: 16 * 2**-24,
    torch.float8_e5m2: 16 * 2**-24,
    torch.float8_e4m3fnuz: 16 * 2**-24,
    torch.float8_e5m2fnuz: 16 * 2**-24,
}
_DOUBLE_BOUND = 1e-11
_STD_BOUND = 1e-5


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program writes."""
    folder = tmp_path_factory.mktemp("numbers")
    program = [sys.executable, "-W", "ignore", device_cases.__file__, str(folder)]
    subprocess.run(program, check=True, env={**os.environ, "TRITON_INTERPRET": "1"})
    return folder


@pytest.fixture(scope="session")
def found(folder: Path) -> dict[str, dict[str, rows.Row]]:
    """The rows of each form."""
    words = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    return {form: {name: rows.decode(row) for name, row in words[form].items()} for form in FORMS}


@pytest.fixture(scope="session")
def core(folder: Path) -> dict[str, Any]:
    """The core's statistics."""
    with opscope.open(folder / "cases.safetensors") as dump:
        return {record.tensor: record.statistics() for record in dump}


def is_near(found: float, expected: float, bound: float) -> bool:
    """Whether a number is as close as it has to be; what is not finite has to be the same."""
    if not math.isfinite(expected) or not math.isfinite(found):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    return abs(found - expected) <= bound


def is_same(found: float, expected: float) -> bool:
    """Whether two numbers are equal, with the sign of zero."""
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


def check_close(row: rows.Row, expected: Any, dtype: torch.dtype) -> None:
    """Expects counts and extremes to be the same, and sums within their bounds."""
    for name in rows.COUNTS:
        assert getattr(row, name) == getattr(expected, name), name
    assert is_same(row.min, expected.min) and is_same(row.max, expected.max)
    bound = _SUM_BOUNDS.get(dtype, _DOUBLE_BOUND)
    n_numbers = max(row.n_elements - row.n_nan, 1)
    assert is_near(row.l1, expected.l1, bound * expected.l1)
    assert is_near(row.sum, expected.sum, bound * expected.l1)
    assert is_near(row.mean, expected.mean, bound * expected.l1 / n_numbers)
    assert is_near(row.l2, expected.l2, bound * expected.l2)
    assert is_near(row.std, expected.std, _STD_BOUND * expected.std)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dtype in device_cases.NAMES])
def test_numbers_are_those_of_the_core(found: Any, core: Any, name: str, form: str) -> None:
    check_close(found[form][name], core[name], CASES[name].dtype)
