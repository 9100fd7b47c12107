"""Operators that carry a state along a sequence, and integers that other operators compute."""

from __future__ import annotations

import numpy as np

from .graph import Generated, Graph

LENGTH, BATCH, WIDTH, HIDDEN = 5, 2, 4, 3


def recurrent() -> Generated:
    """Each recurrent operator, alone, in a branch and in the body of a Scan, where each starts over."""
    graph = Graph("recurrent", seed=11)
    x = graph.input("x", np.float32, [LENGTH, BATCH, WIDTH])
    flag = graph.input("flag", np.bool_, [])
    dividend = graph.input("dividend", np.float32, [4])
    divisor = graph.input("divisor", np.float32, [4])
    gru = [_weights(graph, "gru", 3), *_gru_attributes()]
    whole, _ = graph.nodes("GRU", [x, *gru[0]], "/GRU", 2, **gru[1])
    _, last = graph.nodes("GRU", [x, *gru[0]], "/GRU_1", 2, **gru[2])
    starts = [graph.random(name, [1, BATCH, HIDDEN], scale=1) for name in ("hidden", "cell")]
    lstm = [x, *_weights(graph, "lstm", 4), "", *starts]
    _, hidden, cell = graph.nodes("LSTM", lstm, "/LSTM", 3, hidden_size=HIDDEN)
    both = graph.nodes(
        "RNN", [x, *_weights(graph, "rnn", 1, 2)], "/RNN", 2, hidden_size=HIDDEN, direction="bidirectional"
    )
    then_graph, else_graph = Graph("then_branch"), Graph("else_branch")
    then_graph.nodes("GRU", [x, *gru[0]], "/then/GRU", 2, **gru[1])
    then_graph.output("/then/GRU_output_1", np.float32, [1, BATCH, HIDDEN])
    else_graph.nodes("GRU", [x, *gru[0]], "/else/GRU", 2, **gru[2])
    else_graph.output("/else/GRU_output_1", np.float32, [1, BATCH, HIDDEN])
    chosen = graph.node("If", [flag], "/If", then_branch=then_graph.proto(), else_branch=else_graph.proto())
    scanned = _scan(graph, x, gru)
    for value, n_directions in ((last, 1), (hidden, 1), (cell, 1), (both[1], 2), (chosen, 1)):
        graph.output(value, np.float32, [n_directions, BATCH, HIDDEN])
    graph.output(whole, np.float32, [LENGTH, 1, BATCH, HIDDEN])
    graph.output(both[0], np.float32, [LENGTH, 2, BATCH, HIDDEN])
    graph.output(scanned, np.float32, [3, 1, BATCH, HIDDEN])
    _integers(graph, dividend, divisor)
    values = {
        "x": graph.rng.standard_normal((LENGTH, BATCH, WIDTH)).astype(np.float32),
        "flag": np.array(True),
        "dividend": np.array([-6, 7, -8, 9], np.float32),
        "divisor": np.array([7, -3, 2, 4], np.float32),
    }
    return Generated(graph.model(), {"sample": values})


def _gru_attributes() -> list[dict[str, int]]:
    """Without and with the bias of the product inside the gate, which engines compute on two ways."""
    return [{"hidden_size": HIDDEN}, {"hidden_size": HIDDEN, "linear_before_reset": 1}]


def _weights(graph: Graph, name: str, n_gates: int, n_directions: int = 1) -> list[str]:
    return [
        graph.random(f"{name}_w", [n_directions, n_gates * HIDDEN, WIDTH], scale=1),
        graph.random(f"{name}_r", [n_directions, n_gates * HIDDEN, HIDDEN], scale=1),
        graph.random(f"{name}_b", [n_directions, 2 * n_gates * HIDDEN], scale=1),
    ]


def _scan(graph: Graph, x: str, gru: list) -> str:
    """The whole sequence, three times over: as it is, doubled and halved."""
    factors = graph.initializer("factors", np.array([1, 2, 0.5], np.float32))
    n_rounds = graph.initializer("n_rounds", np.array(0, np.float32))
    body = Graph("body")
    body.input("n_in", np.float32, [])
    body.input("factor", np.float32, [])
    body.node("Cast", ["n_in"], "/body/Cast", to=7)
    body.node("Add", ["/body/Cast_output_0", body.integers(1)], "/body/Add")
    body.node("Cast", ["/body/Add_output_0"], "/body/Cast_1", output="n_out", to=1)
    body.node("Mul", [x, "factor"], "/body/Mul")
    body.nodes("GRU", ["/body/Mul_output_0", *gru[0]], "/body/GRU", 2, **gru[2])
    body.output("n_out", np.float32, [])
    body.output("/body/GRU_output_1", np.float32, [1, BATCH, HIDDEN])
    inputs = [n_rounds, factors]
    _, states = graph.nodes("Scan", inputs, "/Scan", 2, body=body.proto(), num_scan_inputs=1)
    return states


def _integers(graph: Graph, dividend: str, divisor: str) -> None:
    """Remainders and quotients of integers that are computed, as indices into longer tensors are."""
    a = graph.node("Cast", [dividend], "/Cast", to=7)
    b = graph.node("Cast", [divisor], "/Cast_1", to=7)
    for op_type in ("Mod", "Div"):
        graph.output(graph.node(op_type, [a, b], f"/{op_type}"), np.int64, [4])
    graph.output(graph.node("Mod", [a, b], "/Mod_1", fmod=1), np.int64, [4])
