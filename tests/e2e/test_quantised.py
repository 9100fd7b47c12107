"""Quantised models under `--quant-dumpable`: floats before, integers, and the floats that these represent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import comparing
import conftest
import dump_data
import dump_tree
import numpy as np
import pytest
import quantised_models
from binary import Binary, input_options
from cases import MODELS
from engines import ONNX_RUNTIME
from numpy.typing import NDArray
from onnxruntime.quantization import QuantFormat

QDQ_CASE = MODELS / "shapes_cnn_qdq_int8.onnx"
QDQ_INPUTS = MODELS / "shapes_cnn_qdq_int8.sample.npz"


@dataclass(frozen=True)
class Shown:
    """The records of one step by name, each with its slots."""

    types: dict[str, str]
    slots: dict[str, dict[str, NDArray]]

    def of_type(self, op_type: str) -> list[str]:
        return [name for name, found in self.types.items() if found == op_type]

    def dequantised(self, base: str) -> dict[str, NDArray]:
        name = f"{base}_DequantizeLinear"
        assert self.types[name] == "DequantizeLinear"
        return self.slots[name]


@pytest.fixture
def shown(opscope: Binary, tmp_path: Path) -> Callable[..., Shown]:
    return reader(opscope, tmp_path)


def reader(opscope: Binary, tmp_path: Path) -> Callable[..., Shown]:
    """Dumps a model, and reads everything."""

    def run(model: Path, *args: object, config: Path | None = None) -> Shown:
        out_dir, npy_dir = tmp_path / "dump", tmp_path / "npy"
        place = ("--config", config) if config else ("--form", "acl", "--out", out_dir)
        report = opscope.dump(model, *place, *args)
        records = report["records"]
        ends = [records[end] for end in ("written", "dropped", "failed")]
        assert (records["selected"], sum(ends[1:])) == (ends[0], 0)
        (step_dir,) = dump_tree.step_dirs(out_dir, model.stem).values()
        opscope.convert(step_dir, npy_dir)
        arrays = dump_tree.read_converted(npy_dir)
        types, slots = {}, {}
        n_slots = 0
        for file in dump_tree.read_step(step_dir):
            # File names replace dots; headers do not.
            name = dump_data.parse(file.path.read_bytes()).op_name
            assert name not in types
            types[name] = file.op_type
            prefix = f"{file.full_name}."
            slots[name] = {
                key.removeprefix(prefix).removesuffix(".npy"): array
                for key, array in arrays.items()
                if key.startswith(prefix)
            }
            n_slots += len(slots[name])
        assert n_slots == records["written"]
        return Shown(types, slots)

    return run


def selecting(folder: Path, mode: str, *layers: str) -> Path:
    folder.joinpath("dump").mkdir()
    rule = {"model_name": QDQ_CASE.stem, "layer": list(layers)}
    dump = {"dump_path": str(folder / "dump"), "dump_mode": mode, "dump_list": [rule]}
    path = folder / "acl.json"
    path.write_text(json.dumps({"dump": dump}))
    return path


def along_axis(numbers: NDArray, n_axes: int, axis: int) -> NDArray:
    extents = [1] * n_axes
    if numbers.ndim == 1:
        extents[axis] = -1
    return numbers.reshape(extents) if n_axes else numbers


def floats_of(slots: dict[str, NDArray], axis: int) -> NDArray:
    """Returns the values that the integers of a record represent, in float32."""
    codes, scale = slots["input.0"], slots["input.1"]
    zero = slots.get("input.2", np.zeros((), codes.dtype))
    n_axes = codes.ndim
    difference = codes.astype(np.int64) - along_axis(zero, n_axes, axis).astype(np.int64)
    return difference.astype(np.float32) * along_axis(scale, n_axes, axis)


def test_a_qdq_model_is_consistent(shown: Callable[..., Shown]) -> None:
    found = shown(QDQ_CASE, "--quant-dumpable", "--inputs", QDQ_INPUTS)
    quantising = found.of_type("QuantizeLinear")
    assert len(quantising) == 13
    for name in quantising:
        slots = found.slots[name]
        before, scale, codes = slots["input.0"], slots["input.1"], slots["output.0"]
        after = found.dequantised(name.removesuffix("_QuantizeLinear"))
        np.testing.assert_array_equal(codes, after["input.0"])
        np.testing.assert_array_equal(scale, after["input.1"])
        np.testing.assert_array_equal(slots["input.2"], after["input.2"])
        limits = np.iinfo(codes.dtype)
        is_saturated = (codes == limits.min) | (codes == limits.max)
        error = np.abs(after["output.0"].astype(np.float64) - before)
        assert np.all(is_saturated | (error <= scale * (0.5 + 1e-4))), name
    dequantising = found.of_type("DequantizeLinear")
    per_channel = [name for name in dequantising if found.slots[name]["input.1"].ndim == 1]
    assert (len(dequantising), len(per_channel)) == (13 + 14, 14)
    assert sum("weight_DequantizeLinear" in name for name in per_channel) == 7
    for name in dequantising:
        slots = found.slots[name]
        np.testing.assert_allclose(slots["output.0"], floats_of(slots, 0), rtol=1e-6, atol=0, err_msg=name)


def test_the_option_changes_nothing_of_a_whole_qdq_dump(shown: Callable[..., Shown], tmp_path: Path) -> None:
    found = shown(QDQ_CASE, "--quant-dumpable", "--inputs", QDQ_INPUTS)
    names = [node.name for node in quantised_models.onnx.load(QDQ_CASE).graph.node]
    assert sorted(found.types) == sorted(names)
    (record,) = tmp_path.glob("dump/*/.opscope/run.json")
    assert json.loads(record.read_text())["plan"]["quantising"] == "shown"


@pytest.mark.parametrize("mode", ["output", "input", "all"])
def test_a_selected_operator_brings_its_neighbours(shown: Callable[..., Shown], tmp_path: Path, mode: str) -> None:
    config = selecting(tmp_path, mode, "node_conv2d_2")
    found = shown(QDQ_CASE, "--quant-dumpable", "--inputs", QDQ_INPUTS, config=config)
    quantising = ["relu6_QuantizeLinear", "relu_1_QuantizeLinear"]
    dequantising = ["relu6", "pw.weight", "pw.bias", "relu_1"]
    dequantising = [f"{name}_DequantizeLinear" for name in dequantising]
    assert sorted(found.types) == sorted(["node_conv2d_2", *quantising, *dequantising])
    for name in quantising + dequantising:
        assert sorted(found.slots[name]) == ["input.0", "input.1", "input.2", "output.0"], name
    inputs, outputs = ["input.0", "input.1", "input.2"], ["output.0"]
    of_mode = {"output": outputs, "input": inputs, "all": inputs + outputs}
    assert sorted(found.slots["node_conv2d_2"]) == of_mode[mode]


def test_without_the_option_it_comes_alone(shown: Callable[..., Shown], tmp_path: Path) -> None:
    config = selecting(tmp_path, "output", "node_conv2d_2")
    found = shown(QDQ_CASE, "--inputs", QDQ_INPUTS, config=config)
    assert list(found.types) == ["node_conv2d_2"]


@dataclass(frozen=True)
class Forms:
    """The same small network in both forms, and an input."""

    of_operators: Path
    qdq: Path
    inputs: list[str]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    folder = tmp_path_factory.mktemp("quantised")
    source = folder / "net.onnx"
    quantised_models.save_network(source)
    paths = {}
    for form in QuantFormat:
        paths[form] = folder / form.name / "net.onnx"
        paths[form].parent.mkdir()
        quantised_models.quantise(source, paths[form], form, "image", quantised_models.SHAPE)
    image = quantised_models.sample(quantised_models.SHAPE, seed=99)
    inputs = input_options({"image": image}, folder / "inputs")
    return Forms(paths[QuantFormat.QOperator], paths[QuantFormat.QDQ], inputs)


VIEWS = {"image": 1, "w1": 0, "b1": 0, "c1": 1, "p1": 1, "w2": 0, "b2": 0, "c2": 1, "flat": 1, "w3": 1}


def test_integers_of_the_qoperator_form_have_floats_beside_them(shown: Callable[..., Shown], forms: Forms) -> None:
    found = shown(forms.of_operators, "--quant-dumpable", *forms.inputs)
    dequantising = [f"{name}_DequantizeLinear" for name in [*VIEWS, "scores"]]
    assert sorted(found.of_type("DequantizeLinear")) == sorted(dequantising)
    for name, axis in VIEWS.items():
        slots = found.dequantised(name)
        assert slots["output.0"].dtype == np.float32
        np.testing.assert_array_equal(slots["output.0"], floats_of(slots, axis), err_msg=name)
    conv = found.slots["conv1_quant"]
    np.testing.assert_array_equal(found.dequantised("w1")["input.0"], conv["input.3"])
    np.testing.assert_array_equal(found.dequantised("c1")["input.0"], conv["output.0"])
    np.testing.assert_array_equal(found.dequantised("b1")["input.1"], conv["input.1"] * conv["input.4"])
    assert found.dequantised("w3")["input.1"].shape == (5,)


def test_without_the_option_integers_stay_integers(shown: Callable[..., Shown], forms: Forms) -> None:
    found = shown(forms.of_operators, *forms.inputs)
    assert found.of_type("DequantizeLinear") == ["scores_DequantizeLinear"]


def test_both_forms_pair_by_name(opscope: Binary, forms: Forms, tmp_path: Path) -> None:
    for model, name in ((forms.of_operators, "operators"), (forms.qdq, "qdq")):
        opscope.dump(model, "--form", "acl", "--out", tmp_path / name, "--quant-dumpable", *forms.inputs)
    found = comparing.compare(opscope, tmp_path / "operators", tmp_path / "qdq")
    for name in [*VIEWS, "scores"]:
        operator = found.operator(f"{name}_DequantizeLinear")
        assert operator["how"] == "name"
        assert [golden["op_name"] for golden in operator["golden"]] == [f"{name}_DequantizeLinear"]
        assert "output.0" in [slot["slot"] for slot in operator["slots"]]
        # Weights and the input are quantised alike; results may round to either side.
        if name in ("image", "w1", "w2", "w3", "b1", "b2"):
            assert operator["level"] == "pass", (name, operator)
    # One has integers there, the other floats, which it quantises behind the operator.
    pool = found.operator("pool")
    assert (pool["level"], pool["how"]) == ("pass", "value")
    assert [golden["op_name"] for golden in pool["golden"]] == ["p1_QuantizeLinear"]
    assert (found.first, found.not_passing) == (None, [])


def test_statistics_are_those_of_the_floats(opscope: Binary, forms: Forms) -> None:
    report = opscope.dump(forms.of_operators, "--stats", "--quant-dumpable", *forms.inputs)
    rows = {(row["op_name"], row["slot"]): row for row in report["stats"]}
    whole = rows["w1_DequantizeLinear", "output.0"]
    codes = rows["w1_DequantizeLinear", "input.0"]
    assert (whole["dtype"], codes["dtype"]) == ("float32", "int8")
    # Weights are quantised symmetrically, so that one of them has the largest code.
    codes, whole = codes["stats"], whole["stats"]
    assert max(abs(codes["min"]), codes["max"]) == 64
    assert 0 < max(abs(whole["min"]), whole["max"]) < 64


def test_operators_of_onnx_runtime(tmp_path: Path) -> None:
    """The convolutional network of the other tests in the QOperator form, most of whose operators ONNX lacks."""
    model = tmp_path / "net.onnx"
    source = MODELS / "shapes_cnn_f32.onnx"
    shape = (2, 1, 32, 32)
    quantised_models.quantise(source, model, QuantFormat.QOperator, "image", shape)
    inputs = input_options({"image": quantised_models.sample(shape, seed=99)}, tmp_path / "inputs")
    found = reader(conftest.binary(ONNX_RUNTIME), tmp_path)(model, "--quant-dumpable", *inputs)
    nodes = quantised_models.onnx.load(model).graph.node
    of_runtime = {node.op_type for node in nodes if node.domain == "com.microsoft"}
    assert of_runtime == {"QLinearAdd", "QGemm", "QLinearSigmoid", "QLinearSoftmax"}
    values = {name for node in nodes for name in (*node.input, *node.output) if name.endswith("_quantized")}
    names = {f"{value.removesuffix('_quantized')}_DequantizeLinear" for value in values}
    assert names == set(found.of_type("DequantizeLinear"))
    assert len(names) == 14 + 13
    for name in names:
        slots = found.slots[name]
        # Convolutions and the last operand of QGemm, which is transposed, have a scale for each first position.
        np.testing.assert_array_equal(slots["output.0"], floats_of(slots, 0), err_msg=name)
    gemm = found.slots["node_linear_quant"]
    bias = found.dequantised("fc1.bias")
    np.testing.assert_array_equal(bias["input.0"], gemm["input.6"])
    np.testing.assert_array_equal(bias["input.1"], gemm["input.1"] * gemm["input.4"])
    added = found.slots["node_add_quant"]
    np.testing.assert_array_equal(found.dequantised("add")["input.0"], added["output.0"])
    np.testing.assert_array_equal(found.dequantised("add")["input.1"], added["input.6"])
    # A bias is the float's to within half a step of the product of the scales.
    weights = {tensor.name: tensor for tensor in quantised_models.onnx.load(source).graph.initializer}
    before = quantised_models.numpy_helper.to_array(weights["fc1.bias"])
    assert np.all(np.abs(bias["output.0"] - before) <= bias["input.1"] * 0.501)
