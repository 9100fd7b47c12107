"""GPT-2 as PyTorch's exporter lays it out: a causal mask by Trilu and Where, any batch and length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from .graph import Generated, Graph, tensor_type
from .layers import gelu_by_tanh, layer_norm, weight_name

OPSET = 17


@dataclass(frozen=True)
class Size:
    n_layers: int
    n_heads: int
    n: int
    n_tokens: int
    max_length: int
    sample_shape: tuple[int, int]


FULL = Size(12, 12, 768, 50257, 1024, (1, 64))
SMALL = Size(2, 4, 32, 70, 32, (2, 7))


def gpt2(is_full: bool) -> Generated:
    """At full size 124 million weights, its sample 64 tokens; else two layers of 32 channels."""
    s = FULL if is_full else SMALL
    graph = Graph("main_graph", seed=124, opset=OPSET)
    ids = graph.input("input_ids", np.int64, ["batch", "seq"])
    length = graph.size(ids, 1, "/transformer")
    tokens = graph.random("transformer.wte.weight", [s.n_tokens, s.n], scale=0.2)
    places = graph.random("transformer.wpe.weight", [s.max_length, s.n], scale=0.1)
    zero, one = graph.integers(0, "/transformer"), graph.integers(1, "/transformer")
    position = graph.op("Range", [zero, length, one], "/transformer")
    position = graph.op("Unsqueeze", [position, graph.integers([0], "/transformer")], "/transformer")
    token = graph.op("Gather", [tokens, ids], "/transformer/wte")
    x = graph.op("Add", [token, graph.op("Gather", [places, position], "/transformer/wpe")], "/transformer")
    for layer in range(s.n_layers):
        scope = f"/transformer/h.{layer}"
        x = graph.op(
            "Add", [_attention(graph, s, layer_norm(graph, x, f"{scope}/ln_1", s.n), f"{scope}/attn"), x], scope
        )
        y = _projected(graph, layer_norm(graph, x, f"{scope}/ln_2", s.n), f"{scope}/mlp/c_fc", s.n, 4 * s.n)
        y = _projected(graph, gelu_by_tanh(graph, y, f"{scope}/mlp/act"), f"{scope}/mlp/c_proj", 4 * s.n, s.n)
        x = graph.op("Add", [x, y], scope)
    x = layer_norm(graph, x, "/transformer/ln_f", s.n)
    # The weights of the last layer are those of the first.
    turned = graph.op("Transpose", [tokens], "/lm_head", perm=[1, 0])
    graph.output(graph.op("MatMul", [x, turned], "/lm_head", "logits"), np.float32, ["batch", "seq", s.n_tokens])
    sample = graph.rng.integers(0, s.n_tokens, s.sample_shape, dtype=np.int64)
    return Generated(graph.model(), {"sample": {"input_ids": sample}})


def _projected(graph: Graph, x: str, scope: str, n_in: int, n_out: int) -> str:
    """A matrix product of rows, for which batch and length become one axis."""
    weight = graph.random(weight_name(scope, "weight"), [n_in, n_out], scale=n_in**-0.5)
    bias = graph.random(weight_name(scope, "bias"), [n_out], scale=0.1)
    shape = graph.shape_of([graph.size(x, 0, scope), graph.size(x, 1, scope), n_out], scope)
    rows = graph.op("Reshape", [x, graph.integers([-1, n_in], scope)], scope, allowzero=0)
    return graph.op(
        "Reshape", [graph.op("Gemm", [rows, weight, bias], scope, alpha=1.0, beta=1.0), shape], scope, allowzero=0
    )


def _causal(graph: Graph, queries: str, keys: str, scope: str) -> str:
    """bool [queries, keys]: true where a query may look at a key."""
    ones = graph.op(
        "ConstantOfShape",
        [graph.shape_of([queries, keys], scope)],
        scope,
        value=numpy_helper.from_array(np.ones(1, np.float32)),
    )
    return graph.op("Cast", [graph.op("Trilu", [ones], scope, upper=0)], scope, to=tensor_type(np.bool_))


def _attention(graph: Graph, s: Size, x: str, scope: str) -> str:
    n_head = s.n // s.n_heads
    lengths = graph.integers([s.n] * 3, scope)
    parts = graph.ops("Split", [_projected(graph, x, f"{scope}/c_attn", s.n, 3 * s.n), lengths], 3, scope, axis=2)

    def heads(part: str, perm: list[int]) -> str:
        shape = graph.shape_of([graph.size(part, 0, scope), graph.size(part, 1, scope), s.n_heads, n_head], scope)
        return graph.op("Transpose", [graph.op("Reshape", [part, shape], scope, allowzero=0)], scope, perm=perm)

    query, key, value = (
        heads(part, perm) for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
    )
    scores = graph.op("Div", [graph.op("MatMul", [query, key], scope), graph.number(n_head**0.5, scope)], scope)
    mask = _causal(graph, graph.size(query, -2, scope), graph.size(key, -1, scope), scope)
    lowest = graph.number(np.finfo(np.float32).min, scope)
    weights = graph.op("Softmax", [graph.op("Where", [mask, scores, lowest], scope)], scope, axis=-1)
    mixed = graph.op("Transpose", [graph.op("MatMul", [weights, value], scope)], scope, perm=[0, 2, 1, 3])
    joined = graph.shape_of([graph.size(mixed, 0, scope), graph.size(mixed, 1, scope), s.n], scope)
    mixed = graph.op("Reshape", [mixed, joined], scope, allowzero=0)
    return _projected(graph, mixed, f"{scope}/c_proj", s.n, s.n)
