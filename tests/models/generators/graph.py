"""A thin layer over `onnx.helper` that names values as PyTorch's exporter does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import ArrayLike, DTypeLike, NDArray
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

    def __init__(self, name: str, seed: int = 0, opset: int = OPSET) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self._opsets = {"": opset}
        self._n_named: Counter[str] = Counter()
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

    def op(self, op_type: str, inputs: Sequence[str], scope: str = "", output: str | None = None, **attributes) -> str:
        """Append an operator named `{scope}/{op_type}`, which the exporter numbers from the second on."""
        return self.node(op_type, inputs, self._next_name(scope, op_type), output, **attributes)

    def ops(self, op_type: str, inputs: Sequence[str], n_outputs: int, scope: str = "", **attributes) -> list[str]:
        """The same with several outputs."""
        return self.nodes(op_type, inputs, self._next_name(scope, op_type), n_outputs, **attributes)

    def number(self, value: ArrayLike, scope: str = "", dtype: DTypeLike = np.float32) -> str:
        """A Constant node, named and numbered like any operator."""
        return self.constant(self._next_name(scope, "Constant"), np.array(value, dtype))

    def integers(self, value: int | Sequence[int], scope: str = "") -> str:
        """A Constant node of int64, as axes and shapes have them."""
        return self.number(value, scope, np.int64)

    def size(self, value: str, axis: int, scope: str = "") -> str:
        """The length of one axis as a scalar, the way an exporter spells `x.size(axis)`."""
        shape = self.op("Shape", [value], scope)
        return self.op("Gather", [shape, self.integers(axis, scope)], scope, axis=0)

    def shape_of(self, parts: Sequence[int | str], scope: str = "") -> str:
        """A vector of constant lengths and of scalars that operators compute."""
        axes = self.integers([0], scope)
        vectors = [
            self.integers([part], scope) if isinstance(part, int) else self.op("Unsqueeze", [part, axes], scope)
            for part in parts
        ]
        return self.op("Concat", vectors, scope, axis=0)

    def use_domain(self, domain: str, version: int) -> None:
        """Import another operator set."""
        self._opsets[domain] = version

    def proto(self) -> onnx.GraphProto:
        return helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._initializers)

    def model(self) -> onnx.ModelProto:
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._opsets.items()]
        model = helper.make_model(self.proto(), ir_version=IR_VERSION, opset_imports=opsets)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _next_name(self, scope: str, op_type: str) -> str:
        name = f"{scope}/{op_type}"
        n_before = self._n_named[name]
        self._n_named[name] += 1
        return f"{name}_{n_before}" if n_before else name


def value_info(name: str, dtype: DTypeLike, shape: Sequence[Dim]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, tensor_type(dtype), shape)


def tensor_type(dtype: DTypeLike) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
