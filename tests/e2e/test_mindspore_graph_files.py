"""The two files of a graph say the same, and attributes are written as MindSpore writes them."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_defaults
import pytest
from binary import Binary
from onnx import TensorProto, helper, numpy_helper

GOLDEN = Path(__file__).parents[2] / "crates" / "store" / "tests" / "golden" / "mindspore"
GRAPHS = sorted(GOLDEN.glob("*/dump/rank_0/graphs/*.ir"))


def compare(tool: Binary, text: Path) -> dict[str, Any]:
    """The graph that both files of it have in common, after seeing that it is the same."""
    message = text.with_suffix(".pb")
    of_text, beside = [json.loads(tool.run("show", path, "--json")) for path in (text, message)]
    # The text has what the message next to it lacks.
    assert {**beside, "path": None} == {**of_text, "path": None}
    with tempfile.TemporaryDirectory(prefix="opscope-") as name:
        alone = Path(shutil.copy(message, name))
        of_message = json.loads(tool.run("show", alone, "--json"))
    assert set(of_text) == set(of_message)
    for name in ("name", "graph_id", "outputs"):
        assert of_text[name] == of_message[name], name
    # Whether a parameter is a weight, and values of constant tensors, only the text has.
    for parameters in zip(of_text["parameters"], of_message["parameters"], strict=True):
        assert parameters[1].pop("is_weight") is None
        parameters[0].pop("is_weight")
        assert parameters[0] == parameters[1]
    for a, b in zip(of_text["operators"], of_message["operators"], strict=True):
        assert set(a) == set(b)
        for name in ("op_type", "full_name", "scope", "outputs", "is_kernel", "attributes"):
            assert a[name] == b[name], (a["full_name"], name)
        for inputs in zip(a["inputs"], b["inputs"], strict=True):
            assert inputs[1].pop("constant") is None
            inputs[0].pop("constant")
            assert inputs[0] == inputs[1], a["full_name"]
    return of_text


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("text", GRAPHS, ids=lambda path: f"{path.parents[3].name}-{path.stem[-1]}")
def test_recorded_files_agree(tool: Binary, text: Path) -> None:
    compare(tool, text)


def test_there_are_recorded_files() -> None:
    assert len(GRAPHS) == 31


def model() -> onnx.ModelProto:
    """Attributes of each kind."""
    window = {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}
    value = numpy_helper.from_array(np.array([1.5, 2], np.float32))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "/conv.1/my Conv", **window),
        helper.make_node("LeakyRelu", ["a"], ["b"], "leaky", alpha=0.01),
        helper.make_node("Gemm", ["f", "g"], ["c"], "fc", transB=1),
        helper.make_node("Flatten", ["b"], ["f"], "/flatten/Flatten-op3"),
        helper.make_node("TopK", ["c", "k"], ["d", "i"], "topk"),
        helper.make_node("Constant", [], ["e"], "constant", value=value),
        helper.make_node("Add", ["d", "e"], ["y"], "add"),
    ]
    nodes[2], nodes[3] = nodes[3], nodes[2]
    weights = {"w": np.ones((1, 1, 3, 3), np.float32), "g": np.ones((4, 16), np.float32), "k": np.array([2], np.int64)}
    graph = helper.make_graph(
        nodes,
        "attributes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (("y", 1), ("i", 7))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dump(opscope: Binary, folder: Path, **settings: object) -> Path:
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    }
    config = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, **settings}}
    (folder / "data_dump.json").write_text(json.dumps(config))
    onnx.save(model(), folder / "net.onnx")
    options = ["--config", folder / "data_dump.json", "--target", "ascend-o0", "--seed", "0"]
    opscope.run("dump", folder / "net.onnx", *options)
    return folder / "dump/rank_0"


def test_own_files_agree_and_have_mindspores_form(opscope: Binary, folder: Path) -> None:
    tree = dump(opscope, folder)
    text = tree / "graphs/ms_output_trace_code_graph_0.ir"
    graph = compare(opscope, text)
    lines = text.read_text()
    for expected in (
        'primitive_attrs: {auto_pad: "SAME_UPPER", kernel_shape: (3, 3)}',
        "primitive_attrs: {alpha: F32(0.01)}",
        "primitive_attrs: {transB: I64(1)}",
    ):
        assert expected in lines
    attributes = {operator["full_name"]: operator["attributes"] for operator in graph["operators"]}
    assert attributes["/conv.1/my Conv"] == {"auto_pad": "SAME_UPPER", "kernel_shape": "(3, 3)"}
    (topk,) = (operator for operator in graph["operators"] if operator["op_type"] == "TopK")
    assert [output["shape"] for output in topk["outputs"]] == [[1, 2], [1, 2]]


def test_arguments_of_operators(opscope: Binary, folder: Path) -> None:
    """`{type}.{name}.json`, values as MindSpore's print themselves, defaults too."""
    tree = dump(opscope, folder, save_kernel_args=True)
    found = {path.name: json.loads(path.read_text()) for path in (tree / "Net/0/0").glob("*.json")}
    assert found == {
        "Conv._conv_1_my Conv.json": {"auto_pad": "SAME_UPPER", "kernel_shape": "(3, 3)", "group": "1"},
        "LeakyRelu.leaky.json": {"alpha": "0.010000"},
        "Flatten._flatten_Flatten-op3.json": {"axis": "1"},
        "Gemm.fc.json": {"alpha": "1.000000", "beta": "1.000000", "transA": "0", "transB": "1"},
        "TopK.topk.json": {"axis": "-1", "largest": "1", "sorted": "1"},
        "Add.add.json": {},
    }
    text = (tree / "Net/0/0/Gemm.fc.json").read_text()
    assert text.splitlines()[:2] == ["{", '    "alpha": "1.000000",']


def test_the_table_of_defaults_is_that_of_onnx() -> None:
    known = set(onnx_defaults.table().splitlines())
    table = onnx_defaults.TABLE.read_text(encoding="utf-8").splitlines()
    assert len(table) == len(set(table)) > 600
    # A newer `onnx` has more operators; what was true stays true.
    assert set(table) <= known
