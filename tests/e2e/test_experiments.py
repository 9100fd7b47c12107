"""Experiments of `opscope diff`: golden's definition in the place of the target's proves what is wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from comparing import FAILED, PASSED
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from test_diff import USAGE, run_diff

RANDOM = np.random.default_rng(5)
WEIGHTS = {
    "conv1.weight": (8, 3, 3, 3),
    "conv2.weight": (8, 8, 3, 3),
    "conv2.bias": (8,),
    "scale.weight": (8, 1, 1),
    "fc.weight": (8, 5),
}


def sound_model() -> ModelProto:
    """Two convolutions with a sum around the second, and two outputs."""
    nodes = [
        helper.make_node("Conv", ["x", "conv1.weight"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["c1", "low", "high"], ["clipped"], "clip"),
        helper.make_node("Conv", ["clipped", "conv2.weight", "conv2.bias"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Elu", ["c2"], ["elu"], "elu", alpha=0.7),
        helper.make_node("Mul", ["elu", "scale.weight"], ["scaled"], "scale"),
        helper.make_node("Add", ["scaled", "clipped"], ["sum"], "sum"),
        helper.make_node("GlobalAveragePool", ["sum"], ["pooled"], "pool"),
        helper.make_node("Flatten", ["pooled"], ["features"], "flatten"),
        helper.make_node("MatMul", ["features", "fc.weight"], ["logits"], "fc"),
        helper.make_node("Softmax", ["logits"], ["probs"], "softmax"),
    ]
    weights = [
        numpy_helper.from_array(RANDOM.normal(size=shape).astype(np.float32), name) for name, shape in WEIGHTS.items()
    ]
    bounds = [numpy_helper.from_array(np.float32(value), name) for name, value in (("low", -1), ("high", 2))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])
    shapes = {"probs": ["batch", 5], "features": ["batch", 8]}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "net", [x], outputs, weights + bounds)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SOUND = sound_model()


def node(model: ModelProto, name: str) -> NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def change_weight(name: str, change: Callable[[Any], Any]) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        weight = next(weight for weight in model.graph.initializer if weight.name == name)
        elements = np.ascontiguousarray(change(numpy_helper.to_array(weight).copy()))
        weight.CopyFrom(numpy_helper.from_array(elements, name))

    return plant


def read(name: str, value: str, instead: int = 0) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        node(model, name).input[instead] = value

    return plant


def without(name: str) -> Callable[[ModelProto], None]:
    """An operator is gone; what read it reads what it read."""

    def plant(model: ModelProto) -> None:
        gone = node(model, name)
        for other in model.graph.node:
            for at, value in enumerate(other.input):
                if value == gone.output[0]:
                    other.input[at] = gone.input[0]
        model.graph.node.remove(gone)

    return plant


def without_bounds(model: ModelProto) -> None:
    del node(model, "clip").input[1:]


def another_alpha(model: ModelProto) -> None:
    node(model, "elu").attribute[0].f = 0.1


def default_alpha(model: ModelProto) -> None:
    del node(model, "elu").attribute[:]


def another_type(model: ModelProto) -> None:
    node(model, "elu").op_type = "LeakyRelu"
    node(model, "elu").attribute[0].f = 0.3


def inserted(model: ModelProto) -> None:
    model.graph.node.insert(6, helper.make_node("Tanh", ["sum"], ["planted"], "planted"))
    node(model, "pool").input[0] = "planted"


def lost_softmax(model: ModelProto) -> None:
    model.graph.node.remove(node(model, "softmax"))
    node(model, "fc").output[0] = "probs"


def exchanged_outputs(model: ModelProto) -> None:
    names = {"probs": "features", "features": "probs"}
    for one in model.graph.node:
        one.input[:] = [names.get(value, value) for value in one.input]
        one.output[:] = [names.get(value, value) for value in one.output]


def exchanged_operands(model: ModelProto) -> None:
    subtraction = node(model, "sum")
    subtraction.op_type = "Sub"
    subtraction.input[:] = ["clipped", "scaled"]


def both(*plants: Callable[[ModelProto], None]) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        for one in plants:
            one(model)

    return plant


def negative(elements: Any) -> Any:
    return -elements


def exchanged_axes(elements: Any) -> Any:
    return elements.swapaxes(2, 3)


# What is planted, and the operators that have to be named.
FAULTS: dict[str, tuple[Callable[[ModelProto], None], set[str]]] = {
    "weight": (change_weight("conv2.weight", exchanged_axes), {"conv2"}),
    "bias": (change_weight("conv2.bias", np.zeros_like), {"conv2"}),
    "weight of another shape": (change_weight("scale.weight", lambda elements: elements[:1]), {"scale"}),
    "no bounds": (without_bounds, {"clip"}),
    "attribute": (another_alpha, {"elu"}),
    "attribute left out": (default_alpha, {"elu"}),
    "type": (another_type, {"elu"}),
    "type and operands": (exchanged_operands, {"sum"}),
    "wiring": (read("sum", "c1", 1), {"sum"}),
    "missing": (without("elu"), {"elu"}),
    "inserted": (inserted, {"planted"}),
    "last lost": (lost_softmax, {"softmax"}),
    "outputs exchanged": (exchanged_outputs, {"softmax", "flatten"}),
    "two weights": (
        both(change_weight("conv1.weight", negative), change_weight("fc.weight", negative)),
        {"conv1", "fc"},
    ),
    "two of a kind": (both(without_bounds, another_alpha), {"clip", "elu"}),
}


def save(model: ModelProto, path: Path) -> Path:
    onnx.save(model, path)
    return path


def examine(opscope: Binary, tmp_path: Path, faulty: ModelProto, *args: object) -> dict[str, Any]:
    models = save(faulty, tmp_path / "faulty.onnx"), save(SOUND, tmp_path / "sound.onnx")
    report = tmp_path / "report.json"
    report.unlink(missing_ok=True)
    done = run_diff(opscope, *models, "--seed", 1, "--json", report, *args)
    assert report.exists(), done.stderr
    return {"code": done.returncode, "text": done.stdout, "stderr": done.stderr, **json.loads(report.read_text())}


def names(experiments: dict[str, Any]) -> set[str]:
    return {cause["operator"]["op_name"] for cause in experiments["causes"]}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_proven_and_repaired(opscope: Binary, tmp_path: Path, fault: str) -> None:
    plant, expected = FAULTS[fault]
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    plant(faulty)
    healed = tmp_path / "elsewhere" / "healed.onnx"
    healed.parent.mkdir()
    found = examine(opscope, tmp_path, faulty, "--repair", healed)
    experiments = found["experiments"]
    assert (found["code"], experiments["outcome"], names(experiments)) == (FAILED, "proven", expected), found["text"]
    assert found["summary"]["certainty"] == "proven"
    assert experiments["agrees_elsewhere"] is True
    if fault == "outputs exchanged":
        # The operators are right, and none is named.
        assert "first_failure" not in found["summary"]
        assert "are exchanged" in found["text"]
    else:
        first = found["summary"]["first_failure"]
        operator = found["operators"][first["operator"]]
        named = {first.get("name", {}).get("op_name")} | {name["op_name"] for name in operator["target"]}
        assert named & expected
    # Other inputs than those of the experiments, and by ONNX's own rules for models.
    onnx.checker.check_model(onnx.load(healed), full_check=True)
    again = run_diff(opscope, healed, tmp_path / "sound.onnx", "--seed", 7, "--shape", "x:2,3,8,8")
    assert again.returncode == PASSED, again.stdout


def test_what_is_sound_is_not_experimented_with(opscope: Binary, tmp_path: Path) -> None:
    found = examine(opscope, tmp_path, SOUND)
    assert (found["code"], "experiments" in found) == (PASSED, False)


def test_a_small_constant_is_proven_by_what_magnifies_it(opscope: Binary, tmp_path: Path) -> None:
    """The sum with another constant is within its limits; the logarithm of the sum is not finite."""
    models = []
    for name, epsilon in (("faulty", 0.0), ("sound", 1e-6)):
        nodes = [
            helper.make_node("Sub", ["x", "half"], ["d"], "centre"),
            helper.make_node("Relu", ["d"], ["r"], "relu"),
            helper.make_node("Add", ["r", "epsilon"], ["s"], "guard"),
            helper.make_node("Log", ["s"], ["y"], "log"),
        ]
        values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [4, 8]) for value in "xy"]
        weights = [numpy_helper.from_array(np.float32(0.5), "half"), numpy_helper.from_array(np.float32(epsilon), "epsilon")]
        graph = helper.make_graph(nodes, "net", values[:1], values[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        models.append(save(model, tmp_path / f"{name}.onnx"))
    done = run_diff(opscope, *models)
    assert done.returncode == FAILED, done.stderr
    assert "Cause at Add `guard` input.1" in done.stdout.splitlines()[0], done.stdout
    assert "\nproven: with golden's definition of Add `guard`" in done.stdout, done.stdout


def test_faults_that_cancel_each_other_are_proven_together(opscope: Binary, tmp_path: Path) -> None:
    """What the second makes agrees; what else reads the first does not."""
    models = []
    for name, factor in (("faulty", 2), ("sound", 1)):
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
            helper.make_node("MatMul", ["a", "v"], ["b"], "second"),
            helper.make_node("Tanh", ["a"], ["t"], "tanh"),
            helper.make_node("Add", ["b", "t"], ["y"], "sum"),
        ]
        values = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [8, 8]) for value in "xy"]
        elements = np.random.default_rng(3).normal(size=(2, 8, 8)).astype(np.float32)
        factors = {"w": elements[0] * np.float32(factor), "v": elements[1] / np.float32(factor)}
        weights = [numpy_helper.from_array(value, weight) for weight, value in factors.items()]
        graph = helper.make_graph(nodes, "net", values[:1], values[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        models.append(save(model, tmp_path / f"{name}.onnx"))
    report = tmp_path / "report.json"
    done = run_diff(opscope, *models, "--json", report)
    experiments = json.loads(report.read_text())["experiments"]
    assert (experiments["outcome"], names(experiments)) == ("proven", {"first", "second"}), done.stdout


def test_few_runs_prove_less(opscope: Binary, tmp_path: Path) -> None:
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    change_weight("conv2.weight", exchanged_axes)(faulty)
    for options, outcome in (
        (["--experiments", 1], "proven"),
        (["--experiments", 0], None),
        (["--no-experiments"], None),
        (["--no-replay"], None),
    ):
        found = examine(opscope, tmp_path, faulty, *options)
        assert found.get("experiments", {}).get("outcome") == outcome
        assert ("proven:" in found["text"]) == (outcome is not None)


def test_two_faults_with_too_few_runs(opscope: Binary, tmp_path: Path) -> None:
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    for name in ("conv1.weight", "conv2.weight", "fc.weight"):
        change_weight(name, negative)(faulty)
    found = examine(opscope, tmp_path, faulty, "--experiments", 3, "--repair", tmp_path / "healed.onnx")
    assert found["experiments"]["outcome"] in ("within", {"inconclusive": "the limit of runs or of time was reached"})
    assert found["summary"]["certainty"] != "proven"
    # Nothing is written that was not proven.
    assert not (tmp_path / "healed.onnx").exists()
    assert "nothing is written" in found["stderr"]


def test_weights_in_files_of_their_own(opscope: Binary, tmp_path: Path) -> None:
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    change_weight("conv2.weight", exchanged_axes)(faulty)
    for model, folder in ((faulty, "a"), (SOUND, "b")):
        (tmp_path / folder).mkdir()
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        onnx.save(copy, tmp_path / folder / "net.onnx", save_as_external_data=True, location="data", size_threshold=0)
    healed = tmp_path / "healed.onnx"
    models = tmp_path / "a/net.onnx", tmp_path / "b/net.onnx"
    done = run_diff(opscope, *models, "--seed", 1, "--repair", healed)
    assert (done.returncode, "proven:" in done.stdout) == (FAILED, True), done.stdout + done.stderr
    again = run_diff(opscope, healed, tmp_path / "b/net.onnx", "--seed", 2)
    assert again.returncode == PASSED, again.stdout


def test_a_file_is_not_overwritten(opscope: Binary, tmp_path: Path) -> None:
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    change_weight("conv2.weight", exchanged_axes)(faulty)
    models = save(faulty, tmp_path / "faulty.onnx"), save(SOUND, tmp_path / "sound.onnx")
    done = run_diff(opscope, *models, "--seed", 1, "--repair", models[0])
    assert (done.returncode, "exists already" in done.stderr) == (USAGE, True), done.stderr
    assert onnx.load(models[0]) == faulty


def test_repair_needs_two_models(opscope: Binary, tmp_path: Path) -> None:
    model = save(SOUND, tmp_path / "sound.onnx")
    opscope.dump(model, "--out", tmp_path / "dump", "--seed", 1, "--shape", "x:1,3,8,8")
    done = run_diff(opscope, model, tmp_path / "dump", "--repair", tmp_path / "healed.onnx")
    assert (done.returncode, "needs two models" in done.stderr) == (USAGE, True), done.stderr


def dump_both(opscope: Binary, tmp_path: Path, fault: str, *options: object) -> tuple[list[Path], list[Path]]:
    """The faulty and the sound model, and a dump of each."""
    faulty = onnx.ModelProto()
    faulty.CopyFrom(SOUND)
    FAULTS[fault][0](faulty)
    models, dumps = [], []
    for name, model in (("faulty", faulty), ("sound", SOUND)):
        models.append(save(model, tmp_path / f"{name}.onnx"))
        dumps.append(tmp_path / f"dump-{name}")
        opscope.dump(models[-1], "--out", dumps[-1], *options)
    return models, dumps


def compare(opscope: Binary, dumps: list[Path], *options: object, cwd: Path | None = None) -> tuple[int, str, str]:
    engine = opscope.engine.options[:-2] if opscope.engine else []
    command = opscope.command("compare", *dumps, *options, *engine)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("fault", ["attribute", "wiring", "missing", "two weights"])
def test_dumps_are_explained_with_their_models(opscope: Binary, tmp_path: Path, fault: str) -> None:
    models, dumps = dump_both(opscope, tmp_path, fault, "--seed", 3, "--shape", "x:2,3,8,8", "--steps", 2)
    healed = tmp_path / "healed.onnx"
    options = ["--model", models[0], "--golden-model", models[1], "--repair", healed]
    code, text, errors = compare(opscope, dumps, *options, "--json", "-")
    found = json.loads(text)
    assert (code, found["experiments"]["outcome"]) == (FAILED, "proven"), errors
    assert (names(found["experiments"]), found["summary"]["certainty"]) == (FAULTS[fault][1], "proven")
    again = run_diff(opscope, healed, models[1], "--seed", 7, "--shape", "x:2,3,8,8")
    assert again.returncode == PASSED, again.stdout


def test_models_are_those_of_the_records(opscope: Binary, tmp_path: Path) -> None:
    _, dumps = dump_both(opscope, tmp_path, "attribute", "--seed", 3, "--shape", "x:2,3,8,8")
    (tmp_path / "away").mkdir()
    for place in (tmp_path, tmp_path / "away"):
        code, text, errors = compare(opscope, dumps, "--experiments", cwd=place)
        assert (code, "\nproven: with golden's definition of Elu `elu`" in text) == (FAILED, True), errors
    (tmp_path / "faulty.onnx").rename(tmp_path / "away/faulty.onnx")
    save(SOUND, tmp_path / "faulty.onnx")
    code, text, errors = compare(opscope, dumps, "--experiments", "5", cwd=tmp_path)
    assert (code, text, "pass it by `--model`" in errors) == (USAGE, "", True), errors
    options = ["--model", tmp_path / "sound.onnx", "--golden-model", tmp_path / "sound.onnx"]
    code, text, errors = compare(opscope, dumps, *options)
    assert (code, text, "is not the model of the dump" in errors) == (USAGE, "", True), errors
    for unused in (["--repair", tmp_path / "healed.onnx"], ["--seed", 1]):
        code, _, errors = compare(opscope, dumps, "--experiments", "0", *unused)
        assert (code, "applies to experiments, which are not requested" in errors) == (USAGE, True), errors
    # Without a fault nothing is run, and nothing is said.
    code, text, _ = compare(opscope, [dumps[1], dumps[1]], "--experiments")
    assert (code, "proven" in text) == (PASSED, False)


def test_experiments_take_the_inputs_that_show_the_fault(opscope: Binary, tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    for step in range(7):
        scale = 1e-3 if step != 5 else 1.0
        x = RANDOM.normal(size=(1, 3, 8, 8), scale=scale).astype(np.float32)
        np.savez(tmp_path / f"inputs/{step}.npz", x=x)
    _, dumps = dump_both(opscope, tmp_path, "no bounds", "--inputs", tmp_path / "inputs")
    code, text, errors = compare(opscope, dumps, "--experiments")
    assert (code, "\nproven: with golden's definition of Clip `clip`" in text) == (FAILED, True), text + errors


def test_dumps_of_statistics_need_inputs(opscope: Binary, tmp_path: Path) -> None:
    options = ["--seed", 3, "--shape", "x:1,3,8,8"]
    _, dumps = dump_both(opscope, tmp_path, "attribute", *options, "--content", "statistics")
    code, text, _ = compare(opscope, dumps, "--experiments")
    assert (code, "no value of the input `x`" in " ".join(text.split())) == (FAILED, True), text
    code, text, _ = compare(opscope, dumps, "--experiments", *options)
    assert (code, "\nproven: with golden's definition of Elu `elu`" in text) == (FAILED, True), text
