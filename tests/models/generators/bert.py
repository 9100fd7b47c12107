"""BERT's encoder and pooler as PyTorch's exporter lays them out for opset 17, LayerNormalization in small operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Generated, Graph, tensor_type
from .layers import gelu, gemm, linear, norm_weights

OPSET = 17
N_TYPES = 2
EPSILON = 1e-12


@dataclass(frozen=True)
class Size:
    n_layers: int
    n_heads: int
    n: int
    n_tokens: int
    max_length: int
    sample_shape: tuple[int, int]


FULL = Size(12, 12, 768, 30522, 512, (1, 64))
SMALL = Size(2, 4, 32, 60, 32, (2, 9))


def bert(is_full: bool) -> Generated:
    """At full size BERT-base with 109 million weights, its sample 64 tokens; else two layers of 32 channels."""
    s = FULL if is_full else SMALL
    graph = Graph("main_graph", seed=12, opset=OPSET)
    ids, mask, types = (
        graph.input(name, np.int64, ["batch", "seq"]) for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    hidden = _mask(graph, mask)
    x = _embeddings(graph, s, ids, types)
    for layer in range(s.n_layers):
        x = _layer(graph, s, x, hidden, f"/encoder/layer.{layer}")
    graph.output(graph.op("Identity", [x], output="last_hidden_state"), np.float32, ["batch", "seq", s.n])
    first = graph.op("Gather", [x, graph.integers(0, "/pooler")], "/pooler", axis=1)
    pooled = graph.op("Tanh", [gemm(graph, first, "/pooler/dense", s.n, s.n)], "/pooler/activation", "pooler_output")
    graph.output(pooled, np.float32, ["batch", s.n])
    return Generated(graph.model(), {"sample": _sample(graph, s)})


def _sample(graph: Graph, s: Size) -> dict[str, np.ndarray]:
    """Tokens, the last ones of which are padding, in two sentences."""
    batch, length = s.sample_shape
    mask = np.ones(s.sample_shape, np.int64)
    mask[-1, -length // 4 :] = 0
    types = np.tile(np.arange(length) >= length // 2, (batch, 1)).astype(np.int64)
    ids = graph.rng.integers(0, s.n_tokens, s.sample_shape, dtype=np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _mask(graph: Graph, mask: str) -> str:
    """float32 [batch, 1, 1, seq]: zero for tokens, the lowest number for padding."""
    mask = graph.op("Unsqueeze", [mask, graph.integers([1])])
    mask = graph.op("Cast", [graph.op("Unsqueeze", [mask, graph.integers([2])])], to=tensor_type(np.float32))
    mask = graph.op("Sub", [graph.number(1), mask])
    return graph.op("Mul", [mask, graph.number(np.finfo(np.float32).min)])


def _embeddings(graph: Graph, s: Size, ids: str, types: str) -> str:
    scope = "/embeddings"
    shape = graph.op("Shape", [ids], scope)
    end = graph.op("Unsqueeze", [graph.op("Gather", [shape, graph.integers(1, scope)], scope, axis=0),
                                 graph.integers([0], scope)], scope)  # fmt: skip
    known = graph.initializer("embeddings.position_ids", np.arange(s.max_length, dtype=np.int64)[None])
    places = graph.op("Slice", [known, graph.integers([0], scope), end, graph.integers([1], scope)], scope)
    tables = {"word": (s.n_tokens, ids), "token_type": (N_TYPES, types), "position": (s.max_length, places)}
    word, kind, place = (
        graph.op(
            "Gather",
            [graph.random(f"embeddings.{name}_embeddings.weight", [n_rows, s.n], scale=0.5), rows],
            f"{scope}/{name}_embeddings",
        )
        for name, (n_rows, rows) in tables.items()
    )
    x = graph.op("Add", [graph.op("Add", [word, kind], scope), place], scope)
    return _norm(graph, s, x, f"{scope}/LayerNorm")


def _norm(graph: Graph, s: Size, x: str, scope: str) -> str:
    centred = graph.op("Sub", [x, graph.op("ReduceMean", [x], scope, axes=[-1])], scope)
    squares = graph.op("Pow", [centred, graph.number(2, scope)], scope)
    variance = graph.op("ReduceMean", [squares], scope, axes=[-1])
    deviation = graph.op("Sqrt", [graph.op("Add", [variance, graph.number(EPSILON, scope)], scope)], scope)
    scale, shift = norm_weights(graph, scope, s.n)
    scaled = graph.op("Mul", [graph.op("Div", [centred, deviation], scope), scale], scope)
    return graph.op("Add", [scaled, shift], scope)


def _layer(graph: Graph, s: Size, x: str, hidden: str, scope: str) -> str:
    mixed = linear(
        graph, _attention(graph, s, x, hidden, f"{scope}/attention/self"), f"{scope}/attention/output/dense", s.n, s.n
    )
    added = graph.op("Add", [mixed, x], f"{scope}/attention/output")
    x = _norm(graph, s, added, f"{scope}/attention/output/LayerNorm")
    y = linear(graph, x, f"{scope}/intermediate/dense", s.n, 4 * s.n)
    y = linear(graph, gelu(graph, y, f"{scope}/intermediate/act"), f"{scope}/output/dense", 4 * s.n, s.n)
    return _norm(graph, s, graph.op("Add", [y, x], f"{scope}/output"), f"{scope}/output/LayerNorm")


def _attention(graph: Graph, s: Size, x: str, hidden: str, scope: str) -> str:
    n_head = s.n // s.n_heads

    def heads(part: str, perm: list[int]) -> str:
        y = linear(graph, x, f"{scope}/{part}", s.n, s.n)
        shape = graph.shape_of([graph.size(y, 0, scope), graph.size(y, 1, scope), s.n_heads, n_head], scope)
        return graph.op("Transpose", [graph.op("Reshape", [y, shape], scope, allowzero=0)], scope, perm=perm)

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = graph.op("Div", [graph.op("MatMul", [query, key], scope), graph.number(n_head**0.5, scope)], scope)
    weights = graph.op("Softmax", [graph.op("Add", [scores, hidden], scope)], scope, axis=-1)
    mixed = graph.op("Transpose", [graph.op("MatMul", [weights, value], scope)], scope, perm=[0, 2, 1, 3])
    joined = graph.shape_of([graph.size(mixed, 0, scope), graph.size(mixed, 1, scope), s.n], scope)
    return graph.op("Reshape", [mixed, joined], scope, allowzero=0)
