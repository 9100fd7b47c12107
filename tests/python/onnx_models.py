"""A model whose values numpy computes exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

N_IN, N_OUT = 4, 3
WEIGHT = np.arange(N_IN * N_OUT, dtype=np.float32).reshape(N_IN, N_OUT) - 5
BIAS = np.array([1, -20, 0.5], np.float32)
# Every sum and product of these is exact in float32.
INPUT = np.array([[1, -2, 3, 0.5], [0, 0, -0.25, 8]], np.float32)


def write_linear(folder: Path) -> Path:
    """`relu(x @ weight + bias)` as three operators named `layer/matmul`, `layer/add` and `layer/relu`."""
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"], "layer/matmul"),
        helper.make_node("Add", ["product", "bias"], ["sum"], "layer/add"),
        helper.make_node("Relu", ["sum"], ["y"], "layer/relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, INPUT.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [len(INPUT), N_OUT])],
        [numpy_helper.from_array(WEIGHT, "weight"), numpy_helper.from_array(BIAS, "bias")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path = folder / "linear.onnx"
    onnx.save(model, path)
    np.save(folder / "x.npy", INPUT)
    return path


def linear_values() -> dict[tuple[str, str, int], NDArray[np.float32]]:
    """Each tensor by operator name, side and slot, in order of execution."""
    product = INPUT @ WEIGHT
    total = product + BIAS
    return {
        ("layer/matmul", "input", 0): INPUT,
        ("layer/matmul", "input", 1): WEIGHT,
        ("layer/matmul", "output", 0): product,
        ("layer/add", "input", 0): product,
        ("layer/add", "input", 1): BIAS,
        ("layer/add", "output", 0): total,
        ("layer/relu", "input", 0): total,
        ("layer/relu", "output", 0): np.maximum(total, 0),
    }
