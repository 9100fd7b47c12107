"""A thin layer over `onnx.helper` that names values as PyTorch's exporter does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 18, 9

Dim = int | str
Inputs = Mapping[str, NDArray]


class Generated(NamedTuple):
    """A model and the input sets to run it with, each under a label."""

    model: onnx.ModelProto
    input_sets: Mapping[str, Inputs]


class Graph:
    """A graph under construction. Every method that makes a value returns the value's name."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: DTypeLike, shape: Sequence[Dim]) -> str:
        self._inputs.append(value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: DTypeLike, shape: Sequence[Dim]) -> None:
        self._outputs.append(value_info(name, dtype, shape))

    def initializer(self, name: str, values: NDArray) -> str:
        self._initializers.append(numpy_helper.from_array(values, name))
        return name

    def random(self, name: str, shape: Sequence[int], scale: float | None = None) -> str:
        """Normal float32 weights; by default He-scaled for a weight laid out [out, in, ...]."""
        deviation = np.sqrt(2 / np.prod(shape[1:])) if scale is None else scale
        return self.initializer(name, (self.rng.standard_normal(shape) * deviation).astype(np.float32))

    def node(self, op_type: str, inputs: Sequence[str], name: str, output: str | None = None, **attributes) -> str:
        """Append an operator with one output, named after the operator unless `output` is given."""
        value = f"{name}_output_0" if output is None else output
        self._nodes.append(helper.make_node(op_type, inputs, [value], name, **attributes))
        return value

    def nodes(self, op_type: str, inputs: Sequence[str], name: str, n_outputs: int, **attributes) -> list[str]:
        """Append an operator with several outputs, named after the operator."""
        values = [f"{name}_output_{i}" for i in range(n_outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, values, name, **attributes))
        return values

    def constant(self, name: str, values: NDArray) -> str:
        """A Constant node, which no engine executes."""
        return self.node("Constant", [], name, value=numpy_helper.from_array(values))

    def proto(self) -> onnx.GraphProto:
        return helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._initializers)

    def model(self) -> onnx.ModelProto:
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(self.proto(), ir_version=IR_VERSION, opset_imports=[opset])
        onnx.checker.check_model(model, full_check=True)
        return model


def value_info(name: str, dtype: DTypeLike, shape: Sequence[Dim]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, tensor_type(dtype), shape)


def tensor_type(dtype: DTypeLike) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
