"""Directories of named arrays, as numpy's archives hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import opscope
import pytest


def test_archives_of_two_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        "conv1/input.0": rng.random((2, 3), np.float32),
        "conv1/output.0": rng.random((2, 4)).astype(np.float16),
        "layer1.0.relu": np.asfortranarray(rng.integers(0, 9, (3, 4))),
    }
    for step in (2, 10):
        (tmp_path / f"step_{step}").mkdir()
        np.savez(tmp_path / f"step_{step}" / "acts.npz", **arrays)
    dump = opscope.open(tmp_path)
    assert dump.problems == []
    found = [(record.step, record.name, record.side, record.slot) for record in dump]
    slots = [("conv1", "input", 0), ("conv1", "output", 0), ("layer1.0.relu", "output", 0)]
    assert found == [(step, *slot) for step in (2, 10) for slot in slots]
    for record, array in zip(dump, [*arrays.values()] * 2, strict=True):
        assert record.dtype == array.dtype.name
        assert np.array_equal(record.numpy(), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_single_archive(tmp_path: Path, save: object) -> None:
    path = tmp_path / "acts.npz"
    save(path, output=np.arange(3))  # type: ignore[operator]
    (record,) = opscope.open(path)
    assert (record.name, record.side, record.slot) == ("acts", "output", 0)
    assert record.numpy().tolist() == [0, 1, 2]


def test_values_in_a_database_of_onnx_runtime() -> None:
    """Each value as often as nodes made or read it, with what `sqlite3` and onnx read of its row."""
    golden = Path(__file__).resolve().parents[2] / "crates/store/tests/golden/ort_trace"
    name = "execution-trace-pid1.db"
    rows = json.loads((golden / "known.json").read_text(encoding="utf-8"))[name]["tensors"]
    known = {(row["step"] - 1, row["values"]): row for row in rows if row["dtype"] != "string"}
    dump = opscope.open(golden / name)
    assert dump.problems == []
    assert len(dump) == 2 * 35
    for record in dump:
        if record.dtype == "string":
            continue
        row = known[record.step, record.numpy().tobytes().hex()]
        assert (record.dtype, list(record.shape)) == (row["dtype"], row["shape"])
        use = f"{record.name}:{record.slot}"
        if record.op_type:
            assert use in row["producer" if record.side == "output" else "consumers"]
    (found,) = dump.find(name="relu:0", side="output", step=1)
    assert found.op_type == "Relu"
