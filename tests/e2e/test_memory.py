"""A dump needs little memory in addition to the model's, however many steps and however large the tensors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from onnx import TensorProto, helper, numpy_helper

MIB = 1 << 20
N_OPERATORS = 20
# Bytes of a tensor of the large model, and of the queue between the model and its writers.
TENSOR_BYTES, QUEUE_BYTES = 192 * MIB, 32 * MIB
# The memory that allocators keep and threads use, for large tensors and for many steps.
SLACK_BYTES, STEPS_SLACK_BYTES = 48 * MIB, 32 * MIB

# A child's peak begins with the memory of the process that starts it, so that is a small one.
MEASURE = """
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def save(path: Path, nodes: list[onnx.NodeProto], shape: list[int], weights: list[onnx.TensorProto]) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "memory", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def chain(path: Path) -> Path:
    """Many small operators."""
    names = ["x", *(f"v{i}" for i in range(N_OPERATORS - 1)), "y"]
    pairs = zip(names, names[1:], strict=False)
    return save(path, [helper.make_node("Neg", [a], [b], name=b) for a, b in pairs], [4], [])


def large(path: Path) -> Path:
    """Three operators with large outputs, and one that reduces them."""
    shape = numpy_helper.from_array(np.array([TENSOR_BYTES // 4], np.int64), "shape")
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["a"], name="expand"),
        helper.make_node("Neg", ["a"], ["b"], name="neg"),
        helper.make_node("Neg", ["b"], ["c"], name="neg_again"),
        helper.make_node("ReduceMax", ["c"], ["y"], name="max", keepdims=1),
    ]
    return save(path, nodes, [1], [shape])


def peak(opscope: Binary, model: Path, folder: Path, *options: object) -> int:
    """The most memory that a dump of the model ever has, in bytes."""
    command = opscope.command("dump", model, "--seed", 0, "--no-baseline", *options)
    measured = folder / "measured"
    with open(folder / "printed", "w+") as printed:
        done = subprocess.run([sys.executable, "-S", "-c", MEASURE, measured, *command], stdout=printed, stderr=printed)
        printed.seek(0)
        assert done.returncode == 0, printed.read(2000)
    return int(measured.read_text()) * 1024


STATS, RANGES, DRY = ["--stats"], ["--as", "bfloat16"], ["--form", "acl", "--out", "dump", "--dry-run"]
STATISTICS = ["--form", "acl", "--out", "dump", "--content", "statistics"]


@pytest.mark.parametrize("kind", [STATS, ["--as", "float16"], DRY], ids=" ".join)
def test_many_steps(opscope: Binary, tmp_path: Path, kind: list[str]) -> None:
    model = chain(tmp_path / "chain.onnx")
    few, many = (
        peak(opscope, model, tmp_path, *kind, "--json", "--queue-mib", 4, "--steps", n) for n in (1000, 4000)
    )
    assert many <= few + STEPS_SLACK_BYTES, f"{(many - few) / MIB:.0f} MiB more for more steps"


@pytest.mark.parametrize("kind", [STATS, RANGES, DRY, STATISTICS], ids=" ".join)
def test_large_tensors(opscope: Binary, tmp_path: Path, kind: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = large(tmp_path / "large.onnx")
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "other.json"
    dump = {"dump_path": str(tmp_path / "elsewhere"), "dump_list": [{"model_name": "other"}]}
    other.write_text(json.dumps({"dump": dump}))
    plain = peak(opscope, model, tmp_path, "--config", other)
    assert plain > TENSOR_BYTES
    dumped = peak(opscope, model, tmp_path, *kind, "--queue-mib", QUEUE_BYTES // MIB)
    more = dumped - plain
    assert more <= QUEUE_BYTES + SLACK_BYTES, f"{more / MIB:.0f} MiB more than without the dump"
