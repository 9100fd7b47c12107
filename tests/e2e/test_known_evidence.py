"""What statistics, graphs and numbers of slots prove is used, and nothing beyond that is claimed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
NAN, INF = float("nan"), float("inf")


def run(opscope: Binary, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [opscope.path, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    shape: list[int | str],
    output: tuple[str, int] = ("y", TensorProto.FLOAT),
    weights: dict[str, np.ndarray] | None = None,
) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(output[0], output[1], shape)]
    constants = [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# What msProbe writes of a tensor, and what has to be said of the operator that makes it: NaN, infinities or nothing.
STATISTICS = {
    "finite": ({"Max": 2.0, "Min": -1.0, "Mean": 0.5, "Norm": 3.0}, None),
    "nan": ({"Max": NAN, "Min": NAN, "Mean": NAN, "Norm": NAN}, "at least 1 NaN"),
    "a mean alone": ({"Mean": NAN}, "at least 1 NaN"),
    "infinite": ({"Max": INF, "Min": -1.0, "Mean": INF, "Norm": INF}, "at least 1 Inf"),
    # Minus infinity under a finite maximum may be a mask.
    "masked": ({"Max": 2.0, "Norm": INF}, None),
    "a maximum alone": ({"Max": 2.0}, None),
}


@pytest.mark.parametrize("kind", STATISTICS)
def test_statistics_without_counts(opscope: Binary, tmp_path: Path, kind: str) -> None:
    numbers, expected = STATISTICS[kind]

    def tensor(statistics: dict[str, float]) -> dict[str, Any]:
        about = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "requires_grad": False}
        return {**about, **statistics}

    fine = tensor({"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 2.0})
    calls = {
        "Torch.relu.0.forward": {"input_args": [fine], "input_kwargs": {}, "output": [fine]},
        "Torch.exp.0.forward": {"input_args": [fine], "input_kwargs": {}, "output": [tensor(numbers)]},
    }
    folder = tmp_path / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True)
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": calls}
    (folder / "dump.json").write_text(json.dumps(dump))
    found = run(opscope, "nan", "dump", cwd=tmp_path)
    if expected is None:
        assert "produced by" not in found.stdout
    else:
        assert (found.returncode, "Torch.exp.0.forward" in found.stdout) == (1, True), found.stdout
        assert expected in found.stdout


@pytest.mark.parametrize("is_product", [False, True])
def test_an_overflow_next_to_a_mask(opscope: Binary, tmp_path: Path, is_product: bool) -> None:
    half = np.float16
    nodes = [
        node("Cast", ["x"], ["s"], name="half", to=TensorProto.FLOAT16),
        node("Add", ["s", "mask"], ["m"], name="masked"),
    ]
    if is_product:
        # Row 1 is finite and overflows; row 0 holds minus infinity.
        mask, weights = np.array([[-INF, 0], [0, 0]], half), {"big": np.full((2, 2), 3000, half)}
        nodes.append(node("MatMul", ["m", "big"], ["y"], name="scale"))
    else:
        mask, weights = np.array([[-INF, 0], [0, -INF]], half), {"big": np.array(3000, half)}
        nodes.append(node("Mul", ["m", "big"], ["y"], name="scale"))
    save(tmp_path / "net.onnx", nodes, [2, 2], ("y", TensorProto.FLOAT16), {**weights, "mask": mask})
    for name, large in (("over", 30), ("under", 1)):
        folder = tmp_path / name
        (folder / "o").mkdir(parents=True)
        (folder / "c.json").write_text(json.dumps({"dump": {"dump_path": "o", "dump_debug": "on"}}))
        np.savez(folder / "x.npz", x=np.array([[1, 2], [large, 3]], np.float32))
        run(opscope, "dump", "../net.onnx", "--inputs", "x.npz", "--config", "c.json", cwd=folder)
        found = run(opscope, "overflow", "o", cwd=folder)
        assert ("scale" in found.stdout) == (name == "over"), found.stdout + found.stderr


@pytest.mark.parametrize("is_renamed", [False, True])
def test_arrays_go_by_the_names_of_their_values(opscope: Binary, tmp_path: Path, is_renamed: bool) -> None:
    """A value of one export belongs to its maker although another operator makes the golden elements."""
    random = np.random.default_rng(5)
    weights = {name: random.standard_normal((6, 6)).astype(np.float32) for name in ("w", "v")}
    names = dict(zip("bcde", "klmn", strict=True)) if is_renamed else {}
    named = [names.get(name, name) for name in "bcde"]
    b, c, d, e = named
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], name="first"),
        helper.make_node("Neg", ["product"], [b], name="planted"),
        helper.make_node("Relu", [b], [c], name="relu"),
        helper.make_node("Sigmoid", [c], [d], name="sigmoid"),
        helper.make_node("MatMul", [d, "v"], [e], name="last"),
    ]
    save(tmp_path / "net.onnx", nodes, [6, 6], (e, TensorProto.FLOAT), weights)
    x = random.standard_normal((6, 6)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    product = x @ weights["w"]
    relu = np.maximum(product, 0)
    sigmoid = 1 / (1 + np.exp(-relu))
    np.savez(tmp_path / "golden.npz", b=product, c=relu, d=sigmoid, e=sigmoid @ weights["v"])
    run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--out", "dump", "--no-baseline", cwd=tmp_path)
    found = run(opscope, "compare", "dump", "golden.npz", cwd=tmp_path)
    verdict = found.stdout.splitlines()[0]
    assert found.returncode == 1, found.stdout + found.stderr
    assert verdict.startswith("FAIL: output"), verdict
    # Without a name that both sides have, too little is left to pair anything.
    assert ("Nothing inside was compared" if is_renamed else "`planted`") in verdict, verdict


@pytest.mark.parametrize("has_graph", [True, False])
def test_an_input_in_neither_dump(opscope: Binary, tmp_path: Path, has_graph: bool) -> None:
    random = np.random.default_rng(0)
    weight = random.standard_normal((6, 6)).astype(np.float32)
    x = random.standard_normal((6, 6)).astype(np.float32)
    sides = []
    for name, change in (("golden", 0), ("target", 0.5)):
        folder = tmp_path / name
        (folder / "o").mkdir(parents=True)
        changed = weight.copy()
        changed[1, 2] += change
        nodes = [node("MatMul", ["x", "w"], ["h"], name="mm"), node("Tanh", ["h"], ["y"], name="tanh")]
        save(folder / "net.onnx", nodes, [6, 6], weights={"w": changed})
        np.savez(folder / "x.npz", x=x)
        entry = {"model_name": "net", "opname_blacklist": [{"name": "mm", "pos": ["input1"]}]}
        plan = {"dump_path": "o", "dump_mode": "all", "dump_level": "op", "dump_list": [entry]}
        (folder / "c.json").write_text(json.dumps({"dump": plan}))
        run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--config", "c.json", "--no-baseline", cwd=folder)
        for place in folder.rglob(".opscope"):
            if not has_graph:
                place.rename(folder / f"graph-{place.parent.name}")
        sides.append(folder / "o")
    found = run(opscope, "compare", sides[1], sides[0], cwd=tmp_path)
    assert found.returncode == 1
    assert "its input.1 is not in the dumps" in found.stdout
    assert "first difference at matmul `mm`" in found.stdout.lower()


@pytest.mark.parametrize("start", [0, 10])
def test_steps_that_are_numbered_otherwise(opscope: Binary, tmp_path: Path, start: int) -> None:
    save(tmp_path / "net.onnx", [node("Relu", ["x"], ["h"], name="relu"), node("Neg", ["h"], ["y"], name="neg")], [4])
    np.savez(tmp_path / "x.npz", x=np.array([1, 0, 2, -3], np.float32))
    for name, first in (("target", start), ("golden", 0)):
        settings = {"op_debug_mode": 0, "dump_mode": 0, "path": str(tmp_path / name), "net_name": "N", "iteration": "all"}
        settings |= {"saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0]}
        settings |= {"initial_iteration": first}
        text = json.dumps({"common_dump_settings": settings, "e2e_dump_settings": {"enable": True}})
        (tmp_path / "c.json").write_text(text)
        run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--config", "c.json", "--steps", 3, cwd=tmp_path)
    found = run(opscope, "compare", "target", "golden", cwd=tmp_path)
    assert found.returncode == 0, found.stdout
    assert ("`--step-offset 10`" in " ".join(found.stdout.split())) == (start == 10)
    # Steps that warm up have no partner; all others are those of the same place.
    shifted = run(opscope, "compare", "target", "golden", "--step-offset", start + 1, "--json", "-", cwd=tmp_path)
    result = json.loads(shifted.stdout)
    pairs = {(one["target"][-1]["step"], one["golden"][-1]["step"]) for one in result["operators"]}
    assert pairs == {(start + 1, 0), (start + 2, 1)}


@pytest.mark.parametrize("kind", ["pipe", "device", "standard output"])
def test_reports_replace_no_stream(opscope: Binary, tmp_path: Path, kind: str) -> None:
    save(tmp_path / "net.onnx", [node("Relu", ["x"], ["y"], name="relu")], [4])
    for name in ("target", "golden"):
        run(opscope, "dump", "net.onnx", "--seed", 1, "--out", name, cwd=tmp_path)
    received: list[str] = []
    path = {"device": "/dev/null", "standard output": "/dev/stdout"}.get(kind, str(tmp_path / "pipe"))
    if kind == "pipe":
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: received.append(Path(path).read_text()), daemon=True)
        reader.start()
    before = os.lstat(path).st_mode
    found = run(opscope, "compare", "target", "golden", "--quiet", "--json", path, cwd=tmp_path)
    assert (found.returncode, os.lstat(path).st_mode) == (0, before), found.stderr
    if kind == "pipe":
        reader.join(TIMEOUT_SECONDS)
    if kind != "device":
        assert json.loads(received[0] if kind == "pipe" else found.stdout)["version"] == 1
    refused = run(opscope, "compare", "target", "golden", "--xlsx", path, "--force", cwd=tmp_path)
    assert refused.returncode == 2
    assert "needs a file" in refused.stderr


def test_files_are_replaced_when_asked_only(opscope: Binary, tmp_path: Path) -> None:
    save(tmp_path / "net.onnx", [node("Relu", ["x"], ["y"], name="relu")], ["n"])
    run(opscope, "dump", "net.onnx", "--seed", 1, "--shape", "x:2", "--out", "dump", cwd=tmp_path)
    mine = tmp_path / "mine.json"
    mine.write_text("mine")
    commands = (["replay", "dump", "--all", "--json", mine], ["gears", "net.onnx", "--batch", "1,2", "--out", mine])
    for command in commands:
        refused = run(opscope, *command, cwd=tmp_path)
        assert (refused.returncode, mine.read_text()) == (2, "mine"), refused.stderr
        assert "--force" in refused.stderr


def test_the_newest_of_two_runs_in_one_place(opscope: Binary, tmp_path: Path) -> None:
    save(tmp_path / "net.onnx", [node("Relu", ["x"], ["y"], name="relu")], [4])
    run(opscope, "dump", "net.onnx", "--seed", 1, "--out", "one", cwd=tmp_path)
    for seed in (2, 1):
        before = set((tmp_path / "two").glob("*"))
        while set((tmp_path / "two").glob("*")) == before:
            run(opscope, "dump", "net.onnx", "--seed", seed, "--out", "two", cwd=tmp_path)
            # Runs of one second take the same directory, if that is free, and another one if not.
            time.sleep(0.2)
    newest = run(opscope, "compare", "two", "one", "--json", "-", cwd=tmp_path)
    result = json.loads(newest.stdout)
    assert (newest.returncode, result["summary"]["level"]) == (0, "pass")
    assert [len(one["slots"]) for one in result["operators"]] == [2]
    assert "other_run" in {one["reason"] for one in result["passed_over"]}
    older = min((tmp_path / "two").glob("*"))
    # By itself it is the run of other inputs.
    assert "other inputs" in run(opscope, "compare", older, "one", cwd=tmp_path).stdout


def test_nodes_that_are_not_sorted(opscope: Binary, tmp_path: Path) -> None:
    nodes = [node("Relu", ["h"], ["y"], name="relu"), node("Neg", ["x"], ["h"], name="neg")]
    save(tmp_path / "unsorted.onnx", nodes, [4])
    save(tmp_path / "sorted.onnx", nodes[::-1], [4])
    found = run(opscope, "dump", "unsorted.onnx", "--seed", 1, "--out", "dump", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "have been sorted" in found.stderr
    found = run(opscope, "diff", "unsorted.onnx", "sorted.onnx", "--seed", 1, cwd=tmp_path)
    assert (found.returncode, "PASS: the output agrees" in found.stdout) == (0, True), found.stdout


def test_another_command_is_meant(opscope: Binary, tmp_path: Path) -> None:
    save(tmp_path / "net.onnx", [node("Relu", ["x"], ["y"], name="relu")], [4])
    np.save(tmp_path / "images.npy", np.zeros(4, np.float32))
    for command in (["compare", "net.onnx", "net.onnx"], ["show", "net.onnx"], ["view", "net.onnx", "--no-open"]):
        found = run(opscope, *command, cwd=tmp_path)
        assert (found.returncode, "`opscope diff` compares two models" in found.stderr) == (3, True), found.stderr
    found = run(opscope, "dump", "images.npy", cwd=tmp_path)
    assert (found.returncode, "`opscope show images.npy` shows it" in found.stderr) == (3, True), found.stderr
    found = run(opscope, "diff", "net.onnx", "net.onnx", "--seed", 1, cwd=tmp_path)
    assert (found.returncode, "run in the same way" in found.stderr) == (2, True), found.stderr


@pytest.mark.parametrize("name", ["fc.weight", "onnx::MatMul_7", "val_3"])
def test_a_weight_of_any_name_is_named(opscope: Binary, tmp_path: Path, name: str) -> None:
    # Exporters give numbers to the weights that they fold or transpose.
    weight = np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32)
    for side, value in (("golden", weight), ("target", weight * np.float32(1.5))):
        nodes = [node("Relu", ["x"], ["a"], name="Relu_0"), node("MatMul", ["a", name], ["y"], name="MatMul_1")]
        save(tmp_path / f"{side}.onnx", nodes, [2, 4], weights={name: value})
        done = run(opscope, "dump", f"{side}.onnx", "--seed", 1, "--out", side, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    found = run(opscope, "compare", "target", "golden", cwd=tmp_path)
    first = found.stdout.splitlines()[0]
    assert f"Cause at MatMul `MatMul_1` input.1: the weight `{name}` differs" in first, found.stdout
