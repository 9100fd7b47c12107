"""Training over a mesh of processes against one process: `opscope compare` puts the parts together."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import parallel_models
import pytest

pytestmark = pytest.mark.skipif("OPSCOPE" not in os.environ, reason="set OPSCOPE to the built binary")

# Activations are parts of the batch; weights are gathered, and the same on all data-parallel ranks.
# Gradients before their reduction are those of a rank's own loss.
RULE = {"operator": "*", "phase": "forward", "dims": "b[dp:varying] ..."}
NOTES = {"ranks": {"target": {"mesh": ["dp=2", "tp=2"], "tensors": [RULE]}}}
# What the forward pass computes, and what the optimizer writes. A data-parallel rank's gradients are those of the
# mean over its own part of the batch, which one process has nowhere.
FORWARD = ("aten_embedding_default", "aten_addmm_default", "aten__softmax_default", "aten_gelu_default")
OPTIMIZER = ("aten_add__Tensor",)


def compare(
    folder: Path, target: Path, golden: Path, *options: str, has_all_types: bool = False
) -> tuple[int, dict[str, Any], str]:
    (folder / "mapping.json").write_text(json.dumps(NOTES))
    arguments = ["compare", target, golden, "--json", folder / "result.json", "--force", "--strict", "--jobs", "2"]
    names = () if has_all_types else FORWARD + OPTIMIZER
    types = [text for name in names for text in ("--op-type", name)]
    done = subprocess.run(
        [os.environ["OPSCOPE"], *arguments, *types, *options], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, json.loads((folder / "result.json").read_text()), done.stdout + done.stderr


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parallel_models.run(tmp_path_factory.mktemp("golden"), mesh={})


def compared(result: dict[str, Any]) -> dict[str, str]:
    """The verdict on each operator of which outputs were compared."""
    return {one["target"][-1]["op_name"]: one["level"] for one in result["operators"] if one["level"] != "skip"}


def test_data_and_tensor_parallel_training(tmp_path: Path, golden: Path) -> None:
    target = parallel_models.run(tmp_path / "run", mesh={"dp": 2, "tp": 2})
    # Without inputs: the gradient of a key's bias is zero but for rounding, and no two runs have the same.
    code, result, text = compare(
        tmp_path, target, golden, "--mapping", str(tmp_path / "mapping.json"), "--outputs-only"
    )
    levels = compared(result)
    assert set(levels.values()) == {"pass"}, text
    # What runs on local tensors between distributed ones has no notes, and is not compared.
    assert code == 4, text
    assert {skip["reason"] for skip in result["skips"]} <= {"missing", "in_parts", "collective"}
    # Every product of the forward pass of both layers, and every parameter that the optimizer wrote.
    for layer in range(2):
        for name in ("attention.q", "attention.k", "attention.v", "attention.out", "mlp.up", "mlp.down"):
            assert f"layers.{layer}.{name}/addmm" in levels, text
    n_written = sum("/add_" in name and "train" in name for name in levels)
    assert n_written == 35, sorted(levels)


@pytest.mark.parametrize(("mesh", "has_mapping"), [({"dp": 2, "tp": 2}, True), ({"dp": 2, "tp": 2}, False), ({"tp": 2}, False)])
def test_a_whole_clean_run_passes(tmp_path: Path, golden: Path, mesh: dict[str, int], has_mapping: bool) -> None:
    target = parallel_models.run(tmp_path / "run", mesh=mesh)
    # The gradient of a key's bias is zero but for rounding, and no two runs have the same.
    options = ["--atol", "1e-8"] + (["--mapping", str(tmp_path / "mapping.json")] if has_mapping else [])
    code, result, text = compare(tmp_path, target, golden, *options, has_all_types=True)
    # Half of the operators run on local tensors without a note, and are counted as not compared.
    assert (code, result["summary"]["level"]) == (4, "skip"), text
    assert {skip["reason"] for skip in result["skips"]} <= {"missing", "missing_slot", "in_parts", "collective"}
    written = [name for name, level in compared(result).items() if "/add_" in name and "train" in name]
    assert len(written) == 35, written


def test_a_fault_in_one_shard_is_named_with_its_rank(tmp_path: Path, golden: Path) -> None:
    fault = parallel_models.Fault("parameter", "layers.1.mlp.up.weight", rank=3, step=0)
    target = parallel_models.run(tmp_path / "run", mesh={"dp": 2, "tp": 2}, fault=fault)
    # All types: the weight comes through a view, and the product behind it is the first that was compared.
    code, result, text = compare(
        tmp_path, target, golden, "--mapping", str(tmp_path / "mapping.json"), has_all_types=True
    )
    assert code == 1, text
    first = result["summary"]["first_failure"]
    assert first["cause"] == "outside", text
    operator = result["operators"][first["operator"]]
    (slot,) = [slot for slot in operator["slots"] if slot["slot"] == first["slot"]]
    # The weight is gathered over `dp` before it is used, so that all ranks with this part have it.
    places = {part["coordinates"] for part in slot["ranks"]["worst_parts"] if part["side"] == "target"}
    assert all("tp=1" in place for place in places), slot["ranks"]
    # The first element of the rank's part: half of the rows are those of `tp=1`, and half of these of `dp=1`.
    assert sorted(slot["ranks"]["worst"]) == [0, 18] and slot["metrics"]["max_abs"] > 900, slot
    assert 3 in {part["rank"] for part in slot["ranks"]["worst_parts"]}


def test_tensor_parallel_training(tmp_path: Path, golden: Path) -> None:
    # Without data-parallel ranks the dump itself has everything.
    target = parallel_models.run(tmp_path / "run", mesh={"tp": 2})
    _, result, text = compare(tmp_path, target, golden, "--outputs-only")
    levels = compared(result)
    assert set(levels.values()) == {"pass"}, text
    assert sum("/addmm" in name for name in levels) == 13, sorted(levels)
