"""A causal two-layer transformer with dynamic batch and length, spelt out in small operators."""

from __future__ import annotations

import numpy as np

from .graph import Generated, Graph

N_LAYERS, N_HEADS, N_EMBEDDING, N_HIDDEN = 2, 4, 32, 64
N_TOKENS, MAX_LENGTH = 50, 64
HEAD_SIZE = N_EMBEDDING // N_HEADS
SAMPLE_SHAPE = (2, 11)


def transformer() -> Generated:
    graph = Graph("transformer", seed=2)
    ids = graph.input("ids", np.int64, ["batch", "seq"])
    batch, seq = _size(graph, ids, 0), _size(graph, ids, 1)
    x, mask = _embedding(graph, ids, seq), _causal_mask(graph, seq)
    for layer in range(N_LAYERS):
        scope = f"/layers.{layer}"
        attended = _attention(graph, _norm(graph, x, f"{scope}/norm1"), mask, batch, seq, f"{scope}/attn")
        x = graph.node("Add", [x, attended], f"{scope}/Add")
        x = graph.node("Add", [x, _mlp(graph, _norm(graph, x, f"{scope}/norm2"), f"{scope}/mlp")], f"{scope}/Add_1")
    weight = graph.random("head.weight", [N_EMBEDDING, N_TOKENS], scale=N_EMBEDDING**-0.5)
    graph.node("MatMul", [_norm(graph, x, "/norm"), weight], "/head/MatMul", output="logits")
    graph.output("logits", np.float32, ["batch", "seq", N_TOKENS])
    tokens = graph.rng.integers(0, N_TOKENS, SAMPLE_SHAPE, dtype=np.int64)
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


def _embedding(graph: Graph, ids: str, seq: str) -> str:
    tokens = graph.random("tokens.weight", [N_TOKENS, N_EMBEDDING], scale=1.0)
    places = graph.random("positions.weight", [MAX_LENGTH, N_EMBEDDING], scale=0.3)
    token = graph.node("Gather", [tokens, ids], "/tokens/Gather", axis=0)
    place = graph.node("Gather", [places, _positions(graph, seq, "/positions")], "/positions/Gather", axis=0)
    return graph.node("Add", [token, place], "/Add")


def _causal_mask(graph: Graph, seq: str) -> str:
    """Bool [1, 1, seq, seq]: true where a query may look at a key."""
    positions = _positions(graph, seq, "/mask")
    queries = graph.node("Unsqueeze", [positions, _axes(graph, "/mask/axes_q", 0, 1, 3)], "/mask/Unsqueeze")
    keys = graph.node("Unsqueeze", [positions, _axes(graph, "/mask/axes_k", 0, 1, 2)], "/mask/Unsqueeze_1")
    return graph.node("GreaterOrEqual", [queries, keys], "/mask/GreaterOrEqual")


def _norm(graph: Graph, x: str, scope: str) -> str:
    scale = graph.initializer(f"{scope[1:]}.weight", np.ones(N_EMBEDDING, np.float32))
    bias = graph.random(f"{scope[1:]}.bias", [N_EMBEDDING], scale=0.1)
    return graph.node("LayerNormalization", [x, scale, bias], f"{scope}/LayerNormalization", axis=-1, epsilon=1e-5)


def _linear(graph: Graph, x: str, scope: str, n_in: int, n_out: int) -> str:
    weight = graph.random(f"{scope[1:]}.weight", [n_in, n_out], scale=n_in**-0.5)
    bias = graph.random(f"{scope[1:]}.bias", [n_out], scale=0.1)
    return graph.node("Add", [bias, graph.node("MatMul", [x, weight], f"{scope}/MatMul")], f"{scope}/Add")


def _attention(graph: Graph, x: str, mask: str, batch: str, seq: str, scope: str) -> str:
    per_head = [batch, seq, _axes(graph, f"{scope}/heads", N_HEADS), _axes(graph, f"{scope}/head_size", HEAD_SIZE)]
    split = graph.node("Concat", per_head, f"{scope}/Concat", axis=0)

    def heads(part: str, perm: list[int]) -> str:
        y = _linear(graph, x, f"{scope}/{part}", N_EMBEDDING, N_EMBEDDING)
        return graph.node(
            "Transpose",
            [graph.node("Reshape", [y, split], f"{scope}/{part}/Reshape")],
            f"{scope}/{part}/Transpose",
            perm=perm,
        )

    query, key, value = heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]), heads("v", [0, 2, 1, 3])
    scale = graph.constant(f"{scope}/scale", np.array(HEAD_SIZE**0.5, np.float32))
    scores = graph.node("Div", [graph.node("MatMul", [query, key], f"{scope}/MatMul"), scale], f"{scope}/Div")
    hidden = graph.constant(f"{scope}/hidden", np.array(np.finfo(np.float32).min, np.float32))
    visible = graph.node("Where", [mask, scores, hidden], f"{scope}/Where")
    weights = graph.node("Softmax", [visible], f"{scope}/Softmax", axis=-1)
    mixed = graph.node("MatMul", [weights, value], f"{scope}/MatMul_1")
    mixed = graph.node("Transpose", [mixed], f"{scope}/Transpose", perm=[0, 2, 1, 3])
    joined = graph.node(
        "Concat", [batch, seq, _axes(graph, f"{scope}/joined", N_EMBEDDING)], f"{scope}/Concat_1", axis=0
    )
    mixed = graph.node("Reshape", [mixed, joined], f"{scope}/Reshape")
    return _linear(graph, mixed, f"{scope}/proj", N_EMBEDDING, N_EMBEDDING)


def _mlp(graph: Graph, x: str, scope: str) -> str:
    x = _linear(graph, x, f"{scope}/fc1", N_EMBEDDING, N_HIDDEN)
    return _linear(graph, _gelu(graph, x, f"{scope}/act"), f"{scope}/fc2", N_HIDDEN, N_EMBEDDING)


def _gelu(graph: Graph, x: str, scope: str) -> str:
    """0.5 x (1 + erf(x / sqrt 2)), as exporters wrote it before Gelu was an operator."""
    root = graph.constant(f"{scope}/root", np.array(2**0.5, np.float32))
    one = graph.constant(f"{scope}/one", np.array(1, np.float32))
    half = graph.constant(f"{scope}/half", np.array(0.5, np.float32))
    erf = graph.node("Erf", [graph.node("Div", [x, root], f"{scope}/Div")], f"{scope}/Erf")
    gate = graph.node("Add", [erf, one], f"{scope}/Add")
    return graph.node("Mul", [graph.node("Mul", [x, gate], f"{scope}/Mul"), half], f"{scope}/Mul_1")
