"""That every execution of a loaded model is like the first.

Each case runs in a separate session: the executions that measure the baseline, then its inputs, others, and its
inputs again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import reference
from binary import Binary
from cases import RUNS, Case, parameters
from compare import difference
from numpy.typing import NDArray

N_STEPS = 3


def other(array: NDArray) -> NDArray:
    """Values within the range of the given ones, so that indices stay indices."""
    turned = array.ravel()[::-1].reshape(array.shape)
    return (turned * array.dtype.type(0.5)).astype(array.dtype) if array.dtype.kind == "f" else turned


@pytest.mark.sampled(0.35, each="engine")
@pytest.mark.parametrize(("engine", "case"), parameters(RUNS), indirect=["engine"])
def test_executions_do_not_depend_on_each_other(case: Case, opscope: Binary, generated: Path, tmp_path: Path) -> None:
    sets, results = tmp_path / "sets", tmp_path / "results"
    sets.mkdir()
    own = case.load_inputs(generated)
    given = [own, {name: other(array) for name, array in own.items()}, own]
    for step, arrays in enumerate(given):
        np.savez(sets / f"{step}.npz", **arrays)
    model = case.model_path(generated)
    opscope.dump(model, "--inputs", sets, "--form", "acl", "--out", tmp_path / "dump", "--save-outputs", results)
    found = [load(results / str(step)) for step in range(N_STEPS)]
    for name in found[0]:
        assert found[0][name].tobytes() == found[2][name].tobytes(), name
    tolerance = case.tolerance_of(opscope.engine)
    for arrays, outputs in zip(given[:2], found, strict=False):
        for name, wanted in reference.outputs(model, arrays).items():
            if outputs[name].dtype == wanted.dtype:
                assert difference(outputs[name], wanted, tolerance) is None, name
            else:
                assert outputs[name].tobytes() == wanted.tobytes(), name


def load(folder: Path) -> dict[str, NDArray]:
    """By name; what numpy has no type for as its bytes."""
    entries = json.loads((folder / "outputs.json").read_text())["outputs"]
    return {entry["name"]: read(folder / entry["file"]) for entry in entries}


def read(path: Path) -> NDArray:
    return np.load(path) if path.suffix == ".npy" else np.fromfile(path, np.uint8)
