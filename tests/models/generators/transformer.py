"""A causal transformer with dynamic batch and length, spelt out in small operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Generated, Graph


@dataclass(frozen=True)
class Size:
    n_layers: int
    n_heads: int
    n_embedding: int
    n_hidden: int
    n_tokens: int
    max_length: int
    sample_shape: tuple[int, int]

    @property
    def head_size(self) -> int:
        return self.n_embedding // self.n_heads


SMALL = Size(2, 4, 32, 64, 50, 64, (2, 11))
# Between DistilBERT and BERT-small.
MEDIUM = Size(6, 8, 512, 2048, 8000, 128, (1, 128))


def transformer() -> Generated:
    return _transformer(Graph("transformer", seed=2), SMALL)


def transformer_medium() -> Generated:
    return _transformer(Graph("transformer_medium", seed=3), MEDIUM)


def _transformer(graph: Graph, s: Size) -> Generated:
    ids = graph.input("ids", np.int64, ["batch", "seq"])
    batch, seq = _size(graph, ids, 0), _size(graph, ids, 1)
    x, mask = _embedding(graph, s, ids, seq), _causal_mask(graph, seq)
    for layer in range(s.n_layers):
        scope = f"/layers.{layer}"
        attended = _attention(graph, s, _norm(graph, s, x, f"{scope}/norm1"), mask, batch, seq, f"{scope}/attn")
        x = graph.node("Add", [x, attended], f"{scope}/Add")
        x = graph.node("Add", [x, _mlp(graph, s, _norm(graph, s, x, f"{scope}/norm2"), f"{scope}/mlp")], f"{scope}/Add_1")
    weight = graph.random("head.weight", [s.n_embedding, s.n_tokens], scale=s.n_embedding**-0.5)
    graph.node("MatMul", [_norm(graph, s, x, "/norm"), weight], "/head/MatMul", output="logits")
    graph.output("logits", np.float32, ["batch", "seq", s.n_tokens])
    tokens = graph.rng.integers(0, s.n_tokens, s.sample_shape, dtype=np.int64)
    return Generated(graph.model(), {"sample": {"ids": tokens}})


def _size(graph: Graph, value: str, axis: int) -> str:
    """The length of one axis as a one-element vector, the way an exporter spells `x.size(axis)`."""
    name = f"/size_{axis}"
    shape = graph.node("Shape", [value], f"{name}/Shape")
    index = graph.constant(f"{name}/Constant", np.array(axis, np.int64))
    length = graph.node("Gather", [shape, index], f"{name}/Gather", axis=0)
    return graph.node("Unsqueeze", [length, _axes(graph, f"{name}/axes", 0)], f"{name}/Unsqueeze")


def _axes(graph: Graph, name: str, *axes: int) -> str:
    return graph.constant(name, np.array(axes, np.int64))


def _positions(graph: Graph, seq: str, scope: str) -> str:
    zero = graph.constant(f"{scope}/zero", np.array(0, np.int64))
    one = graph.constant(f"{scope}/one", np.array(1, np.int64))
    limit = graph.node("Squeeze", [seq, _axes(graph, f"{scope}/axes", 0)], f"{scope}/Squeeze")
    return graph.node("Range", [zero, limit, one], f"{scope}/Range")


def _embedding(graph: Graph, s: Size, ids: str, seq: str) -> str:
    tokens = graph.random("tokens.weight", [s.n_tokens, s.n_embedding], scale=1.0)
    places = graph.random("positions.weight", [s.max_length, s.n_embedding], scale=0.3)
    token = graph.node("Gather", [tokens, ids], "/tokens/Gather", axis=0)
    place = graph.node("Gather", [places, _positions(graph, seq, "/positions")], "/positions/Gather", axis=0)
    return graph.node("Add", [token, place], "/Add")


def _causal_mask(graph: Graph, seq: str) -> str:
    """Bool [1, 1, seq, seq]: true where a query may look at a key."""
    positions = _positions(graph, seq, "/mask")
    queries = graph.node("Unsqueeze", [positions, _axes(graph, "/mask/axes_q", 0, 1, 3)], "/mask/Unsqueeze")
    keys = graph.node("Unsqueeze", [positions, _axes(graph, "/mask/axes_k", 0, 1, 2)], "/mask/Unsqueeze_1")
    return graph.node("GreaterOrEqual", [queries, keys], "/mask/GreaterOrEqual")


def _norm(graph: Graph, s: Size, x: str, scope: str) -> str:
    scale = graph.initializer(f"{scope[1:]}.weight", np.ones(s.n_embedding, np.float32))
    bias = graph.random(f"{scope[1:]}.bias", [s.n_embedding], scale=0.1)
    return graph.node("LayerNormalization", [x, scale, bias], f"{scope}/LayerNormalization", axis=-1, epsilon=1e-5)


def _linear(graph: Graph, x: str, scope: str, n_in: int, n_out: int) -> str:
    weight = graph.random(f"{scope[1:]}.weight", [n_in, n_out], scale=n_in**-0.5)
    bias = graph.random(f"{scope[1:]}.bias", [n_out], scale=0.1)
    return graph.node("Add", [bias, graph.node("MatMul", [x, weight], f"{scope}/MatMul")], f"{scope}/Add")


def _attention(graph: Graph, s: Size, x: str, mask: str, batch: str, seq: str, scope: str) -> str:
    per_head = [batch, seq, _axes(graph, f"{scope}/heads", s.n_heads), _axes(graph, f"{scope}/head_size", s.head_size)]
    split = graph.node("Concat", per_head, f"{scope}/Concat", axis=0)

    def heads(part: str, perm: list[int]) -> str:
        y = _linear(graph, x, f"{scope}/{part}", s.n_embedding, s.n_embedding)
        return graph.node(
            "Transpose",
            [graph.node("Reshape", [y, split], f"{scope}/{part}/Reshape")],
            f"{scope}/{part}/Transpose",
            perm=perm,
        )

    query, key, value = heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]), heads("v", [0, 2, 1, 3])
    scale = graph.constant(f"{scope}/scale", np.array(s.head_size**0.5, np.float32))
    scores = graph.node("Div", [graph.node("MatMul", [query, key], f"{scope}/MatMul"), scale], f"{scope}/Div")
    hidden = graph.constant(f"{scope}/hidden", np.array(np.finfo(np.float32).min, np.float32))
    visible = graph.node("Where", [mask, scores, hidden], f"{scope}/Where")
    weights = graph.node("Softmax", [visible], f"{scope}/Softmax", axis=-1)
    mixed = graph.node("MatMul", [weights, value], f"{scope}/MatMul_1")
    mixed = graph.node("Transpose", [mixed], f"{scope}/Transpose", perm=[0, 2, 1, 3])
    joined = graph.node(
        "Concat", [batch, seq, _axes(graph, f"{scope}/joined", s.n_embedding)], f"{scope}/Concat_1", axis=0
    )
    mixed = graph.node("Reshape", [mixed, joined], f"{scope}/Reshape")
    return _linear(graph, mixed, f"{scope}/proj", s.n_embedding, s.n_embedding)


def _mlp(graph: Graph, s: Size, x: str, scope: str) -> str:
    x = _linear(graph, x, f"{scope}/fc1", s.n_embedding, s.n_hidden)
    return _linear(graph, _gelu(graph, x, f"{scope}/act"), f"{scope}/fc2", s.n_hidden, s.n_embedding)


def _gelu(graph: Graph, x: str, scope: str) -> str:
    """0.5 x (1 + erf(x / sqrt 2)), as exporters wrote it before Gelu was an operator."""
    root = graph.constant(f"{scope}/root", np.array(2**0.5, np.float32))
    one = graph.constant(f"{scope}/one", np.array(1, np.float32))
    half = graph.constant(f"{scope}/half", np.array(0.5, np.float32))
    erf = graph.node("Erf", [graph.node("Div", [x, root], f"{scope}/Div")], f"{scope}/Erf")
    gate = graph.node("Add", [erf, one], f"{scope}/Add")
    return graph.node("Mul", [graph.node("Mul", [x, gate], f"{scope}/Mul"), half], f"{scope}/Mul_1")
