"""`opscope compare` between two graphs of one network: the named culprit, and that there is none if both are sound."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import faults
import numpy as np
import pytest
from binary import Binary
from comparing import FAILED, Found, compare, dump
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

WIDTH, HIDDEN, N_BLOCKS, N_ROWS = 8, 16, 3, 6


@dataclass
class Graph:
    """A graph while it is built; `is_fused` says which of the two forms it has."""

    is_fused: bool
    nodes: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))

    def name(self, layer: str, part: str) -> str:
        return f"/{layer}/{part}" if self.is_fused else f"node_{layer}_{part}".replace(".", "_").lower()

    def add(self, op_type: str, layer: str, inputs: list[str], **attributes: object) -> str:
        name = self.name(layer, op_type)
        name += f"_{sum(node.name.startswith(name) for node in self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [f"{name}_output"], name, **attributes))
        return f"{name}_output"

    def weight(self, name: str, array: NDArray) -> str:
        name = name if self.is_fused else f"p_{name}".replace(".", "_")
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def linear(self, layer: str, x: str, n_in: int, n_out: int) -> str:
        weight, bias = self.random.normal(size=(n_out, n_in)) / n_in**0.5, self.random.normal(size=n_out)
        b = self.weight(f"{layer}.bias", bias)
        if self.is_fused:
            return self.add("Gemm", layer, [x, self.weight(f"{layer}.weight", weight), b], transB=1)
        product = self.add("MatMul", layer, [x, self.weight(f"{layer}.weight", np.ascontiguousarray(weight.T))])
        return self.add("Add", layer, [b, product])

    def gelu(self, layer: str, x: str) -> str:
        if self.is_fused:
            return self.add("Gelu", layer, [x])
        root, one, half = (self.weight(f"{layer}.{k}", np.array(v)) for k, v in (("r", 2**0.5), ("one", 1), ("h", 0.5)))
        error = self.add("Erf", layer, [self.add("Div", layer, [x, root])])
        gate = self.add("Add", layer, [error, one])
        return self.add("Mul", layer, [self.add("Mul", layer, [x, gate]), half])

    def norm(self, layer: str, x: str) -> str:
        scale = self.weight(f"{layer}.weight", 1 + 0.3 * self.random.normal(size=WIDTH))
        bias = self.weight(f"{layer}.bias", 0.3 * self.random.normal(size=WIDTH))
        if self.is_fused:
            return self.add("LayerNormalization", layer, [x, scale, bias], axis=-1)
        axis = f"{layer}.axis"
        self.weights.append(numpy_helper.from_array(np.array([-1]), axis))
        centred = self.add("Sub", layer, [x, self.add("ReduceMean", layer, [x, axis])])
        square = self.add("Mul", layer, [centred, centred])
        variance = self.add("Add", layer, [self.add("ReduceMean", layer, [square, axis]),
                                           self.weight(f"{layer}.eps", np.array(1e-5))])  # fmt: skip
        normal = self.add("Div", layer, [centred, self.add("Sqrt", layer, [variance])])
        return self.add("Add", layer, [self.add("Mul", layer, [normal, scale]), bias])

    def model(self) -> ModelProto:
        x = "x"
        for k in range(N_BLOCKS):
            y = self.norm(f"blocks.{k}.norm", x)
            y = self.gelu(f"blocks.{k}.act", self.linear(f"blocks.{k}.up", y, WIDTH, HIDDEN))
            y = self.linear(f"blocks.{k}.down", y, HIDDEN, WIDTH)
            x = self.add("Add", f"blocks.{k}", [x, y] if self.is_fused else [y, x])
        x = self.linear("head", x, WIDTH, WIDTH)
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [N_ROWS, WIDTH]) for name in ("x", x)]
        graph = helper.make_graph(self.nodes, "fused" if self.is_fused else "plain", ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        checker.check_model(model)
        return model


@pytest.fixture(scope="module")
def inputs() -> dict[str, NDArray]:
    return {"x": np.random.default_rng(5).normal(size=(N_ROWS, WIDTH)).astype(np.float32)}


@pytest.fixture(scope="module")
def golden(opscope: Binary, inputs: dict[str, NDArray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dump(opscope, tmp_path_factory.mktemp("fused"), Graph(is_fused=True).model(), inputs)


@pytest.fixture
def against(opscope: Binary, inputs: dict[str, NDArray], golden: Path, tmp_path: Path) -> Callable[..., Found]:
    return lambda model: compare(opscope, dump(opscope, tmp_path, model, inputs), golden, is_strict=False)


def test_another_form_of_the_same_network(against: Callable[..., Found]) -> None:
    found = against(Graph(is_fused=False).model())
    assert (found.summary["level"], found.first, found.not_passing) == ("pass", None, [])
    compared = {name: how for name, (_, how) in found.guessed.items()}
    for k in range(N_BLOCKS):
        # The last operator of each part makes what one operator makes on the other side.
        for name in ("norm_add_1", "up_add_0", "act_mul_1", "down_add_0", "add_0"):
            assert compared[f"node_blocks_{k}_{name}"] == "value"


def a_third_more(array: NDArray) -> NDArray:
    array[..., : array.shape[-1] // 2] *= 1.3
    return array


FAULTS = [
    ("node_blocks_1_down_matmul_0",
     lambda model: faults.change_weight(model, "p_blocks_1_down_weight", a_third_more)),
    ("node_blocks_1_up_add_0", lambda model: faults.change_weight(model, "p_blocks_1_up_bias", a_third_more)),
    ("node_head_add_0", lambda model: faults.change_weight(model, "p_head_bias", a_third_more)),
    ("node_blocks_0_up_add_0", lambda model: faults.replace_type(model, "node_blocks_0_up_add_0", "Sub")),
    ("node_blocks_2_act_erf_0", lambda model: faults.replace_type(model, "node_blocks_2_act_erf_0", "Tanh")),
    ("node_blocks_2_norm_sqrt_0", lambda model: faults.replace_type(model, "node_blocks_2_norm_sqrt_0", "Softplus")),
    ("node_blocks_1_add_0", lambda model: faults.replace_type(model, "node_blocks_1_add_0", "Sub")),
]  # fmt: skip


@pytest.mark.sampled(0.4, each="engine")
@pytest.mark.parametrize(("wrong", "plant"), FAULTS, ids=[wrong for wrong, _ in FAULTS])
def test_a_fault_is_named_in_another_form(against: Callable[..., Found], wrong: str, plant: Callable) -> None:
    found = against(plant(Graph(is_fused=False).model()))
    assert found.code == FAILED
    assert found.first is not None and found.first[0] == wrong
    assert set(found.accused) <= {wrong}


def test_the_parameter_of_a_changed_weight_is_told(against: Callable[..., Found]) -> None:
    model = faults.change_weight(Graph(is_fused=False).model(), "p_blocks_1_down_weight", a_third_more)
    found = against(model)
    (parting,) = found.document["partings"]
    assert (parting["name"]["op_name"], parting["cause"]) == ("node_blocks_1_down_matmul_0", "outside")
    assert parting["parameter"] == "p_blocks_1_down_weight"


def test_statistics_name_the_operator_as_far_as_they_show(
    opscope: Binary, inputs: dict[str, NDArray], golden: Path, tmp_path: Path
) -> None:
    sound = Graph(is_fused=False).model()
    wrong = faults.replace_type(Graph(is_fused=False).model(), "node_blocks_1_add_0", "Sub")
    headlines = []
    for name, model in (("sound", sound), ("wrong", wrong)):
        target = tmp_path / name
        config = tmp_path / f"{name}.json"
        dump_all = {"dump_path": str(target), "dump_list": [{}], "dump_mode": "all", "dump_data": "stats"}
        config.write_text(json.dumps({"dump": dump_all}))
        target.mkdir()
        file, given = tmp_path / f"{name}.onnx", tmp_path / "inputs.npz"
        file.write_bytes(model.SerializeToString())
        np.savez(given, **inputs)
        opscope.run("dump", file, "--inputs", given, "--config", config)
        command = opscope.command("compare", target, golden)
        headlines.append(subprocess.run(command, capture_output=True, text=True).stdout.split("\n", 1)[0])
    assert headlines[0].startswith("PASS")
    assert "`node_blocks_1_add_0` output.0" in headlines[1] and ", as far as statistics show" in headlines[1]
