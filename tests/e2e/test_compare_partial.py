"""`opscope compare` with dumps of some operators: nothing is said of what they do not show."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from comparing import FAILED, PARTIAL, Found, compare, dump
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from test_compare_forms import Graph

DIGITS = Path(__file__).resolve().parents[2] / "examples/digits"
SOUND, FAULTY = "digits_cnn", "digits_cnn_transposed"
# The kernel of this one is transposed in the faulty model.
CULPRIT = "/conv2/Conv"
FORMS = ("fused", "plain")


def dumped(opscope: Binary, folder: Path, model: str, *operators: str) -> Path:
    """A dump of these operators, or of all without any."""
    out = folder / f"{model}_{len(operators)}"
    out.mkdir()
    chosen = {"model_name": model, "layer": list(operators)} if operators else {"model_name": model}
    config = {"dump": {"dump_path": str(out), "dump_mode": "all", "dump_list": [chosen]}}
    path = folder / f"{model}.json"
    path.write_text(json.dumps(config))
    images = f"image={DIGITS / 'images.npy'}"
    opscope.run("dump", DIGITS / f"{model}.onnx", "--input", images, "--config", path)
    return out


def test_a_fault_outside_of_the_chosen_types(opscope: Binary, tmp_path: Path) -> None:
    target, golden = (dumped(opscope, tmp_path, model) for model in (FAULTY, SOUND))
    found = compare(opscope, target, golden, "--op-type", "Softmax")
    # What makes its input is in both dumps, and was not compared: neither golden nor the data is accused.
    assert (found.code, found.accused) == (FAILED, [])
    assert found.first == ("/probs/Softmax", "input.0", "unknown")


@pytest.mark.parametrize("whole", ["neither", "target", "golden"])
@pytest.mark.parametrize(
    ("shown", "named", "cause"),
    [
        ((CULPRIT,), (CULPRIT, "input.1"), "outside"),
        # What made their inputs is not shown on both sides.
        (("/pool2/MaxPool",), ("/pool2/MaxPool", "input.0"), "unknown"),
        (("/conv2/Relu", "/fc/Gemm"), ("/conv2/Relu", "input.0"), "unknown"),
    ],
)
def test_a_fault_in_a_dump_of_some_operators(
    opscope: Binary, tmp_path: Path, shown: tuple[str, ...], named: tuple[str, str], cause: str, whole: str
) -> None:
    target = dumped(opscope, tmp_path, FAULTY, *(() if whole == "target" else shown))
    golden = dumped(opscope, tmp_path, SOUND, *(() if whole == "golden" else shown))
    found = compare(opscope, target, golden)
    assert (found.code, found.accused) == (FAILED, [])
    if cause != "unknown" or whole == "neither":
        assert found.first == (*named, cause)
    else:
        # The whole side shows what is between.
        assert found.first == (named[0], "output.0", cause) and CULPRIT in told(found)


def told(found: Found) -> list[str]:
    """What is named at the first divergence."""
    first = found.summary["first_divergence"]
    parting = next(one for one in found.document["partings"] if one["operator"] == first["operator"])
    return [one["op_name"] for one in (parting["name"], *parting.get("others", []))]


@pytest.mark.parametrize("part", ["target", "golden"])
@pytest.mark.parametrize("fault", ["matmul_3", "tanh_3", "matmul_5"])
def test_a_part_without_a_graph(opscope: Binary, tmp_path: Path, fault: str, part: str) -> None:
    """What it lacks is no weight of what it shows, and the graph of the other side tells what that is."""
    weight = np.random.default_rng(7).normal(size=(8, 8)).astype(np.float32) / 3
    models = [chain(weight, None), chain(weight, fault)]
    x = {"x": np.random.default_rng(8).normal(size=(4, 8)).astype(np.float32)}
    for name in ("sound", "fault"):
        (tmp_path / name).mkdir()
    golden, target = (
        dump(opscope, tmp_path / name, model, x)
        for name, model in zip(("sound", "fault"), models, strict=True)
    )
    some = tmp_path / "some"
    shutil.copytree(target if part == "target" else golden, some)
    shutil.rmtree(next(some.rglob(".opscope")))
    lacking = ("matmul_1", "tanh_3", "matmul_5", "tanh_6")
    for file in [path for path in some.rglob("*.*") if path.is_file() and path.name.split(".")[1] in lacking]:
        file.unlink()
    found = compare(opscope, *((some, golden) if part == "target" else (target, some)))
    assert found.code == FAILED
    if fault in lacking:
        assert found.summary["certainty"] == "first_difference" and fault in told(found)
    else:
        assert found.first is not None and found.first[0] == fault


def chain(weight: NDArray, fault: str | None) -> onnx.ModelProto:
    """Eight products with their activations; one of them is another one in a faulty model."""
    nodes, weights, read = [], [], "x"
    for i in range(8):
        other = weight.T if fault == f"matmul_{i}" else weight
        weights.append(numpy_helper.from_array(np.roll(np.ascontiguousarray(other), i, 0), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [read, f"w{i}"], [f"m{i}"], f"matmul_{i}"))
        kind = "Sigmoid" if fault == f"tanh_{i}" else "Tanh"
        nodes.append(helper.make_node(kind, [f"m{i}"], [f"t{i}"], f"tanh_{i}"))
        read = f"t{i}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("x", "t7")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_an_archive_lists_values_in_any_order(opscope: Binary, tmp_path: Path) -> None:
    """Golden's graph has their order: the first that differs is the first that was computed."""
    weight = np.random.default_rng(7).normal(size=(8, 8)).astype(np.float32) / 3
    read = value = np.random.default_rng(8).normal(size=(4, 8)).astype(np.float32)
    values = {}
    for i in range(8):
        value = value @ np.roll(weight, i, 0) * (2 if i == 4 else 1)
        values[f"m{i}"] = value
        values[f"t{i}"] = value = np.tanh(value)
    np.savez(tmp_path / "values.npz", **dict(reversed(values.items())))
    golden = dump(opscope, tmp_path, chain(weight, None), {"x": read})
    found = compare(opscope, tmp_path / "values.npz", golden)
    assert found.first == ("m4", "output.0", "unknown")


def test_what_an_engine_has_in_another_form(opscope: Binary, tmp_path: Path) -> None:
    """Convolutions in blocks of channels are compared with nothing, and named."""
    if opscope.engine.name != "onnxruntime":
        pytest.skip("only ONNX Runtime shows the graph that it executes")
    images = ("--input", f"image={DIGITS / 'images.npy'}")
    opscope.dump(DIGITS / f"{FAULTY}.onnx", *images, "--out", tmp_path / "target")
    opscope.dump(DIGITS / f"{SOUND}.onnx", *images, "--graph", "executed", "--out", tmp_path / "golden")
    found = compare(opscope, tmp_path / "target", tmp_path / "golden")
    assert found.summary["certainty"] == "first_difference" and CULPRIT in told(found)


def test_another_form_with_less_to_show(opscope: Binary, tmp_path: Path) -> None:
    x = np.random.default_rng(5).normal(size=(6, 8)).astype(np.float32)
    for form in FORMS:
        (tmp_path / form).mkdir()
    sides = [dump(opscope, tmp_path / form, Graph(is_fused=form == "fused").model(), {"x": x}) for form in FORMS]
    for target, golden in (sides, sides[::-1]):
        found = compare(opscope, target, without_most(golden, tmp_path / golden.parent.name / "some"))
        assert (found.summary["level"], found.first, found.accused, found.code) == ("skip", None, [], PARTIAL)
        assert found.document["is_partial"]


def without_most(tree: Path, out: Path) -> Path:
    """A copy with every third operator."""
    shutil.copytree(tree, out)
    files = sorted(path for path in out.rglob("*.*") if path.is_file() and ".opscope" not in path.parts)
    for n, path in enumerate(files):
        if n % 3:
            path.unlink()
    return out


def test_tensors_that_the_capture_did_not_write(opscope: Binary, tmp_path: Path) -> None:
    """They are named, and nobody takes them for operators that the model lacks or for finite values."""
    names = [f"op{i}" for i in range(12)]
    values = ["x", *(f"a{i}" for i in range(12))]
    types = ["Log" if i == 6 else ("Exp", "Relu")[i % 2] for i in range(12)]
    nodes = [
        helper.make_node(kind, [values[i]], [values[i + 1]], name)
        for i, (kind, name) in enumerate(zip(types, names, strict=True))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [256, 256]) for name in ("x", "a11")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    path = tmp_path / "chain.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    whole, part = tmp_path / "whole", tmp_path / "part"
    opscope.dump(path, "--seed", "1", "--out", whole)
    command = opscope.command("dump", path, "--seed", "1", "--on-error", "drop", "--out", part)
    limit = 1 << 20

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, check=False)  # noqa: PLW1509
    assert done.returncode == PARTIAL and "could not be written" in done.stderr, done.stderr
    lost = "(writing failed), of `op"
    traced = subprocess.run(opscope.command("nan", part), capture_output=True, text=True, check=False)
    assert traced.returncode == PARTIAL, traced.stdout
    assert traced.stdout.startswith("no NaN or infinity in the dumped tensors\n")
    assert "not written by the capture: " in traced.stdout and lost in traced.stdout
    for target, golden in ((part, whole), (whole, part)):
        seen = subprocess.run(opscope.command("compare", target, golden), capture_output=True, text=True, check=False)
        assert seen.returncode == PARTIAL, seen.stdout
        text = " ".join(seen.stdout.split())
        side = "the target's" if target == part else "golden's"
        assert f"note: {side} capture did not write " in text and lost in text
        # The numbers of the last operators are not those of the output.
        assert "cause at" not in text and "no such operator" not in text
