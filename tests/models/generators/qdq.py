"""Quantising a convolutional network to eight bits in QDQ form, without running it."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

# Operators whose inputs and outputs are quantised; others see what happens to be between two of them.
QUANTISED = ("Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool")
WEIGHTED = ("Conv", "Gemm")
N_DEVIATIONS = 6
# How much of the mean square a Relu keeps: half of what is symmetric, more of a sum to which it gave a part before.
KEPT_BY_RELU, KEPT_OF_SUM = 0.5, 0.8


def quantised(model: ModelProto) -> ModelProto:
    """uint8 activations, int8 weights with a scale for each output channel, int32 biases.

    Ranges are not measured but follow from He-scaled weights: a convolution doubles the mean square, a Relu halves it.
    """
    return _Quantiser(model).run()


class _Quantiser:
    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.mean_squares = {value.name: 1.0 for value in model.graph.input}
        self.is_positive: set[str] = set()
        self.is_partly_positive: set[str] = set()
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, NDArray] = {}
        # The value that readers see in place of another, and the scale it was rounded with.
        self.seen_as: dict[str, tuple[str, float]] = {}

    def run(self) -> ModelProto:
        for node in self.model.graph.node:
            self._follow_range(node)
            new = NodeProto()
            new.CopyFrom(node)
            if node.op_type in QUANTISED:
                self._read_rounded(new)
            self.nodes.append(new)
        graph = helper.make_graph(
            self.nodes,
            self.model.graph.name,
            self.model.graph.input,
            self.model.graph.output,
            [numpy_helper.from_array(array, name) for name, array in self.initializers.items()],
        )
        model = helper.make_model(graph, ir_version=self.model.ir_version, opset_imports=self.model.opset_import)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _follow_range(self, node: NodeProto) -> None:
        squares = [self.mean_squares[name] for name in node.input if name in self.mean_squares]
        kept = KEPT_OF_SUM if node.input[0] in self.is_partly_positive else KEPT_BY_RELU
        factor = {"Conv": 2, "Gemm": 2, "Relu": kept, "MaxPool": 2}.get(node.op_type, 1)
        self.mean_squares[node.output[0]] = sum(squares) * factor
        if node.op_type == "Add" and self.is_positive & set(node.input):
            self.is_partly_positive.add(node.output[0])
        stays_positive = node.op_type in ("MaxPool", "GlobalAveragePool", "Flatten")
        if node.op_type == "Relu" or (stays_positive and node.input[0] in self.is_positive):
            self.is_positive.add(node.output[0])

    def _read_rounded(self, node: NodeProto) -> None:
        scale = 1.0
        for idx, name in enumerate(node.input):
            if name not in self.weights:
                node.input[idx], scale = self._rounded(name)
        if node.op_type in WEIGHTED:
            weight, bias = node.input[1:3]
            node.input[1] = self._weight(weight)
            node.input[2] = self._bias(bias, scale * self.initializers[f"{weight}_scale"])

    def _rounded(self, name: str) -> tuple[str, float]:
        if name not in self.seen_as:
            is_positive = name in self.is_positive
            reach = N_DEVIATIONS * self.mean_squares[name] ** 0.5
            scale = np.float32(reach / 255 if is_positive else 2 * reach / 255)
            self.initializers[f"{name}_scale"] = np.array(scale)
            self.initializers[f"{name}_zero_point"] = np.array(0 if is_positive else 128, np.uint8)
            parameters = [f"{name}_scale", f"{name}_zero_point"]
            rounded, restored = f"{name}_QuantizeLinear_Output", f"{name}_DequantizeLinear_Output"
            self._add("QuantizeLinear", [name, *parameters], rounded, f"{name}_QuantizeLinear")
            self._add("DequantizeLinear", [rounded, *parameters], restored, f"{name}_DequantizeLinear")
            self.seen_as[name] = restored, float(scale)
        return self.seen_as[name]

    def _weight(self, name: str) -> str:
        weight = self.weights[name]
        flat = np.abs(weight.reshape(len(weight), -1)).max(axis=1)
        scale = (np.maximum(flat, 1e-8) / 127).astype(np.float32)
        column = scale.reshape(-1, *[1] * (weight.ndim - 1))
        self.initializers[f"{name}_quantized"] = np.clip(np.rint(weight / column), -127, 127).astype(np.int8)
        self.initializers[f"{name}_scale"] = scale
        self.initializers[f"{name}_zero_point"] = np.zeros(len(weight), np.int8)
        return self._restored(name)

    def _bias(self, name: str, scale: NDArray) -> str:
        bias = self.weights[name]
        self.initializers[f"{name}_quantized"] = np.rint(bias / scale).astype(np.int32)
        self.initializers[f"{name}_scale"] = scale.astype(np.float32)
        self.initializers[f"{name}_zero_point"] = np.zeros(len(bias), np.int32)
        return self._restored(name)

    def _restored(self, name: str) -> str:
        inputs = [f"{name}_quantized", f"{name}_scale", f"{name}_zero_point"]
        return self._add(
            "DequantizeLinear", inputs, f"{name}_DequantizeLinear_Output", f"{name}_DequantizeLinear", axis=0
        )

    def _add(self, op_type: str, inputs: list[str], output: str, name: str, **attributes: int) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [output], name, **attributes))
        return output
