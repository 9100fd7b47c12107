"""`opscope compare` names the fault that was planted into a model or a dump, and no other."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import faults
import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from cases import CASES
from comparing import FAILED, PARTIAL, PASSED, Found, compare, dump
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

CASES_BY_NAME = {str(case): case for case in CASES}


@dataclass(frozen=True)
class Sound:
    """A model without a fault, its inputs and its dump."""

    model: ModelProto
    inputs: dict[str, NDArray]
    dump: Path


@pytest.fixture(scope="module")
def sound(
    opscope: Binary, generated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Sound]:
    """A model by its name in `cases.py`, dumped once."""
    known: dict[str, Sound] = {}

    def lookup(name: str) -> Sound:
        if name not in known:
            case = CASES_BY_NAME[name]
            model, inputs = onnx.load(case.model_path(generated)), case.load_inputs(generated)
            known[name] = Sound(model, inputs, dump(opscope, tmp_path_factory.mktemp(name), model, inputs))
        return known[name]

    return lookup


@pytest.fixture
def against(opscope: Binary, tmp_path: Path) -> Callable[[ModelProto, Sound], Found]:
    """Dumps a variant of a sound model, and compares it with the sound one."""
    return lambda model, sound: compare(opscope, dump(opscope, tmp_path, model, sound.inputs), sound.dump)


def one_element(array: NDArray) -> NDArray:
    array.flat[array.size // 2] += np.abs(array).max() or 1
    return array


def a_tenth_less(array: NDArray) -> NDArray:
    # The largest values, such as those of a mask, stay finite.
    return array * np.asarray(0.9, array.dtype)


@pytest.mark.parametrize("name", ["digits_cnn", "resnet18", "transformer", "shapes_cnn_f16", "shapes_cnn_qdq_int8"])
def test_the_same_model_twice(opscope: Binary, sound: Callable, tmp_path: Path, name: str) -> None:
    right = sound(name)
    found = compare(opscope, dump(opscope, tmp_path, right.model, right.inputs), right.dump)
    assert (found.code, found.summary["level"], found.skips) == (PASSED, "pass", [])
    assert (found.first, found.not_passing, found.guessed) == (None, [], {})
    for side in ("target_coverage", "golden_coverage"):
        n_slots, n_compared = found.summary[side]
        assert n_compared == n_slots > 20


@pytest.mark.sampled(0.4, each="name")
@pytest.mark.parametrize(
    ("name", "weight", "reader", "slot"),
    [
        ("digits_cnn", "conv1.bias", "/conv1/Conv", "input.2"),
        ("digits_cnn", "conv2.weight", "/conv2/Conv", "input.1"),
        ("digits_cnn", "fc.weight", "/fc/Gemm", "input.1"),
        ("resnet18", "conv1.weight", "/conv1/Conv", "input.1"),
        ("resnet18", "layer2/layer2.0/downsample/downsample.0.weight",
         "/layer2/layer2.0/downsample/downsample.0/Conv", "input.1"),
        ("transformer", "tokens.weight", "/tokens/Gather", "input.0"),
        ("transformer", "layers.0/norm1.weight", "/layers.0/norm1/LayerNormalization", "input.1"),
        ("transformer", "layers.0/attn/k.weight", "/layers.0/attn/k/MatMul", "input.1"),
        ("transformer", "layers.0/attn/q.bias", "/layers.0/attn/q/Add", "input.0"),
        ("shapes_cnn_f16", "pw.weight", "node_conv2d_2", "input.1"),
        ("shapes_cnn_qdq_int8", "c3.weight_scale", "c3.weight_DequantizeLinear", "input.1"),
        ("shapes_cnn_qdq_int8", "pw.weight_scale", "pw.weight_DequantizeLinear", "input.1"),
    ],
)  # fmt: skip
def test_a_changed_weight(
    sound: Callable, against: Callable, name: str, weight: str, reader: str, slot: str
) -> None:
    right = sound(name)
    found = against(faults.change_weight(right.model, weight, one_element), right)
    assert (found.first, found.accused) == ((reader, slot, "outside"), [])
    assert found.code == FAILED


WRONG_OPERATORS = [
    ("digits_cnn", "/fc/Gemm", lambda model, name: faults.set_attribute(model, name, alpha=1.1)),
    ("digits_cnn", "/probs/Softmax", lambda model, name: faults.set_attribute(model, name, axis=0)),
    ("digits_cnn", "/conv1/Relu", lambda model, name: faults.replace_type(model, name, "LeakyRelu", alpha=0.1)),
    ("digits_cnn", "/pool1/MaxPool", lambda model, name: faults.replace_type(model, name, "AveragePool")),
    ("resnet18", "/relu/Relu", lambda model, name: faults.replace_type(model, name, "LeakyRelu", alpha=0.2)),
    ("resnet18", "/layer2/layer2.0/Add", lambda model, name: faults.replace_type(model, name, "Sub")),
    ("transformer", "/layers.0/norm2/LayerNormalization",
     lambda model, name: faults.set_attribute(model, name, epsilon=0.2)),
    ("transformer", "/layers.0/attn/Softmax", lambda model, name: faults.set_attribute(model, name, axis=2)),
    ("transformer", "/layers.0/Add", lambda model, name: faults.replace_type(model, name, "Sub")),
    ("shapes_cnn_f16", "node_linear", lambda model, name: faults.set_attribute(model, name, alpha=1.1)),
    ("shapes_cnn_f16", "node_sigmoid", lambda model, name: faults.replace_type(model, name, "Tanh")),
    ("shapes_cnn_qdq_int8", "node_linear", lambda model, name: faults.set_attribute(model, name, alpha=1.2)),
    ("shapes_cnn_qdq_int8", "node_add", lambda model, name: faults.replace_type(model, name, "Sub")),
]  # fmt: skip


@pytest.mark.sampled(0.4, each="name")
@pytest.mark.parametrize(("name", "wrong", "plant"), WRONG_OPERATORS, ids=[f"{n}-{w}" for n, w, _ in WRONG_OPERATORS])
def test_an_operator_that_computes_something_else(
    sound: Callable, against: Callable, name: str, wrong: str, plant: Callable
) -> None:
    right = sound(name)
    found = against(plant(right.model, wrong), right)
    assert (found.first, found.accused) == ((wrong, "output.0", "own"), [wrong])
    assert (found.code, found.skips) == (FAILED, [])
    assert found.name(found.summary["ranking"][0]) == wrong


def test_attributes_that_differ_are_told(sound: Callable, against: Callable) -> None:
    right, name = sound("digits_cnn"), "/probs/Softmax"
    (attribute,) = against(faults.set_attribute(right.model, name, axis=0), right).operator(name)["attributes"]
    (node,) = (node for node in right.model.graph.node if node.name == name)
    given = {attribute.name: str(attribute.i) for attribute in node.attribute}
    assert attribute == {"name": "axis", "target": "0", "golden": given.get("axis")}


def test_the_same_inputs_and_other_attributes(opscope: Binary, sound: Callable, tmp_path: Path) -> None:
    right, name = sound("digits_cnn"), "/fc/Gemm"
    changed = faults.set_attribute(right.model, name, alpha=1.5)
    target, report = dump(opscope, tmp_path, changed, right.inputs), tmp_path / "replay.json"
    command = [*opscope.command("replay", target, name, "--golden", right.dump, "--json", report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == FAILED, done.stderr
    assert done.stdout.startswith("fail: same inputs, different attributes: alpha is 1.5 here, ")
    (replayed,) = json.loads(report.read_text())["operators"]
    assert replayed["blame"] == "attributes"
    assert [attribute["name"] for attribute in replayed["attributes"]] == ["alpha"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("digits_cnn", "/conv2/Relu"),
        ("resnet18", "/layer1/layer1.1/Add"),
        ("transformer", "/layers.0/attn/k/MatMul"),
        ("transformer", "/layers.0/attn/Where"),
        ("shapes_cnn_f16", "node_conv2d_3"),
        ("shapes_cnn_qdq_int8", "node_Conv_48"),
    ],
)
@pytest.mark.parametrize("change", [one_element, a_tenth_less])
def test_a_perturbed_output(
    opscope: Binary, sound: Callable, tmp_path: Path, name: str, wrong: str, change: Callable
) -> None:
    right = sound(name)
    target = shutil.copytree(right.dump, tmp_path / "target")
    faults.perturb(target, wrong, "output.0", change)
    found = compare(opscope, target, right.dump)
    assert (found.first, found.accused, found.not_passing) == ((wrong, "output.0", "own"), [wrong], [wrong])
    assert (found.code, found.skips) == (FAILED, [])


def test_a_channel_that_is_wrong(opscope: Binary, sound: Callable, tmp_path: Path) -> None:
    right = sound("resnet18")
    target = shutil.copytree(right.dump, tmp_path / "target")
    wrong = "/layer1/layer1.0/conv1/Conv"

    def without_a_channel(array: NDArray) -> NDArray:
        array[:, 5] = 1e3
        return array

    faults.perturb(target, wrong, "output.0", without_a_channel)
    found = compare(opscope, target, right.dump)
    (slot,) = (slot for slot in found.operator(wrong)["slots"] if slot["slot"] == "output.0")
    shape = slot["target"]["shape"]
    expected = [[0, dim] if axis != 1 else [5, 6] for axis, dim in enumerate(shape)]
    assert (slot["differing"]["shape"], slot["differing"]["ranges"]) == (shape, expected)
    assert slot["differing"]["n"] == np.prod(shape) // shape[1]


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("digits_cnn", "/conv2/Conv"),
        ("resnet18", "/layer2/layer2.1/conv1/Conv"),
        ("resnet18", "/layer1/layer1.0/Add"),
        ("transformer", "/layers.0/mlp/fc1/MatMul"),
        ("transformer", "/layers.0/attn/Softmax"),
    ],
)
@pytest.mark.parametrize("is_in_target", [True, False], ids=["target", "golden"])
def test_a_pair_of_casts(
    opscope: Binary, sound: Callable, tmp_path: Path, name: str, reader: str, is_in_target: bool
) -> None:
    right = sound(name)
    other = dump(opscope, tmp_path, faults.insert_casts(right.model, reader), right.inputs)
    found = compare(opscope, *((other, right.dump) if is_in_target else (right.dump, other)))
    assert (found.first, found.accused) == ((reader, "input.0", "unknown"), [])
    assert sorted(found.suspects) == ["from_half", "to_half"]
    side = "target" if is_in_target else "golden"
    assert sorted(found.skips) == [(side, cast, None, "missing") for cast in ("from_half", "to_half")]
    assert found.guessed == {}


def test_a_division_by_zero_in_a_model(sound: Callable, against: Callable) -> None:
    right = sound("transformer")
    found = against(faults.change_constant(right.model, "/layers.0/attn/scale", 0.0), right)
    assert found.first == ("/layers.0/attn/Div", "input.1", "outside")
    assert found.accused == []
    chain = [found.name(index) for index in found.summary["non_finite_chain"]]
    assert chain[:3] == ["/layers.0/attn/Div", "/layers.0/attn/Where", "/layers.0/attn/Softmax"]
    assert found.summary["first_non_finite"] == found.summary["non_finite_chain"][0]
    producers = [operator for operator in found.operators if operator.get("non_finite") == "producer"]
    assert [producer["target"][0]["op_name"] for producer in producers] == ["/layers.0/attn/Div"]


def test_a_nan_in_a_dump(opscope: Binary, sound: Callable, tmp_path: Path) -> None:
    right = sound("resnet18")
    target = shutil.copytree(right.dump, tmp_path / "target")

    def one_nan(array: NDArray) -> NDArray:
        array.flat[7] = np.nan
        return array

    producer, propagator, absorber = (f"/layer1/layer1.0/{name}" for name in ("conv1/Conv", "relu/Relu", "conv2/Conv"))
    for operator, slots in ((producer, ["output.0"]), (propagator, ["input.0", "output.0"]), (absorber, ["input.0"])):
        for slot in slots:
            faults.perturb(target, operator, slot, one_nan)
    found = compare(opscope, target, right.dump)
    assert (found.first, found.accused) == ((producer, "output.0", "own"), [producer])
    assert [found.name(index) for index in found.summary["non_finite_chain"]] == [producer, propagator]
    assert found.operator(absorber)["non_finite"] == "absorber"
    assert found.code == FAILED


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("digits_cnn", "/conv2/Conv", "backbone_second"),
        ("digits_cnn", "/conv1/Relu", "/conv1/Activation"),
        ("resnet18", "/layer2/layer2.0/conv2/Conv", "n17"),
        ("transformer", "/layers.0/attn/k/MatMul", "key_projection"),
        ("shapes_cnn_qdq_int8", "node_Conv_48", "depthwise"),
    ],
)
def test_a_renamed_operator(sound: Callable, against: Callable, name: str, old: str, new: str) -> None:
    right = sound(name)
    found = against(faults.rename(right.model, old, new), right)
    (((partner,), how),) = found.guessed.values()
    assert (list(found.guessed), partner) == ([new], old)
    assert how in ("order", "fuzzy")
    assert (found.code, found.skips, found.not_passing) == (PASSED, [], [])


def as_it_is(model: ModelProto, _name: str) -> ModelProto:
    return model


@pytest.mark.parametrize("is_fused_in_target", [True, False], ids=["target", "golden"])
@pytest.mark.parametrize(
    ("name", "fused", "parts", "prepare", "split"),
    [
        ("digits_cnn", "/fc/Gemm", ["/fc/MatMul", "/fc/Add"], faults.turn_gemm, faults.split_gemm),
        ("digits_cnn", "/conv2/Conv", ["/conv2/product", "/conv2/Add"], as_it_is, faults.split_bias),
        ("resnet18", "/layer2/layer2.1/conv2/Conv", ["layer2_product", "layer2_bias"], as_it_is, faults.split_bias),
    ],
)
def test_a_fused_operator(
    opscope: Binary,
    sound: Callable,
    tmp_path: Path,
    name: str,
    fused: str,
    parts: list[str],
    prepare: Callable,
    split: Callable,
    is_fused_in_target: bool,
) -> None:
    right = sound(name)
    model = prepare(right.model, fused)
    for folder in (tmp_path / "whole", tmp_path / "apart"):
        folder.mkdir()
    whole = dump(opscope, tmp_path / "whole", model, right.inputs)
    apart = dump(opscope, tmp_path / "apart", split(model, fused, *parts), right.inputs)
    found = compare(opscope, *((whole, apart) if is_fused_in_target else (apart, whole)))
    (operator,) = (operator for operator in found.operators if operator["how"] == "fusion")
    names = [[one["op_name"] for one in operator[side]] for side in ("target", "golden")]
    assert names == ([[fused], parts] if is_fused_in_target else [parts, [fused]])
    assert (found.accused, found.not_passing) == ([], [])
    assert {reason for *_, reason in found.skips} <= {"inside_fusion"}
    assert found.code == (PARTIAL if found.skips else PASSED)


def test_an_output_of_which_all_that_follows_agrees(opscope: Binary, tmp_path: Path) -> None:
    """The sum of squares is the same whatever the order of the parts is."""
    dumps = []
    for side, parts in (("target", ["b", "a"]), ("golden", ["a", "b"])):
        nodes = [
            helper.make_node("Tanh", ["x"], ["a"], f"{side}/tanh"),
            helper.make_node("Sigmoid", ["x"], ["b"], f"{side}/sigmoid"),
            helper.make_node("Concat", parts, ["z"], f"{side}/concat", axis=1),
            helper.make_node("Mul", ["z", "z"], ["q"], f"{side}/square"),
            helper.make_node("ReduceSum", ["q"], ["s"], f"{side}/sum"),
        ]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("z", "s")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])], ends)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (tmp_path / side).mkdir()
        x = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
        dumps.append(dump(opscope, tmp_path / side, model, {"x": x}))
    found = compare(opscope, *dumps)
    assert found.code == FAILED and found.first is not None and found.first[0] == "target/concat"
