"""Dumps of values on a device and of the same values on the CPU, and how they are compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope
import opscope.torch
import pytest
import torch
from fake_device import FakeDevice, installed, step

SUMS = ("sum", "mean", "std", "l1", "l2")
# The bounds of `docs/statistics.md` for the dtypes here.
SLACK = 1e-6
STD_SLACK = 1e-5


def dumped(path: Path, run: Callable[[], Any], **options: Any) -> dict:
    with opscope.torch.eager(path, **options) as dump:
        run()
    return dump.finish()


def on_device(path: Path, run: Callable[[], Any], device: FakeDevice | None = None, **options: Any) -> dict:
    """The same with the CPU as a device, in which nothing waits before the end."""
    device = device or FakeDevice()
    with installed(device):
        with step(device), opscope.torch.eager(path, **options) as dump:
            run()
        report = dump.finish()
    assert report["n_reduced_on_device"] + report["n_copied_from_device"] > 0 or device.records_graph
    return report


def check_counts(report: dict) -> None:
    found = report["n_written"] + report["n_refused"] + report["n_dropped"] + report["n_failed"]
    assert report["n_selected"] == found
    assert report["first_fault"] is None and report["first_error"] is None


def keys(root: str) -> dict[tuple, Any]:
    return {(one.step, one.task_id, one.name, one.side, one.slot): one for one in opscope.open(root)}


def check_numbers(expected: dict, found: dict) -> int:
    """Expects equal records, counts and extremes, and sums that are near; returns the number of rows."""
    check_counts(found)
    assert found["n_written"] == expected["n_written"] and found["unseen"] == expected["unseen"]
    ours, theirs = rows(found["root"]), rows(expected["root"])
    assert len(ours) == len(theirs)
    for mine, known in zip(ours, theirs):
        names = (mine["op_name"], mine["side"], mine["slot"], mine["dtype"])
        for name in known.keys() - {"run", "time_us", "digest", "graph", "model", "load"}:
            a, b = mine[name], known[name]
            if name not in SUMS or a == b:
                assert a == b, (*names, name)
                continue
            # Of a sum near 0 only the magnitudes say how far it may be off.
            scale = known["l1"] / (1 if name in ("sum", "l1", "l2") else known["n_elements"])
            slack = STD_SLACK if name == "std" else SLACK
            assert a == pytest.approx(b, rel=slack, abs=slack * scale), (*names, name)
        # A device computes no digest; values that it did not process have one.
        assert mine["digest"] in (None, known["digest"])
    assert found["n_reduced_on_device"] == 0 or any(row["digest"] is None for row in ours)
    return len(ours)


def rows(root: str) -> list[dict]:
    """All tensors of a dump with all their numbers, in order."""
    question = "select * from tensors order by load, step, position, side, slot"
    command = [sys.executable, "-m", "opscope", "sql", question, root, "--format", "jsonl"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    return [json.loads(line) for line in text.splitlines()]


def check_elements(expected: dict, found: dict) -> int:
    check_counts(found)
    assert found["n_written"] == expected["n_written"] and found["unseen"] == expected["unseen"]
    ours, theirs = keys(found["root"]), keys(expected["root"])
    assert ours.keys() == theirs.keys()
    for key, one in ours.items():
        assert one.dtype == theirs[key].dtype, key
        assert one.numpy().tobytes() == theirs[key].numpy().tobytes(), key
    return len(ours)


CHECKS = {"stats": check_numbers, "tensor": check_elements}


def in_place() -> None:
    x = torch.linspace(-2, 2, 24).reshape(4, 6)
    y = x * 2
    y.add_(1)
    y.t_().mul_(3)
    z = y.relu()
    z[1:] = float("nan")
    z.zero_()
    torch.add(x, x, out=x)
    y.sigmoid_()
