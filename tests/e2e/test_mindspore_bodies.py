"""Bodies of Loop, Scan and If in MindSpore's trees: one name, new times, and no weights but the model's.

MindSpore's own `while` is recorded in the run `control_flow`: its body's operators have one name and several times.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from engines import ENGINES, Engine
from onnx import TensorProto, helper, numpy_helper

GOLDEN = Path(__file__).parents[2] / "crates" / "store" / "tests" / "golden" / "mindspore"
NAME = re.compile(r"(?P<type>[^.]+)\.(?P<name>[^.]+)\.\d+\.\d+\.(?P<time>\d{16})\.(?P<side>\w+)\.(?P<slot>\d)\..*npy")
N_TRIPS = 3
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, dtype: int = FLOAT, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def scalar(name: str, number: object, dtype: type) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(number, dtype), name)


def loop() -> onnx.ModelProto:
    """A Loop that adds a weight of its body and one from outside to what it carries, and asks an If on the way.

    The weight `state` has the name of a carried value elsewhere.
    """
    grown = helper.make_graph([helper.make_node("Mul", ["sum", "two"], ["g"], "/body/Mul")], "then", [], [value("g")])
    kept = helper.make_graph([helper.make_node("Neg", ["state"], ["k"], "/body/Neg")], "else", [], [value("k")])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["on"], "/body/Identity"),
            helper.make_node("Add", ["state", "inner"], ["sum"], "/body/Add"),
            helper.make_node("If", ["going"], ["next"], "/body/If", then_branch=grown, else_branch=kept),
        ],
        "body",
        [value("i", INT64, []), value("going", BOOL, []), value("state", FLOAT, [2])],
        [value("on", BOOL, []), value("next", FLOAT, [2])],
        [scalar("inner", [0.5, 1], np.float32)],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["start"], "/Relu"),
        helper.make_node("Loop", ["trips", "always", "start"], ["end"], "/Loop", body=body),
        helper.make_node("Neg", ["end"], ["y"], "/Neg"),
    ]
    weights = [scalar("trips", N_TRIPS, np.int64), scalar("always", True, np.bool_), scalar("two", 2, np.float32)]
    return model(nodes, [value("x", FLOAT, [2])], weights)


def scan() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "row"], ["sum_out"], "/body/Add"),
            helper.make_node("Mul", ["sum_out", "two"], ["row_out"], "/body/Mul"),
        ],
        "body",
        [value("sum_in", FLOAT, [2]), value("row", FLOAT, [2])],
        [value("sum_out", FLOAT, [2]), value("row_out", FLOAT, [2])],
    )
    nodes = [
        helper.make_node("Scan", ["start", "x"], ["end", "rows"], "/Scan", body=body, num_scan_inputs=1),
        helper.make_node("Neg", ["end"], ["y"], "/Neg"),
    ]
    weights = [scalar("two", 2, np.float32), scalar("start", [0, 0], np.float32)]
    return model(nodes, [value("x", FLOAT, [N_TRIPS, 2])], weights)


def model(nodes: list, inputs: list, weights: list) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "bodies", inputs, [value("y", FLOAT, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dump(opscope: Binary, folder: Path, built: onnx.ModelProto, target: str, **settings: object) -> Path:
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        "file_format": "npy",
        **settings,
    }
    onnx.save(built, folder / "net.onnx")
    (folder / "data_dump.json").write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {}}))
    options = ["--config", folder / "data_dump.json", "--target", target, "--seed", "0", "--steps", "2"]
    opscope.run("dump", folder / "net.onnx", *options)
    return folder / "dump"


def runs(directory: Path) -> dict[str, list[int]]:
    """The times of an operator's first output, by its name."""
    found: dict[str, list[int]] = {}
    for path in directory.iterdir():
        parts = NAME.fullmatch(path.name)
        assert parts or path.suffix != ".npy", path.name
        if parts and (parts["side"], parts["slot"]) == ("output", "0"):
            found.setdefault(f"{parts['type']}.{parts['name']}", []).append(int(parts["time"]))
    return found


def steps(tree: Path, target: str) -> list[Path]:
    place = "rank_0/Net/0/{}" if target in ("cpu", "gpu", "ascend-o0") else "{}/*/0/net/1/{}"
    return [next(tree.glob(place.format(i, i))) for i in range(2)]


def test_mindspores_own_loop_repeats_a_name() -> None:
    """The form that is followed."""
    found = runs(GOLDEN / "control_flow/dump/rank_0/Net/0/0")
    assert {name: len(times) for name, times in found.items()} == {"Less.Default_Less-op0": 3}


LOOPS = [engine for engine in ENGINES if engine.shows_loops]


@pytest.mark.sampled(0.4, each="build")
@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend-o0", "ascend-o2", "ge"])
@pytest.mark.parametrize("build", [loop, scan])
@pytest.mark.parametrize("engine", LOOPS, ids=str)
def test_bodies_repeat_one_name(folder: Path, engine: Engine, build, target: str) -> None:
    opscope = Binary.from_environment(engine)
    tree = dump(opscope, folder, build(), target)
    for directory in steps(tree, target) if target != "ge" else sorted(tree.glob("*/0/net/1/?")):
        found = runs(directory)
        bodies = {name: times for name, times in found.items() if "_body_" in name}
        expected = {"Add._body_Add", "Mul._body_Mul"} | ({"Identity._body_Identity"} if build is loop else set())
        assert set(bodies) == expected
        for name, times in bodies.items():
            assert len(set(times)) == N_TRIPS, name
        parameters = {name.split(".")[1] for name in found if name.startswith("Parameter.")}
        weights = {"trips", "always", "two", "inner", "x"} if build is loop else {"two", "start", "x"}
        assert parameters == (weights if target in ("cpu", "gpu") else set())
    if target in ("cpu", "gpu"):
        shown = json.loads(opscope.run("show", tree, "--json"))
        counts = Counter((record["full_name"], record["iteration"]) for record in shown["records"])
        assert counts[("/body/Add", 1)] == N_TRIPS
        assert shown["errors"] == []
        text = (tree / "rank_0/graphs/ms_output_trace_code_graph_0.ir").read_text()
        is_weight = dict(re.findall(r"%para\d+_(\w+): .*IsWeight: (\w+)", text))
        carried = {"going", "state"} if build is loop else {"sum_in", "row"}
        assert {name for name, flag in is_weight.items() if flag == "false"} == carried | {"x"}


@pytest.mark.parametrize("engine", LOOPS, ids=str)
def test_values_are_those_of_each_iteration(folder: Path, engine: Engine) -> None:
    tree = dump(Binary.from_environment(engine), folder, loop(), "cpu")
    directory = tree / "rank_0/Net/0/0"
    (path,) = directory.glob("Parameter.x.*")
    state = np.maximum(np.load(path), 0)
    paths = sorted(directory.glob("Add._body_Add.*.output.0.*"), key=lambda path: NAME.fullmatch(path.name)["time"])
    assert len(paths) == N_TRIPS
    for path in paths:
        state = state + np.array([0.5, 1], np.float32)
        np.testing.assert_array_equal(np.load(path), state)
        state = state * 2


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (["/body/Add"], {"Add._body_Add"}),
        (["name-regex(/body/(Add|Mul))"], {"Add._body_Add", "Mul._body_Mul"}),
        (["identity"], {"Identity._body_Identity"}),
        (["/Relu"], {"Relu._Relu"}),
    ],
)
@pytest.mark.parametrize("engine", LOOPS, ids=str)
def test_kernels_find_bodies(folder: Path, engine: Engine, kernels: list[str], expected: set[str]) -> None:
    tree = dump(Binary.from_environment(engine), folder, loop(), "cpu", dump_mode=1, kernels=kernels)
    found = runs(tree / "rank_0/Net/0/0")
    assert set(found) == expected
    n_runs = 1 if kernels == ["/Relu"] else N_TRIPS
    assert {len(times) for times in found.values()} == {n_runs}
