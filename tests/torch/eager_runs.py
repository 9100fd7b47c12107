"""Running functions under the eager dump, and checking each record against what a dispatch mode saw."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dumps
import models
import opscope.torch
import pytest
import torch
from eager_reference import Execution, Recorder
from torch import Tensor


def train(name: str, context: Any, n_steps: int = 2, optimizer: Any = torch.optim.Adam) -> list[bytes]:
    """Everything that a few steps of training leave behind."""
    case = models.CASES[name]
    torch.manual_seed(7)
    model = case.make().train()
    optimizer = optimizer(model.parameters(), lr=0.01)
    left: list[bytes] = []
    with context as dump:
        for _ in range(n_steps):
            loss = case.loss(model(*case.inputs()))
            loss.backward()
            optimizer.step()
            left.append(models.bits(loss))
            left += [models.bits(p.grad) for p in model.parameters() if p.grad is not None]
            optimizer.zero_grad()
            if dump is not None:
                dump.step()
    return left + [models.bits(value) for value in model.state_dict().values()]


def graph(root: str, step: int = 0) -> dict:
    """The description of a step."""
    return json.loads((Path(root) / ".opscope" / "graphs" / f"eager_{step}.json").read_text(encoding="utf-8"))


def operators(root: str, step: int = 0) -> list[dict]:
    return graph(root, step)["operators"]


def records(root: str, step: int = 0) -> dict[str, dumps.Record]:
    folder = Path(root) / "0" / "eager" / "1" / str(step)
    return dumps.step(folder) if folder.exists() else {}


def check_operator(operator: dict, record: dumps.Record | None, expected: Execution) -> int:
    """Compares one operator with what the reference saw; returns the number of tensors compared."""
    assert operator["op_type"] == expected.target
    assert len(operator["inputs"]) == len(expected.inputs), operator
    seen = expected.inputs + expected.outputs + expected.changed
    if record is None:
        assert not any(one and one[1] for one in seen) or is_undefined(operator), operator
        return 0
    if is_undefined(operator):
        return 0
    content = record.data()
    inputs, outputs = ([(t.shape, t.payload) for t in side] for side in (content.inputs, content.outputs))
    assert inputs == [one for one in expected.inputs if one], operator["op_name"]
    given = [one for one in expected.outputs if one]
    assert outputs[: len(given)] == given, operator["op_name"]
    # Of what is written to in place every tensor is there, changed or not.
    for one in expected.changed:
        assert one in outputs[len(given) :], operator["op_name"]
    return len(inputs) + len(outputs)


def is_undefined(operator: dict) -> bool:
    """Whether it involves uninitialised memory."""
    names = [operator["op_name"], *operator["inputs"]]
    return any(name.startswith(("empty", "new_empty")) for name in names)


def check_steps(report: dict, recorder: Recorder) -> int:
    """Compares a dump with the reference; returns the number of tensors compared."""
    assert report["first_fault"] is None and report["first_error"] is None
    n = 0
    for step, executions in enumerate(recorder.steps):
        if not executions:
            continue
        described = operators(report["root"], step)
        written = records(report["root"], step)
        assert [one["op_type"] for one in described] == [one.target for one in executions]
        for operator, execution in zip(described, executions):
            n += check_operator(operator, written.get(operator["op_name"]), execution)
    return n


def check(tmp_path: Any, function: Callable[[], Any], **options: Any) -> tuple[dict, list[dict]]:
    """Runs a function under the reference, and dumped; expects the same."""
    torch.manual_seed(3)
    with Recorder() as recorder:
        expected = function()
    torch.manual_seed(3)
    with opscope.torch.eager(tmp_path, **options, form="acl") as dump:
        found = function()
    report = dump.finish()
    check_steps(report, recorder)
    if isinstance(expected, Tensor):
        assert models.bits(expected) == models.bits(found)
    return report, operators(report["root"])


def check_rows(rows: list[dict[str, str]], wanted: list) -> None:
    """The largest and the number of elements say enough: the rest of the numbers has separate tests."""
    rows_of_content = [(row, payload) for row, (_, payload) in zip(rows, wanted) if payload]
    for row, payload in rows_of_content:
        dtype = known_dtype(row)
        if dtype is not None:
            tensor = torch.frombuffer(bytearray(payload), dtype=dtype)
            largest = next(row[key] for key in row if key.startswith("Max"))
            assert float(largest) == pytest.approx(float(tensor.max()), rel=1e-5)
            assert int(row["Count"]) == tensor.numel()


def known_dtype(row: dict[str, str]) -> torch.dtype | None:
    known = {"FLOAT": torch.float32, "INT64": torch.int64}
    names = (text.removeprefix("DT_").upper() for text in row.values())
    return next((known[name] for name in names if name in known), None)
