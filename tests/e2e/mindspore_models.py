"""ONNX models that represent the networks whose dumps by MindSpore are kept; nodes have MindSpore's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.helper import make_node, make_tensor_value_info, np_dtype_to_tensor_dtype

OPSET = 17
_CASTS = {
    "i8": ("int8", TensorProto.INT16),
    "i16": ("int16", TensorProto.INT8),
    "i32": ("int32", TensorProto.FLOAT),
    "i64": ("int64", TensorProto.INT32),
    "u8": ("uint8", TensorProto.UINT16),
    "u16": ("uint16", TensorProto.UINT8),
    "u32": ("uint32", TensorProto.UINT64),
    "u64": ("uint64", TensorProto.UINT32),
    "f16": ("float16", TensorProto.FLOAT),
    "f32": ("float32", TensorProto.FLOAT16),
    "f64": ("float64", TensorProto.FLOAT),
}


@dataclass(frozen=True)
class Network:
    """A model and a step's inputs."""

    model: ModelProto
    inputs: dict[str, NDArray]


def _network(
    nodes: Sequence,
    inputs: dict[str, NDArray],
    weights: dict[str, NDArray],
    outputs: Sequence[str],
    types: dict[str, int],
) -> Network:
    declared = [
        make_tensor_value_info(name, np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    results = [make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), None) for name in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "net", declared, results, initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    return Network(helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs)


def _floats(*shape: int) -> NDArray:
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3) / 4


def lenet() -> Network:
    weights = {
        "conv1.weight": _floats(2, 1, 5, 5),
        "conv2.weight": _floats(3, 2, 3, 3),
        "conv2.bias": _floats(3, 1, 1),
        "fc1.weight": _floats(12, 6),
        "fc1.bias": _floats(6),
        "fc2.weight": _floats(6, 3),
        "fc2.bias": _floats(3),
    }
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        make_node("Conv", ["x", "conv1.weight"], ["a"], "Default/conv1-Conv2d/Conv2D-op0"),
        make_node("Relu", ["a"], ["b"], "Default/relu-ReLU/ReLU-op0"),
        make_node("MaxPool", ["b"], ["c"], "Default/pool-MaxPool2d/MaxPool-op0", **pool),
        make_node("Conv", ["c", "conv2.weight"], ["d"], "Default/conv2-Conv2d/Conv2D-op0"),
        make_node("Add", ["d", "conv2.bias"], ["e"], "Default/conv2-Conv2d/BiasAdd-op0"),
        make_node("Relu", ["e"], ["f"], "Default/relu-ReLU/ReLU-op1"),
        make_node("MaxPool", ["f"], ["g"], "Default/pool-MaxPool2d/MaxPool-op1", **pool),
        make_node("Flatten", ["g"], ["h"], "Default/flatten-Flatten/Flatten-op0"),
        make_node("MatMul", ["h", "fc1.weight"], ["i"], "Default/fc1-Dense/MatMul-op0"),
        make_node("Add", ["i", "fc1.bias"], ["j"], "Default/fc1-Dense/BiasAdd-op0"),
        make_node("Relu", ["j"], ["k"], "Default/relu-ReLU/ReLU-op2"),
        make_node("MatMul", ["k", "fc2.weight"], ["l"], "Default/fc2-Dense/MatMul-op0"),
        make_node("Add", ["l", "fc2.bias"], ["y"], "Default/fc2-Dense/BiasAdd-op0"),
    ]
    return _network(nodes, {"x": _floats(2, 1, 16, 16)}, weights, ["y"], {})


def branches() -> Network:
    """An `If` whose bodies read a value from outside."""
    result = [make_tensor_value_info("r", TensorProto.FLOAT, None)]
    then_body = helper.make_graph([make_node("Relu", ["m"], ["r"], "Default/ReLU-op0")], "then", [], result)
    else_body = helper.make_graph([make_node("Tanh", ["m"], ["r"], "Default/Tanh-op0")], "else", [], result)
    nodes = [
        make_node("Mul", ["x", "w"], ["m"], "Default/Mul-op0"),
        make_node("ReduceSum", ["m"], ["s"], "Expand/_SumExt/ReduceSum-op0", keepdims=0),
        make_node("Greater", ["s", "ten"], ["is_more"], "Default/Greater-op0"),
        make_node("If", ["is_more"], ["t"], "Default/If-op0", then_branch=then_body, else_branch=else_body),
        make_node("Add", ["t", "one"], ["y"], "Default/Add-op1"),
    ]
    scalars = {"w": np.float32(2), "ten": np.float32(10), "one": np.float32(1)}
    weights = {name: np.asarray(value) for name, value in scalars.items()}
    return _network(nodes, {"x": np.arange(4, dtype=np.float32)}, weights, ["y"], {})


def dtypes() -> Network:
    values = np.array([[1.5, -2.25, 3], [0, 5, -6]])
    inputs, nodes, outputs, types = {}, [], [], {}
    for i, (name, (dtype, to)) in enumerate(_CASTS.items()):
        inputs[name] = (np.abs(values) if dtype.startswith("u") else values).astype(dtype)
        nodes.append(make_node("Cast", [name], [f"{name}_"], f"Default/Cast-op{i}", to=to))
        outputs.append(f"{name}_")
        types[f"{name}_"] = to
    inputs["b"] = values > 0
    nodes.append(make_node("Not", ["b"], ["b_"], "Default/LogicalNot-op0"))
    return _network(nodes, inputs, {}, [*outputs, "b_"], {**types, "b_": TensorProto.BOOL})


def shapes() -> Network:
    nodes = [
        make_node("Relu", ["s"], ["s_"], "Default/ReLU-op0"),
        make_node("Relu", ["e"], ["e_"], "Default/ReLU-op1"),
        make_node("Relu", ["h"], ["h_"], "Default/ReLU-op2"),
    ]
    inputs = {"s": np.array(3.5, np.float32), "e": np.zeros((0, 3), np.float32), "h": _floats(2, 3, 2, 2, 2)}
    return _network(nodes, inputs, {}, ["s_", "e_", "h_"], {})


def constants() -> Network:
    value = numpy_helper.from_array(_floats(2, 3))
    nodes = [
        make_node("Constant", [], ["c"], "Default/Constant-op0", value=value),
        make_node("Add", ["x", "c"], ["y"], "Default/Add-op0"),
    ]
    return _network(nodes, {"x": _floats(2, 3)}, {}, ["y"], {})


def long_names() -> Network:
    nodes, value, scope, weight = [], "x", "", "sub"
    for depth in range(9, 0, -1):
        scope += f"a_rather_long_block_name_{depth}-Net/"
        weight += f".a_rather_long_block_name_{depth}"
        nodes.append(make_node("Relu", [value], [f"v{depth}"], f"Default/{scope}ReLU-op0"))
        value = f"v{depth}"
    nodes.append(make_node("MatMul", [value, f"{weight}.fc.weight"], ["y"], f"Default/{scope}fc-Dense/MatMul-op0"))
    return _network(nodes, {"x": _floats(2, 4)}, {f"{weight}.fc.weight": _floats(4, 4)}, ["y"], {})


def odd_parameter() -> Network:
    nodes = [make_node("Mul", ["x", "my-w.a/b c\\d"], ["y"], "Default/Mul-op0")]
    return _network(nodes, {"x": _floats(4)}, {"my-w.a/b c\\d": _floats(4)}, ["y"], {})


def single(op_type: str, name: str) -> Callable[[], Network]:
    """One operator, which reads the input alone."""
    return lambda: _network([make_node(op_type, ["x"], ["y"], name)], {"x": _floats(4)}, {}, ["y"], {})
