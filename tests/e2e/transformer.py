"""A small transformer with random weights, as it is exported, and as a compiler might fuse it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

WIDTH, N_HEADS, N_TOKENS = 8, 2, 5
N_BLOCKS = 3


@dataclass
class Transformer:
    """`is_fused`: linear layers are one operator, and an operator reads the input of a cast directly.

    The exported form has a `MatMul` and an `Add` in place of each `Gemm`, and an `Identity` that the fused one lacks.
    The fused one has separate reshapes around each `Gemm`, under names that say nothing.
    """

    is_fused: bool
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(17))

    def add(self, op_type: str, name: str, inputs: list[str], **attributes: object) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [f"{name}_output"], name, **attributes))
        return f"{name}_output"

    def weight(self, name: str, array: NDArray) -> str:
        if name not in [known.name for known in self.weights]:
            self.weights.append(numpy_helper.from_array(array, name))
        return name

    def linear(self, path: str, x: str, n_in: int, n_out: int) -> str:
        weight = self.random.normal(size=(n_in, n_out)) / n_in**0.5
        weight = self.weight(f"{path[1:]}.weight", weight.astype(np.float32))
        bias = self.weight(f"{path[1:]}.bias", self.random.normal(size=n_out).astype(np.float32))
        if not self.is_fused:
            return self.add("Add", f"{path}/Add", [self.add("MatMul", f"{path}/MatMul", [x, weight]), bias])
        number = len(self.nodes)
        flat = self.weight(f"flat{n_in}", np.int64([-1, n_in]))
        rows = self.add("Reshape", f"gemm_input_reshape_{number}", [x, flat])
        product = self.add("Gemm", f"{path}/MatMul/MatMulAddFusion", [rows, weight, bias])
        full = self.weight(f"full{n_out}", np.int64([1, N_TOKENS, n_out]))
        return self.add("Reshape", f"gemm_output_reshape_{number}", [product, full])

    def heads(self, path: str, x: str, perm: list[int]) -> str:
        split = self.weight("split", np.int64([1, N_TOKENS, N_HEADS, WIDTH // N_HEADS]))
        return self.add("Transpose", f"{path}/Transpose", [self.add("Reshape", f"{path}/Reshape", [x, split])], perm=perm)

    def norm(self, path: str, x: str) -> str:
        scale = self.weight(f"{path[1:]}.weight", (1 + 0.1 * self.random.normal(size=WIDTH)).astype(np.float32))
        return self.add("LayerNormalization", f"{path}/LayerNormalization", [x, scale], axis=-1)

    def block(self, path: str, x: str) -> str:
        y = self.norm(f"{path}/ln1", x)
        query, key, value = (
            self.heads(f"{path}/attn/{part}", self.linear(f"{path}/attn/{part}", y, WIDTH, WIDTH), perm)
            for part, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))
        )
        scores = self.add("MatMul", f"{path}/attn/MatMul", [query, key])
        if not self.is_fused:
            scores = self.add("Identity", f"{path}/attn/Identity", [scores])
        weights = self.add("Softmax", f"{path}/attn/Softmax", [scores], axis=-1)
        mixed = self.add("MatMul", f"{path}/attn/MatMul_1", [weights, value])
        mixed = self.add("Transpose", f"{path}/attn/Transpose_1", [mixed], perm=[0, 2, 1, 3])
        joined = self.weight("joined", np.int64([1, N_TOKENS, WIDTH]))
        mixed = self.add("Reshape", f"{path}/attn/Reshape_1", [mixed, joined])
        x = self.add("Add", f"{path}/Add", [x, self.linear(f"{path}/attn/out", mixed, WIDTH, WIDTH)])
        y = self.linear(f"{path}/mlp/up", self.norm(f"{path}/ln2", x), WIDTH, 2 * WIDTH)
        y = self.add("Relu", f"{path}/mlp/Relu", [y])
        return self.add("Add", f"{path}/Add_1", [x, self.linear(f"{path}/mlp/down", y, 2 * WIDTH, WIDTH)])

    def model(self) -> ModelProto:
        x = "x"
        for number in range(N_BLOCKS):
            x = self.block(f"/blocks.{number}", x)
        x = self.norm("/norm", x)
        shape = [1, N_TOKENS, WIDTH]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", x)]
        graph = helper.make_graph(self.nodes, "transformer", ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checker.check_model(model)
        return model


def tokens() -> NDArray:
    return np.random.default_rng(3).normal(size=(1, N_TOKENS, WIDTH)).astype(np.float32)


def with_other_bias(model: ModelProto, name: str) -> ModelProto:
    """Adds to two elements of a bias."""
    (bias,) = (tensor for tensor in model.graph.initializer if tensor.name == name)
    values = numpy_helper.to_array(bias).copy()
    values[2:4] += np.float32(0.5)
    bias.CopyFrom(numpy_helper.from_array(values, name))
    return model
