"""Models that only ONNX Runtime runs: loops in loops, sequences, integer operators, bfloat16 and text."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from .graph import Generated, Graph, tensor_type

MICROSOFT = "com.microsoft"


def nested_loops() -> Generated:
    """A Loop around an If and a Loop, which read values from outside; the outer one ends before its trip count."""
    graph = Graph("nested_loops", seed=21)
    x = graph.input("x", np.float32, [2, 2])
    scale = graph.op("Sigmoid", [x], "/before")
    trips, going = graph.initializer("trips", np.array(5, np.int64)), graph.initializer("going", np.array(True))
    graph.initializer("two", np.array(2, np.int64))
    graph.initializer("limit", np.array(2, np.int64))
    last, sums = graph.ops("Loop", [trips, going, x], 2, "", body=_outer_body(scale).proto())
    graph.output(graph.op("Neg", [last], "/after", "y"), np.float32, [2, 2])
    graph.output(graph.op("Identity", [sums], "/after", "sums"), np.float32, ["n", 2, 2])
    return Generated(graph.model(), {"sample": {"x": graph.rng.standard_normal((2, 2)).astype(np.float32)}})


def _outer_body(scale: str) -> Graph:
    """Three iterations, though five are allowed."""
    body = Graph("outer")
    body.input("i", np.int64, [])
    body.input("outer_going", np.bool_, [])
    body.input("carried", np.float32, [2, 2])
    scaled = body.op("Mul", ["carried", scale], "/outer")
    rest = body.op("Mod", ["i", "two"], "/outer")
    is_odd = body.op("Cast", [rest], "/outer", to=tensor_type(np.bool_))
    then, other = Graph("odd"), Graph("even")
    then.op("Tanh", [scaled], "/outer/odd", "then_out")
    then.output("then_out", np.float32, [2, 2])
    shifted = other.op("Add", [scaled, scale], "/outer/even")
    other.op("Relu", [shifted], "/outer/even", "else_out")
    other.output("else_out", np.float32, [2, 2])
    chosen = body.op("If", [is_odd], "/outer", then_branch=then.proto(), else_branch=other.proto())
    inner = Graph("inner")
    inner.input("j", np.int64, [])
    inner.input("inner_going", np.bool_, [])
    inner.input("inner_carried", np.float32, [2, 2])
    inner.op("Identity", ["inner_going"], "/outer/inner", "inner_going_out")
    product = inner.op("Mul", ["inner_carried", scale], "/outer/inner")
    inner.op("Add", [product, chosen], "/outer/inner", "inner_carried_out")
    inner.output("inner_going_out", np.bool_, [])
    inner.output("inner_carried_out", np.float32, [2, 2])
    body.op("Loop", ["two", "outer_going", chosen], "/outer", "carried_out", body=inner.proto())
    body.op("Less", ["i", "limit"], "/outer", "outer_going_out")
    body.op("Identity", ["carried_out"], "/outer", "shown")
    body.output("outer_going_out", np.bool_, [])
    body.output("carried_out", np.float32, [2, 2])
    body.output("shown", np.float32, [2, 2])
    return body


def sequences() -> Generated:
    """Rows become a sequence, which grows, is asked for one of them, and becomes a tensor again."""
    graph = Graph("sequences", seed=22)
    rows = graph.input("rows", np.float32, [4, 3])
    scaled = graph.op("Mul", [rows, graph.random("weight", [3], 1)])
    split = graph.op("SplitToSequence", [scaled], axis=0, keepdims=0)
    one = graph.integers(1)
    second = graph.op("SequenceAt", [split, one])
    grown = graph.op("SequenceInsert", [split, graph.op("Neg", [second]), one])
    graph.output(graph.op("ConcatFromSequence", [grown], output="y", axis=0, new_axis=1), np.float32, [5, 3])
    graph.output(graph.op("SequenceLength", [grown], output="n"), np.int64, [])
    return Generated(graph.model(), {"sample": {"rows": graph.rng.standard_normal((4, 3)).astype(np.float32)}})


def qoperator() -> Generated:
    """Integer arithmetic in operators of its own, one of them ONNX Runtime's."""
    graph = Graph("qoperator", seed=23)
    graph.use_domain(MICROSOFT, 1)
    x = graph.input("x", np.float32, [1, 3, 8, 8])
    scale, zero = _quantisation(graph, "x", 0.03)
    q = graph.op("QuantizeLinear", [x, scale, zero])
    weight = graph.initializer("conv.weight_quantized", _small(graph, [4, 3, 3, 3], np.int8))
    w_scale = graph.initializer("conv.weight_scale", np.array([0.01, 0.02, 0.015, 0.005], np.float32))
    w_zero = graph.initializer("conv.weight_zero_point", np.zeros(4, np.int8))
    bias = graph.initializer("conv.bias_quantized", _small(graph, [4], np.int32))
    y_scale, y_zero = _quantisation(graph, "conv", 0.05)
    q = graph.op("QLinearConv", [q, scale, zero, weight, w_scale, w_zero, y_scale, y_zero, bias], pads=[1] * 4)
    s_scale, s_zero = _quantisation(graph, "sum", 0.1)
    q = graph.op("QLinearAdd", [q, y_scale, y_zero, q, y_scale, y_zero, s_scale, s_zero], domain=MICROSOFT)
    q = graph.op("Reshape", [q, graph.integers([4, 64])])
    matrix = graph.initializer("fc.weight_quantized", _small(graph, [64, 5], np.int8))
    m_scale = graph.initializer("fc.weight_scale", np.array(0.02, np.float32))
    m_zero = graph.initializer("fc.weight_zero_point", np.array(0, np.int8))
    o_scale, o_zero = _quantisation(graph, "fc", 0.3)
    q = graph.op("QLinearMatMul", [q, s_scale, s_zero, matrix, m_scale, m_zero, o_scale, o_zero])
    y = graph.op("DequantizeLinear", [q, o_scale, o_zero], output="y")
    graph.output(y, np.float32, [4, 5])
    q, _, zero = graph.ops("DynamicQuantizeLinear", [y], 3)
    turn = graph.initializer("turn", _small(graph, [5, 2], np.int8))
    graph.output(graph.op("MatMulInteger", [q, turn, zero], output="z"), np.int32, [4, 2])
    return Generated(graph.model(), {"sample": {"x": graph.rng.standard_normal((1, 3, 8, 8)).astype(np.float32)}})


def _quantisation(graph: Graph, name: str, scale: float) -> tuple[str, str]:
    return (
        graph.initializer(f"{name}_scale", np.array(scale, np.float32)),
        graph.initializer(f"{name}_zero_point", np.array(128, np.uint8)),
    )


def _small(graph: Graph, shape: list[int], dtype: type) -> NDArray:
    return graph.rng.integers(-100, 100, shape).astype(dtype)


def bfloat16() -> Generated:
    """Builds a model of the operators that ONNX Runtime computes in bfloat16 on a CPU, with casts there and back."""
    graph = Graph("bfloat16", seed=24)
    x = graph.input("x", np.float32, [3, 4])
    half = graph.op("Cast", [x], to=TensorProto.BFLOAT16)
    turned = graph.op("Transpose", [half], perm=[1, 0])
    weight = graph.initializer("weight", graph.rng.standard_normal((4, 3)).astype(ml_dtypes.bfloat16))
    joined = graph.op("Concat", [turned, weight], axis=0)
    graph.output(graph.op("Identity", [joined], output="joined"), ml_dtypes.bfloat16, [8, 3])
    graph.output(graph.op("Cast", [joined], output="y", to=TensorProto.FLOAT), np.float32, [8, 3])
    values = np.array(
        [[1, 1 + 2**-8, -0.0, 3.3e38], [np.inf, -np.inf, 1e-40, 0.1], [1.00390625, -7, 65504, 1e9]], np.float32
    )
    return Generated(graph.model(), {"sample": {"x": values}})


def text() -> Generated:
    """Words become numbers, which have a value to dump; the words have none."""
    graph = Graph("text", seed=25)
    graph.use_domain("ai.onnx.ml", 2)
    words = graph.op("Cast", [graph.input("numbers", np.int64, [4])], to=TensorProto.STRING)
    known = {"keys_strings": ["1", "2", "30"], "values_floats": [0.5, 1.5, -2.5], "default_float": 9.0}
    y = graph.op("LabelEncoder", [words], domain="ai.onnx.ml", **known)
    graph.output(graph.op("Mul", [y, y], output="y"), np.float32, [4])
    return Generated(graph.model(), {"sample": {"numbers": np.array([30, 1, 2, 7], np.int64)}})
