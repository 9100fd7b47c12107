"""Processes that begin while a model is dumped: nothing of the dump runs in them, and the parent's goes on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import opscope
import pytest
from cases import DIGITS_CASE
from programs import run_program


def configure(folder: Path, name: str) -> tuple[Path, Path]:
    """An acl.json, and the directory where its dump goes."""
    dump = folder / name
    dump.mkdir()
    config = folder / f"{name}.json"
    text = {"dump": {"dump_path": str(dump), "dump_mode": "all", "dump_list": [{}]}}
    config.write_text(json.dumps(text), encoding="utf-8")
    return config, dump


def n_runs(dump: Path) -> Counter[str]:
    """How often each operator is in a dump, all of whose files are whole."""
    assert not list(dump.rglob(".opscope-tmp-*"))
    records = opscope.open(dump)
    outputs = [one for one in records if one.side == "output" and one.slot == 0]
    assert all(np.isfinite(one.numpy()).all() for one in outputs)
    return Counter(one.name for one in outputs)


@pytest.mark.parametrize("engine", ["tract", "onnxruntime"])
def test_nothing_of_a_dump_runs_in_a_fork(engine: str, tmp_path: Path) -> None:
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, **DIGITS_CASE.load_inputs(tmp_path))
    (config, parent), (config_of_child, child) = configure(tmp_path, "parent"), configure(tmp_path, "child")
    model = DIGITS_CASE.model_path(tmp_path)
    n_expected = run_program("forks.py", model, inputs, config, config_of_child, OPSCOPE_ENGINE=engine)
    of_parent, of_child = n_runs(parent), n_runs(child)
    assert len(of_parent) > 5 and set(of_parent.values()) == {n_expected}, (n_expected, of_parent)
    assert of_child.keys() == of_parent.keys() and set(of_child.values()) == {2}, of_child
