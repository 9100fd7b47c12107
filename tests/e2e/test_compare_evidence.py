"""`opscope compare` with less evidence than elements on both sides: what it does not show is not taken for agreement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from binary import Binary, input_options
from comparing import FAILED, PASSED, compare
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper, save
from onnx.reference import ReferenceEvaluator

WIDTH = 8
X = {"x": np.random.default_rng(1).normal(size=(4, WIDTH)).astype(np.float32)}


def node(op_type: str, inputs: str, output: str, name: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], name, **attributes)


def model(nodes: list[NodeProto]) -> ModelProto:
    random = np.random.default_rng(2)
    used = sorted({name for one in nodes for name in one.input if name.startswith("w")})
    weights = [
        numpy_helper.from_array((random.normal(size=(WIDTH, WIDTH)) / 3).astype(np.float32), name) for name in used
    ]
    ends = [helper.make_tensor_value_info(*value) for value in (("x", TensorProto.FLOAT, [4, WIDTH]), ("y", TensorProto.FLOAT, None))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dumped(opscope: Binary, folder: Path, net: ModelProto, *options: object) -> Path:
    folder.mkdir()
    save(net, folder / "net.onnx")
    inputs = input_options(X, folder / "inputs")
    opscope.dump(folder / "net.onnx", "--out", folder / "dump", *inputs, *options)
    return folder / "dump"


def joined(parts: str) -> ModelProto:
    return model([
        node("MatMul", "x w0", "a", "left"),
        node("Tanh", "a", "b", "right"),
        node("Concat", parts, "c", "joined", axis=0),
        node("MatMul", "c w1", "y", "last"),
    ])  # fmt: skip


def renamed(net: ModelProto) -> ModelProto:
    """With the names that an optimiser may give."""
    values = {name: f"t{i}" for i, one in enumerate(net.graph.node) for name in one.output if name != "y"}
    for i, one in enumerate(net.graph.node):
        one.name = f"op_{i}"
        for names in (one.input, one.output):
            names[:] = [values.get(name, name) for name in names]
    return net


@pytest.mark.parametrize("is_renamed", [False, True])
@pytest.mark.parametrize("of_statistics", [("target",), ("golden",), ("target", "golden")])
def test_exchanged_parts_of_which_statistics_are_known(
    opscope: Binary, tmp_path: Path, of_statistics: tuple[str, ...], is_renamed: bool
) -> None:
    """The output has the same statistics, and both graphs show that the parts are exchanged."""
    sides = []
    for name, parts in (("target", "b a"), ("golden", "a b")):
        options = ("--content", "statistics") if name in of_statistics else ()
        net = joined(parts)
        given = renamed(net) if is_renamed and name == "golden" else net
        sides.append(dumped(opscope, tmp_path / name, given, *options))
    found = compare(opscope, *sides, is_strict=False)
    assert (found.code, found.document["contract"]["conclusion"]) == (PASSED, "warn")
    assert found.first is not None and found.first[0] == "joined"


def test_exchanged_parts_under_other_names(opscope: Binary, tmp_path: Path) -> None:
    """Values pair the operators, and show that both parts are read in each other's place."""

    def net(parts: str) -> ModelProto:
        return model([
            node("Tanh", "x", "a", "begin"),
            node("Sigmoid", "x", "b", "end"),
            node("Add", "a b", "c", "twice"),
            node("Div", "c b", "d", "middle"),
            node("Sub", "b a", "e", "size"),
            node("Concat", parts, "f", "joined", axis=0),
            node("Mul", "f f", "g", "scaled"),
            node("Concat", "x g", "y", "last", axis=0),
        ])  # fmt: skip

    target = dumped(opscope, tmp_path / "target", net("e d"))
    golden = dumped(opscope, tmp_path / "golden", renamed(net("d e")))
    found = compare(opscope, target, golden, is_strict=False)
    assert (found.code, found.first) == (FAILED, ("joined", "input.0", "own"))
    read = [(one["golden"]["op_name"], one["instead"]["op_name"]) for one in found.document["partings"][0]["rewired"]]
    assert read == [("op_4", "op_3"), ("op_3", "op_4")]


def test_an_output_that_quantising_puts_near_its_limit(opscope: Binary, tmp_path: Path) -> None:
    """An output that is off, and no more, accuses no operator either."""

    def net(*quantisers: NodeProto) -> ModelProto:
        made = model([
            node("MatMul", "x w0", "a", "large"),
            *quantisers,
            node("MatMul", f"{'r' if quantisers else 'x'} w1", "b", "small"),
            node("Add", "a b", "y", "sum"),
        ])  # fmt: skip
        (small,) = (weight for weight in made.graph.initializer if weight.name == "w1")
        small.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(small) / 20, "w1"))
        return made

    quantise = node("DynamicQuantizeLinear", "x", "q", "quantise")
    quantise.output.extend(["scale", "zero"])
    target = dumped(opscope, tmp_path / "target", net(quantise, node("DequantizeLinear", "q scale zero", "r", "read")))
    golden = dumped(opscope, tmp_path / "golden", renamed(net()))
    found = compare(opscope, target, golden, is_strict=False)
    assert (found.code, found.document["contract"]["conclusion"]) == (FAILED, "quantised")
    assert found.document["contract"]["outputs"][0]["state"] == "warn"
    assert found.first is None


def layers(half: str | None) -> ModelProto:
    """Products with an activation; one of these may be in float16."""
    nodes, read = [], "x"
    for i in range(8):
        name = f"tanh{i}"
        nodes.append(node("MatMul", f"{read} w{i}", f"m{i}", f"product{i}"))
        read = "y" if i == 7 else f"t{i}"
        if name == half:
            nodes += [
                node("Cast", f"m{i}", "narrow", "narrow", to=TensorProto.FLOAT16),
                node("Tanh", "narrow", "half", name),
                node("Cast", "half", read, "wide", to=TensorProto.FLOAT),
            ]
        else:
            nodes.append(node("Tanh", f"m{i}", read, name))
    return model(nodes)


@pytest.mark.parametrize(("half", "expected"), [("tanh3", "warn"), (None, "pass")])
def test_an_island_against_arrays(opscope: Binary, tmp_path: Path, half: str | None, expected: str) -> None:
    """Arrays of the golden side under the names of values: none of them is in float16."""
    sound = layers(None)
    outputs = [name for one in sound.graph.node for name in one.output]
    everything = ModelProto()
    everything.CopyFrom(sound)
    everything.graph.output.extend(ValueInfoProto(name=name) for name in outputs if name != "y")
    run = ReferenceEvaluator(everything)
    golden = tmp_path / "values.npz"
    np.savez(golden, **dict(zip(run.output_names, run.run(None, X), strict=True)))
    target = dumped(opscope, tmp_path / "target", layers(half))
    found = compare(opscope, target, golden, is_strict=False)
    assert (found.code, found.document["contract"]["conclusion"]) == (PASSED, expected)
    islands = found.document["contract"].get("islands", [])
    assert [island["name"]["op_name"] for island in islands] == [name for name in (half,) if name]
