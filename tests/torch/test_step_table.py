"""`data="table"`: the statistics of a step in one file."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import opscope
import opscope.torch
import pytest
import torch


def dumped(function, *arguments: torch.Tensor, path: Path, n_steps: int = 1, **options) -> dict:
    backend = opscope.torch.backend(path, data="table", **options, form="acl")
    compiled = torch.compile(function, backend=backend, dynamic=False)
    with torch.no_grad():
        for _ in range(n_steps):
            assert torch.equal(compiled(*arguments), function(*arguments))
    report = backend.finish()
    assert not report["first_error"] and not report["first_fault"], report
    return report


def rows_of(path: Path, step: int = 0) -> list[dict[str, str]]:
    (file,) = path.glob(f"*/*/0/graph_*/*/{step}/statistics.csv")
    assert [file] == list(file.parent.iterdir())
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    return sorted(rows, key=lambda row: int(row["Timestamp"]))


def is_of(row: dict[str, str], tensor: torch.Tensor) -> bool:
    wide = tensor.double()
    wanted = {"Max Value": wide.max(), "Min Value": wide.min(), "Avg Value": wide.mean(), "l2norm": wide.norm()}
    is_right = all(math.isclose(float(row[name]), float(v), rel_tol=1e-5, abs_tol=1e-9) for name, v in wanted.items())
    shape = "x".join(map(str, tensor.shape)) or "-"
    return is_right and int(row["Count"]) == tensor.numel() and row["Shape"] == shape


@pytest.mark.parametrize("n", [3, 400])
@pytest.mark.parametrize("mode", ["output", "all"])
def test_rows_are_the_statistics_of_what_operators_read_and_give(tmp_path: Path, n: int, mode: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(n, n + 1)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.t() * 2
        return y.reshape(-1).expand(2, -1) + 1

    dumped(function, x, path=tmp_path, mode=mode)
    rows = rows_of(tmp_path)
    y = x.t() * 2
    assert {row["Op Name"] for row in rows} >= {"t", "mul", "add"}
    outputs = {row["Op Name"]: row for row in rows if row["Input/Output"] == "Output"}
    assert is_of(outputs["t"], x.t()) and is_of(outputs["mul"], y)
    assert is_of(outputs["add"], function(x))
    n_inputs = sum(row["Input/Output"] == "Input" for row in rows)
    assert n_inputs == (0 if mode == "output" else len(outputs))


def test_a_view_of_what_changes_has_numbers_of_its_own(tmp_path: Path) -> None:
    x = torch.randn(200, 200)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        before = y.view(-1)
        y.add_(1000)
        return y.view(-1) + before * 0

    dumped(function, x, path=tmp_path, mode="output")
    by_mean = [float(row["Avg Value"]) > 900 for row in rows_of(tmp_path)]
    assert by_mean[0] is False and by_mean[-1] is True


def test_freed_memory_tells_nothing(tmp_path: Path) -> None:
    x = torch.randn(300, 300)

    def function(x: torch.Tensor) -> torch.Tensor:
        for i in range(20):
            x = torch.sin(x) + i
        return x

    dumped(function, x, path=tmp_path, mode="output")
    value, rows = x, rows_of(tmp_path)
    for i in range(20):
        sin = torch.sin(value)
        value = sin + i
        assert is_of(rows[2 * i], sin) and is_of(rows[2 * i + 1], value)


def test_training_and_steps_are_read_in_order_of_execution(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    backend = opscope.torch.backend(tmp_path, data="table", form="acl")
    compiled = torch.compile(model, backend=backend, dynamic=False)
    for _ in range(2):
        compiled(torch.randn(4, 8)).sum().backward()
    report = backend.finish()
    assert not report["first_error"], report
    dump = opscope.open(report["root"])
    assert len(dump) == report["n_written"]
    times = [record.timestamp for record in dump]
    assert times == sorted(times) and len({record.model for record in dump}) == 2
    assert {record.step for record in dump} == {0, 1}
    kinds = {record.op_type for record in dump}
    assert "aten.addmm.default" in kinds


def test_what_has_no_numbers(tmp_path: Path) -> None:
    z = torch.randn(5, dtype=torch.complex64)
    dumped(lambda z: z * 2, z, path=tmp_path, mode="output")
    (row,) = rows_of(tmp_path)
    assert (row["Max Value"], row["Count"], row["Nan Count"]) == ("NA", "5", "0")
