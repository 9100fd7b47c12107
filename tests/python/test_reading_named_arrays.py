"""Directories of named arrays, as numpy's archives hold them."""

from __future__ import annotations

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
