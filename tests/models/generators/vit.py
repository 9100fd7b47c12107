"""ViT-S/16 as PyTorch's exporter lays it out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Generated, Graph
from .layers import conv, gelu, gemm, layer_norm, linear, weight_name


@dataclass(frozen=True)
class Size:
    image: int
    patch: int
    n_layers: int
    n_heads: int
    n: int
    n_classes: int

    @property
    def n_patches(self) -> int:
        return (self.image // self.patch) ** 2


FULL = Size(224, 16, 12, 6, 384, 1000)
SMALL = Size(32, 8, 2, 2, 32, 10)


def vit(is_full: bool) -> Generated:
    """At full size 22 million weights; else two layers of 32 channels on 16 patches."""
    s = FULL if is_full else SMALL
    graph = Graph("main_graph", seed=16)
    image = graph.input("input", np.float32, ["batch", 3, s.image, s.image])
    x = _embedding(graph, s, image)
    for layer in range(s.n_layers):
        scope = f"/blocks/blocks.{layer}"
        x = graph.op(
            "Add", [x, _attention(graph, s, layer_norm(graph, x, f"{scope}/norm1", s.n), f"{scope}/attn")], scope
        )
        y = linear(graph, layer_norm(graph, x, f"{scope}/norm2", s.n), f"{scope}/mlp/fc1", s.n, 4 * s.n)
        y = linear(graph, gelu(graph, y, f"{scope}/mlp/act"), f"{scope}/mlp/fc2", 4 * s.n, s.n)
        x = graph.op("Add", [x, y], scope)
    x = layer_norm(graph, x, "/norm", s.n, epsilon=1e-6)
    first = graph.op("Gather", [x, graph.integers(0)], axis=1)
    graph.output(gemm(graph, first, "/head", s.n, s.n_classes, "output"), np.float32, ["batch", s.n_classes])
    pixels = graph.rng.standard_normal([1, 3, s.image, s.image]).astype(np.float32)
    return Generated(graph.model(), {"sample": {"input": pixels}})


def _embedding(graph: Graph, s: Size, image: str) -> str:
    """One row for each patch, a row for the class before them, and their positions."""
    x = conv(graph, image, "/patch_embed/proj", 3, s.n, s.patch, s.patch)
    shape = graph.op("Shape", [x], "/patch_embed")
    zero, two = graph.integers([0], "/patch_embed"), graph.integers([2], "/patch_embed")
    kept = graph.op("Slice", [shape, zero, two, zero], "/patch_embed")
    flat = graph.op("Concat", [kept, graph.integers([-1], "/patch_embed")], "/patch_embed", axis=0)
    x = graph.op("Reshape", [x, flat], "/patch_embed", allowzero=0)
    x = graph.op("Transpose", [x], "/patch_embed", perm=[0, 2, 1])
    token = graph.random("cls_token", [1, 1, s.n], scale=0.02)
    rows = graph.op("Expand", [token, graph.shape_of([graph.size(x, 0), 1, s.n])])
    x = graph.op("Concat", [rows, x], axis=1)
    return graph.op("Add", [x, graph.random("pos_embed", [1, s.n_patches + 1, s.n], scale=0.02)])


def _attention(graph: Graph, s: Size, x: str, scope: str) -> str:
    batch, length = graph.size(x, 0, scope), graph.size(x, 1, scope)
    weight = graph.random(weight_name(f"{scope}/qkv", "weight"), [s.n, 3 * s.n], scale=s.n**-0.5)
    bias = graph.random(weight_name(f"{scope}/qkv", "bias"), [3 * s.n], scale=0.1)
    joined = graph.op("Add", [bias, graph.op("MatMul", [x, weight], f"{scope}/qkv")], f"{scope}/qkv")
    split = graph.shape_of([batch, length, 3, s.n_heads, s.n // s.n_heads], scope)
    joined = graph.op("Reshape", [joined, split], scope, allowzero=0)
    joined = graph.op("Transpose", [joined], scope, perm=[2, 0, 3, 1, 4])
    axis = graph.integers([0], scope)
    parts = graph.ops("Split", [joined], 3, scope, axis=0, num_outputs=3)
    query, key, value = (graph.op("Squeeze", [part, axis], scope) for part in parts)
    query = graph.op("Mul", [query, graph.number((s.n / s.n_heads) ** -0.5, scope)], scope)
    scores = graph.op("MatMul", [query, graph.op("Transpose", [key], scope, perm=[0, 1, 3, 2])], scope)
    mixed = graph.op("MatMul", [graph.op("Softmax", [scores], scope, axis=-1), value], scope)
    mixed = graph.op("Transpose", [mixed], scope, perm=[0, 2, 1, 3])
    mixed = graph.op("Reshape", [mixed, graph.shape_of([batch, length, s.n], scope)], scope, allowzero=0)
    return linear(graph, mixed, f"{scope}/proj", s.n, s.n)
