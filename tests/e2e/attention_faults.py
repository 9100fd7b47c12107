"""A block of attention with one planted fault each, of other kinds than the network of `test_experiments.py` has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from test_experiments import change_weight, node, read, without

SHAPE = {"x": [2, 6, 8], "mask": [2, 1, 6]}


def sound_model() -> ModelProto:
    """Attention with a mask, of which the mean and the root of the last steps decide."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "gain", "shift"], ["n"], "norm", epsilon=1e-5),
        helper.make_node("MatMul", ["n", "query.weight"], ["q"], "query"),
        helper.make_node("MatMul", ["n", "key.weight"], ["k"], "key"),
        helper.make_node("MatMul", ["n", "value.weight"], ["v"], "value"),
        helper.make_node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"], "scores"),
        helper.make_node("Mul", ["s", "factor"], ["scaled"], "scale"),
        helper.make_node("Where", ["mask", "scaled", "low"], ["seen"], "masked"),
        helper.make_node("Softmax", ["seen"], ["p"], "attention", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["context"], "context"),
        helper.make_node("Add", ["context", "x"], ["sum"], "residual"),
        helper.make_node("Slice", ["sum", "starts", "ends", "axes"], ["late"], "late"),
        helper.make_node("ReduceMean", ["late"], ["mean"], "pool", axes=[1], keepdims=0),
        helper.make_node("Abs", ["mean"], ["size"], "magnitude"),
        helper.make_node("Sqrt", ["size"], ["root"], "root"),
        helper.make_node("Concat", ["mean", "root"], ["features"], "features", axis=1),
        helper.make_node("Gemm", ["features", "head.weight", "head.bias"], ["logits"], "head", transB=1),
    ]
    random = np.random.default_rng(9)
    shapes = dict.fromkeys(("query.weight", "key.weight", "value.weight"), (8, 8))
    shapes |= {"head.weight": (4, 16), "head.bias": (4,)}
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {"gain": np.full(8, 0.9, np.float32), "shift": np.full(8, -0.2, np.float32)}
    weights |= {"factor": np.float32(8**-0.5), "low": np.float32(-1e4)}
    weights |= {name: np.array([value]) for name, value in (("starts", 1), ("ends", 6), ("axes", 1))}
    values = {"x": (TensorProto.FLOAT, SHAPE["x"]), "mask": (TensorProto.BOOL, SHAPE["mask"])}
    inputs = [helper.make_tensor_value_info(name, *value) for name, value in values.items()]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [2, 4])]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


ATTENTION = sound_model()


def attribute(name: str, **attributes: object) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        changed = [helper.make_attribute(key, value) for key, value in attributes.items()]
        kept = [one for one in node(model, name).attribute if one.name not in attributes]
        del node(model, name).attribute[:]
        node(model, name).attribute.extend([*kept, *changed])

    return plant


def reversed_inputs(name: str, first: int) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        inputs = node(model, name).input
        inputs[first:] = list(inputs)[first:][::-1]

    return plant


def maximum(model: ModelProto) -> None:
    node(model, "pool").op_type = "ReduceMax"


def whole_numbers(model: ModelProto) -> None:
    """The context goes through integers."""
    at = next(i for i, one in enumerate(model.graph.node) if one.name == "residual")
    there = helper.make_node("Cast", ["context"], ["codes"], "to_codes", to=TensorProto.INT8)
    back = helper.make_node("Cast", ["codes"], ["rounded"], "from_codes", to=TensorProto.FLOAT)
    model.graph.node.insert(at, there)
    model.graph.node.insert(at + 1, back)
    node(model, "residual").input[0] = "rounded"


# What is planted, and the operators of which one has to be named.
ATTENTION_FAULTS: dict[str, tuple[Callable[[ModelProto], None], set[str]]] = {
    "epsilon": (attribute("norm", epsilon=0.05), {"norm"}),
    "axis": (attribute("attention", axis=1), {"attention"}),
    "constant": (change_weight("factor", lambda factor: factor * 2), {"scale"}),
    "branches exchanged": (reversed_inputs("masked", 1), {"masked"}),
    "start of a slice": (change_weight("starts", lambda starts: starts - 1), {"late"}),
    "weight of another layer": (read("query", "key.weight", 1), {"query"}),
    "turned weight": (change_weight("value.weight", np.transpose), {"value"}),
    "order of a concatenation": (reversed_inputs("features", 0), {"features"}),
    "another reduction": (maximum, {"pool"}),
    "NaN": (without("magnitude"), {"magnitude", "root"}),
    "rounding": (whole_numbers, {"to_codes", "from_codes"}),
}
