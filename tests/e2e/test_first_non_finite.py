"""A masked attention with a NaN in its last step: the mask is not reported."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from onnx import TensorProto, helper, numpy_helper

N = 4
INF = np.float32(np.inf)
BLOCKED = np.triu(np.ones((N, N), bool), 1)
MASK = np.where(BLOCKED, -INF, np.float32(0)).astype(np.float32)
LOWEST = np.finfo(np.float32).min

Nodes = tuple[list[onnx.NodeProto], list[onnx.TensorProto]]


def constant(name: str, value: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(value, name)


def initializer() -> Nodes:
    return [helper.make_node("Add", ["s", "mask"], ["masked"], name="masking")], [constant("mask", MASK)]


def node() -> Nodes:
    made = helper.make_node("Constant", [], ["mask"], name="mask", value=constant("value", MASK))
    return [made, helper.make_node("Add", ["s", "mask"], ["masked"], name="masking")], []


def selected() -> Nodes:
    nodes = [helper.make_node("Where", ["blocked", "low", "s"], ["masked"], name="masking")]
    return nodes, [constant("blocked", BLOCKED), constant("low", np.array(-INF))]


def filled() -> Nodes:
    value = constant("value", np.array([-INF]))
    nodes = [
        helper.make_node("ConstantOfShape", ["extents"], ["full"], name="full", value=value),
        helper.make_node("Where", ["blocked", "full", "zero"], ["mask"], name="triangle"),
        helper.make_node("Add", ["s", "mask"], ["masked"], name="masking"),
    ]
    zero = constant("zero", np.zeros((), np.float32))
    return nodes, [constant("extents", np.array([N, N])), constant("blocked", BLOCKED), zero]


def computed() -> Nodes:
    nodes = [
        helper.make_node("Log", ["open"], ["mask"], name="mask"),
        helper.make_node("Add", ["s", "mask"], ["masked"], name="masking"),
    ]
    return nodes, [constant("open", (~BLOCKED).astype(np.float32))]


def finite() -> Nodes:
    mask = np.where(BLOCKED, np.float32(-65504), np.float32(0)).astype(np.float32)
    return [helper.make_node("Add", ["s", "mask"], ["masked"], name="masking")], [constant("mask", mask)]


WAYS: list[Callable[[], Nodes]] = [initializer, node, selected, filled, computed, finite]


def model(way: Callable[[], Nodes], path: Path) -> Path:
    nodes, constants = way()
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["q", "k"], ["s"], name="scores"),
            *nodes,
            helper.make_node("Softmax", ["masked"], ["p"], name="softmax", axis=-1),
            helper.make_node("MatMul", ["p", "q"], ["attended"], name="mixing"),
            helper.make_node("Log", ["level"], ["logged"], name="broken"),
            helper.make_node("Add", ["attended", "logged"], ["y"], name="last"),
        ],
        "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [N, N]) for name in ("q", "k", "level")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [N, N])],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    onnx.save(made, path)
    return path


def inputs(folder: Path, bad_step: int | None) -> Path:
    random = np.random.default_rng(0)
    for step in range(3):
        level = np.ones((N, N), np.float32)
        if step == bad_step:
            level[1, 2] = -1
        (folder / str(step)).mkdir(parents=True)
        for name, array in (("q", random.random((N, N))), ("k", random.random((N, N))), ("level", level)):
            np.save(folder / str(step) / f"{name}.npy", array.astype(np.float32))
    return folder


@pytest.mark.sampled(0.35, each="way")
@pytest.mark.parametrize("kind", ["all", "output", "stats"])
@pytest.mark.parametrize("way", WAYS)
def test_a_nan_is_told_and_a_mask_is_not(opscope: Binary, tmp_path: Path, way: Callable[[], Nodes], kind: str) -> None:
    (tmp_path / "dump").mkdir()
    dump = {"dump_path": str(tmp_path / "dump"), "dump_mode": "output", "dump_list": [{}]}
    (tmp_path / "acl.json").write_text(json.dumps({"dump": dump}))
    options = {
        "all": ("--form", "acl", "--out", tmp_path / "dump"),
        "output": ("--config", tmp_path / "acl.json"),
        "stats": ("--stats",),
    }[kind]
    given = ("--inputs", inputs(tmp_path / "bad", 2), *options)
    file = model(way, tmp_path / "attention.onnx")
    report = opscope.dump(file, *given)
    found = report["first_non_finite"]
    told = {key: found[key] for key in ("step", "graph", "op_type", "op_name", "slot", "element", "value", "nan")}
    expected = {"step": 2, "graph": "attention", "op_type": "Log", "op_name": "broken", "slot": "output.0"}
    assert told == {**expected, "element": 1 * N + 2, "value": "NaN", "nan": 1}
    assert found["origin"] == ("unknown" if kind == "output" else "computed")
    is_infinite = way is not finite
    if kind != "output":
        wanted = report["deliberate_infinities"]
        assert (wanted["operators"] >= 3) is is_infinite
        assert (wanted["first"] is not None) is is_infinite
    if kind == "stats":
        return
    (record,) = (tmp_path / "dump").rglob("run.json")
    assert json.loads(record.read_text())["first_non_finite"] == found


def test_the_report_in_words(opscope: Binary, tmp_path: Path) -> None:
    file = model(initializer, tmp_path / "attention.onnx")
    good = opscope.run("dump", file, "--stats", "--inputs", inputs(tmp_path / "good", None))
    assert "first NaN or Inf  none" in good and "intended Inf      in 6 operators" in good
    bad = opscope.run("dump", file, "--stats", "--inputs", inputs(tmp_path / "bad", 1))
    assert "first NaN or Inf  Log `broken` output.0[6] = NaN, step 1, graph `attention`: 1 NaN" in bad


def test_an_archive_given_as_one_input_points_to_the_right_option(opscope: Binary, tmp_path: Path) -> None:
    file = model(finite, tmp_path / "attention.onnx")
    np.savez(tmp_path / "all.npz", q=np.ones(1))
    for given, hint in (
        (("--input", tmp_path / "all.npz"), "use --inputs"),
        (("--input", f"q={tmp_path / 'all.npz'}"), "an archive or a directory by `--inputs`"),
        (("--input", tmp_path), "use --inputs"),
        (("--inputs", tmp_path / "q.npy"), "--input NAME=FILE"),
    ):
        command = opscope.command("dump", file, "--stats", *given)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 2 and hint in done.stderr, done.stderr


def test_the_source_of_infinities_is_named(tool: Binary, tmp_path: Path) -> None:
    """A logarithm may make a mask, and the difference of two makes a NaN."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("Log", ["r"], ["l"], "log"),
        helper.make_node("Sub", ["l", "l"], ["y"], "difference"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph(nodes, "logarithm", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", np.float32([-1, 2, 3]))
    tool.dump(tmp_path / "net.onnx", "--out", tmp_path / "dump", "--input", f"x={tmp_path}/x.npy")
    told = [
        subprocess.run(tool.command("nan", tmp_path / "dump", *options), capture_output=True, text=True).stdout
        for options in ([], ["--json"])
    ]
    assert "difference (Sub): 1 NaN from infinities; those of step 0, log (Log) may be intended" in told[0], told[0]
    (origin,) = json.loads(told[1])["non_finite"]["origins"]
    assert (origin["op_name"], origin["infinities_of"]["op_name"]) == ("difference", "log")
