"""A translator: LSTM and GRU read a sentence, a Loop writes another until it writes the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Generated, Graph
from .layers import gemm

END = 0


@dataclass(frozen=True)
class Size:
    n: int
    n_tokens: int
    n_read: int
    n_written: int


FULL = Size(512, 8000, 32, 32)
SMALL = Size(12, 20, 6, 4)


def seq2seq(is_full: bool) -> Generated:
    """At full size 18 million weights; else 12 channels, four steps."""
    s = FULL if is_full else SMALL
    graph = Graph("main_graph", seed=6)
    ids = graph.input("ids", np.int64, ["seq"])
    tokens = graph.random("embedding.weight", [s.n_tokens, s.n], scale=0.5)
    rows = graph.op("Gather", [tokens, ids], "/embedding", axis=0)
    x = graph.op("Unsqueeze", [rows, graph.integers([1], "/encoder")], "/encoder")
    x, state = _encoder(graph, s, x)
    keys = graph.op("Squeeze", [x, graph.integers([1], "/encoder")], "/encoder")
    trips = graph.initializer("max_length", np.array(s.n_written, np.int64))
    going = graph.initializer("going", np.array(True))
    first = graph.initializer("first", np.array([1], np.int64))
    body = _body(graph, s, tokens, keys)
    _, _, words, scores = graph.ops("Loop", [trips, going, first, state], 4, "/decoder", body=body.proto())
    graph.output(graph.op("Squeeze", [words, graph.integers([1])], output="words"), np.int64, ["written"])
    graph.output(
        graph.op("Squeeze", [scores, graph.integers([1])], output="scores"), np.float32, ["written", s.n_tokens]
    )
    sentence = graph.rng.integers(1, s.n_tokens, s.n_read, dtype=np.int64)
    return Generated(graph.model(), {"sample": {"ids": sentence}})


def _encoder(graph: Graph, s: Size, x: str) -> tuple[str, str]:
    """Both directions of an LSTM, then a GRU; [seq, 1, n] and its last state [1, n]."""
    scale = s.n**-0.5
    w = graph.random("encoder.lstm.W", [2, 4 * s.n, s.n], scale)
    r = graph.random("encoder.lstm.R", [2, 4 * s.n, s.n], scale)
    b = graph.random("encoder.lstm.B", [2, 8 * s.n], 0.1)
    y, _, _ = graph.ops("LSTM", [x, w, r, b], 3, "/encoder/lstm", hidden_size=s.n, direction="bidirectional")
    y = graph.op("Transpose", [y], "/encoder/lstm", perm=[0, 2, 1, 3])
    y = graph.op("Reshape", [y, graph.integers([0, 0, -1], "/encoder/lstm")], "/encoder/lstm", allowzero=0)
    w = graph.random("encoder.gru.W", [1, 3 * s.n, 2 * s.n], scale)
    r = graph.random("encoder.gru.R", [1, 3 * s.n, s.n], scale)
    b = graph.random("encoder.gru.B", [1, 6 * s.n], 0.1)
    y, last = graph.ops("GRU", [y, w, r, b], 2, "/encoder/gru", hidden_size=s.n, linear_before_reset=1)
    axes = graph.integers([1], "/encoder/gru")
    last = graph.op("Squeeze", [last, graph.integers([0], "/encoder/gru")], "/encoder/gru")
    return graph.op("Squeeze", [y, axes], "/encoder/gru"), last


def _body(graph: Graph, s: Size, tokens: str, keys: str) -> Graph:
    """One word: attention to what was read, a state, and the word that fits best; unless it is the end, go on."""
    body = Graph("body", seed=7)
    scope = "/decoder/step"
    body.input("iteration", np.int64, [])
    body.input("going", np.bool_, [])
    word = body.input("word", np.int64, [1])
    state = body.input("state", np.float32, [1, s.n])
    x = body.op("Gather", [tokens, word], f"{scope}/embedding", axis=0)
    turned = body.op("Transpose", [keys], f"{scope}/attention", perm=[1, 0])
    weights = body.op(
        "Softmax", [body.op("MatMul", [state, turned], f"{scope}/attention")], f"{scope}/attention", axis=-1
    )
    read = body.op("MatMul", [weights, keys], f"{scope}/attention")
    joined = body.op("Concat", [x, state, read], scope, axis=-1)
    gate = body.op("Sigmoid", [gemm(body, joined, f"{scope}/gate", 3 * s.n, s.n)], scope)
    new = body.op("Tanh", [gemm(body, joined, f"{scope}/new", 3 * s.n, s.n)], scope)
    moved = body.op("Mul", [gate, body.op("Sub", [new, state], scope)], scope)
    body.op("Add", [state, moved], scope, "state_out")
    scores = gemm(body, "state_out", f"{scope}/head", s.n, s.n_tokens, "scores_out")
    body.op("ArgMax", [scores], scope, "word_out", axis=-1, keepdims=0)
    end = body.integers([END], scope)
    is_end = body.op("Equal", ["word_out", end], scope)
    body.op("Not", [body.op("Squeeze", [is_end], scope)], scope, "going_out")
    body.op("Identity", ["word_out"], scope, "written")
    body.output("going_out", np.bool_, [])
    body.output("word_out", np.int64, [1])
    body.output("state_out", np.float32, [1, s.n])
    body.output("written", np.int64, [1])
    body.output("scores_out", np.float32, [1, s.n_tokens])
    return body
