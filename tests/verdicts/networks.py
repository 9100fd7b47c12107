"""Small networks with random weights and several outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


@dataclass(frozen=True)
class Network:
    """A model whose outputs `first` and `second` have one shape, so that they can be exchanged."""

    model: ModelProto
    first: str
    second: str


def _weights(seed: int, shapes: dict[str, tuple[int, ...]]) -> dict[str, NDArray]:
    random = np.random.default_rng(seed)
    return {name: (random.standard_normal(shape) * 0.5).astype(np.float32) for name, shape in shapes.items()}


def model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, ...]],
    outputs: dict[str, int],
    weights: dict[str, NDArray],
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def node(op_type: str, inputs: str, outputs: str, name: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), name=name, **attributes)


def heads() -> Network:
    """A trunk with two heads of one shape."""
    nodes = [
        node("MatMul", "x w0", "h0", "trunk/mm"),
        node("Add", "h0 b0", "h1", "trunk/add"),
        node("Tanh", "h1", "h2", "trunk/tanh"),
        node("MatMul", "h2 w1", "a0", "left/mm"),
        node("Sigmoid", "a0", "left", "left/sigmoid"),
        node("MatMul", "h2 w2", "c0", "right/mm"),
        node("Softmax", "c0", "right", "right/softmax", axis=-1),
    ]
    weights = _weights(1, {"w0": (8, 16), "b0": (16,), "w1": (16, 6), "w2": (16, 6)})
    outputs = {"left": TensorProto.FLOAT, "right": TensorProto.FLOAT}
    return Network(model(nodes, {"x": (4, 8)}, outputs, weights), "left", "right")


def convolutions() -> Network:
    """Two convolutions, each of which is an output after pooling, and a classifier."""
    nodes = [
        node("Conv", "x k0", "c0", "conv0", pads=[1, 1, 1, 1]),
        node("Relu", "c0", "r0", "relu0"),
        node("Conv", "r0 k1", "c1", "conv1", pads=[1, 1, 1, 1]),
        node("LeakyRelu", "c1", "r1", "relu1", alpha=0.1),
        node("GlobalAveragePool", "r0", "p0", "pool0"),
        node("Flatten", "p0", "low", "flatten0"),
        node("GlobalAveragePool", "r1", "p1", "pool1"),
        node("Flatten", "p1", "high", "flatten1"),
        node("Gemm", "high w b", "logits", "fc", transB=1),
    ]
    weights = _weights(2, {"k0": (8, 3, 3, 3), "k1": (8, 8, 3, 3), "w": (5, 8), "b": (5,)})
    outputs = dict.fromkeys(("low", "high", "logits"), TensorProto.FLOAT)
    return Network(model(nodes, {"x": (2, 3, 10, 10)}, outputs, weights), "low", "high")


def attention() -> Network:
    """Attention that returns keys and values for a cache."""
    nodes = [node("LayerNormalization", "x g gb", "n", "norm", axis=-1)]
    for part in "qkv":
        nodes += [
            node("MatMul", f"n w{part}", f"{part}0", f"attention/{part}_proj"),
            node("Reshape", f"{part}0 split", f"{part}1", f"attention/{part}_split"),
        ]
    nodes += [
        node("Transpose", "q1", "q2", "attention/q_heads", perm=[0, 2, 1, 3]),
        node("Transpose", "k1", "present_key", "attention/k_heads", perm=[0, 2, 1, 3]),
        node("Transpose", "v1", "present_value", "attention/v_heads", perm=[0, 2, 1, 3]),
        node("Transpose", "present_key", "k3", "attention/k_turned", perm=[0, 1, 3, 2]),
        node("MatMul", "q2 k3", "s0", "attention/scores"),
        node("Mul", "s0 scale", "s1", "attention/scale"),
        node("Softmax", "s1", "s2", "attention/softmax", axis=-1),
        node("MatMul", "s2 present_value", "o0", "attention/mix"),
        node("Transpose", "o0", "o1", "attention/o_heads", perm=[0, 2, 1, 3]),
        node("Reshape", "o1 join", "o2", "attention/o_join"),
        node("MatMul", "o2 wo", "o3", "attention/o_proj"),
        node("Add", "o3 x", "hidden", "residual"),
    ]
    weights = _weights(3, {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, 8), "gb": (8,)})
    weights |= {
        "g": np.ones(8, np.float32) * 1.5,
        "split": np.array([2, 5, 2, 4], np.int64),
        "join": np.array([2, 5, 8], np.int64),
        "scale": np.array(0.5, np.float32),
    }
    outputs = dict.fromkeys(("hidden", "present_key", "present_value"), TensorProto.FLOAT)
    return Network(model(nodes, {"x": (2, 5, 8)}, outputs, weights), "present_key", "present_value")


def recurrent() -> Network:
    """An LSTM that returns its state."""
    nodes = [
        node("Transpose", "x", "t", "turn", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "y state cell", "lstm", hidden_size=6),
        node("Squeeze", "y one", "y1", "squeeze"),
        node("ReduceMean", "y1", "mean", "mean", axes=[0], keepdims=0),
    ]
    weights = _weights(4, {"w": (1, 24, 5), "r": (1, 24, 6), "b": (1, 48)})
    weights["one"] = np.array([1], np.int64)
    outputs = dict.fromkeys(("mean", "state", "cell"), TensorProto.FLOAT)
    return Network(model(nodes, {"x": (3, 7, 5)}, outputs, weights), "state", "cell")


def ranking() -> Network:
    """Scores of items, the best of them, and their numbers."""
    nodes = [
        node("Gemm", "x w b", "scores", "score", transB=1),
        node("TopK", "scores k", "best numbers", "topk", axis=-1),
        node("Exp", "best", "odds", "odds"),
        node("ArgMax", "scores", "choice", "choice", axis=-1, keepdims=0),
    ]
    weights = _weights(5, {"w": (9, 6), "b": (9,)}) | {"k": np.array([3], np.int64)}
    outputs = {
        "best": TensorProto.FLOAT,
        "odds": TensorProto.FLOAT,
        "numbers": TensorProto.INT64,
        "choice": TensorProto.INT64,
    }
    return Network(model(nodes, {"x": (4, 6)}, outputs, weights), "best", "odds")


NETWORKS: dict[str, Callable[[], Network]] = {
    "heads": heads,
    "convolutions": convolutions,
    "attention": attention,
    "recurrent": recurrent,
    "ranking": ranking,
}
