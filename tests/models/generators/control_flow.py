"""Graphs inside graphs: an If whose branch the input chooses, and a Loop."""

from __future__ import annotations

import numpy as np

from .graph import Generated, Graph

SHAPE = [2, 3]


def control_flow() -> Generated:
    """`flag` chooses the branch; both read `/before/Relu`'s output from the graph around them."""
    graph = Graph("control_flow", seed=3)
    flag = graph.input("flag", np.bool_, [])
    x = graph.input("x", np.float32, SHAPE)
    before = graph.node("Relu", [x], "/before/Relu")
    two = graph.initializer("two", np.array(2, np.float32))

    then_graph = Graph("then_branch")
    doubled = then_graph.node("Mul", [before, two], "/then/Mul")
    then_graph.node("Sigmoid", [doubled], "/then/Sigmoid", output="then_out")
    then_graph.output("then_out", np.float32, SHAPE)

    else_graph = Graph("else_branch")
    negated = else_graph.node("Neg", [before], "/else/Neg")
    shifted = else_graph.node("Add", [negated, two], "/else/Add")
    else_graph.node("Tanh", [shifted], "/else/Tanh", output="else_out")
    else_graph.output("else_out", np.float32, SHAPE)

    chosen = graph.node("If", [flag], "/If", then_branch=then_graph.proto(), else_branch=else_graph.proto())
    graph.node("Add", [chosen, before], "/after/Add", output="y")
    graph.output("y", np.float32, SHAPE)
    values = graph.rng.standard_normal(SHAPE).astype(np.float32)
    return Generated(
        graph.model(),
        {"then": {"flag": np.array(True), "x": values}, "else": {"flag": np.array(False), "x": values}},
    )


def loop() -> Generated:
    """Doubles `x` three times. The embedded engine has no Loop, so this model is for its refusal."""
    graph = Graph("loop", seed=4)
    x = graph.input("x", np.float32, SHAPE)
    before = graph.node("Relu", [x], "/before/Relu")
    trips = graph.initializer("trips", np.array(3, np.int64))
    keep_going = graph.initializer("keep_going", np.array(True))

    body = Graph("body")
    body.input("iteration", np.int64, [])
    body.input("going", np.bool_, [])
    body.input("carried", np.float32, SHAPE)
    body.node("Identity", ["going"], "/body/Identity", output="going_out")
    body.node("Add", ["carried", "carried"], "/body/Add", output="carried_out")
    body.output("going_out", np.bool_, [])
    body.output("carried_out", np.float32, SHAPE)

    doubled = graph.node("Loop", [trips, keep_going, before], "/Loop", body=body.proto())
    graph.node("Neg", [doubled], "/after/Neg", output="y")
    graph.output("y", np.float32, SHAPE)
    return Generated(graph.model(), {"sample": {"x": graph.rng.standard_normal(SHAPE).astype(np.float32)}})


def scan() -> Generated:
    """A running sum and the rows on the way, with a weight from the graph around the body."""
    graph = Graph("scan", seed=5)
    start = graph.input("start", np.float32, [3])
    rows = graph.input("rows", np.float32, ["n", 3])
    weight = graph.random("weight", [3], scale=1)
    scaled = graph.node("Mul", [rows, weight], "/before/Mul")

    body = Graph("body")
    body.input("sum_in", np.float32, [3])
    body.input("row", np.float32, [3])
    body.node("Add", ["sum_in", "row"], "/body/Add", output="sum_out")
    body.node("Identity", ["sum_out"], "/body/Identity", output="row_out")
    body.output("sum_out", np.float32, [3])
    body.output("row_out", np.float32, [3])

    total, sums = graph.nodes("Scan", [start, scaled], "/Scan", 2, body=body.proto(), num_scan_inputs=1)
    graph.node("Neg", [total], "/after/Neg", output="y")
    graph.output("y", np.float32, [3])
    graph.output(sums, np.float32, ["n", 3])
    values = {"start": np.ones(3, np.float32), "rows": graph.rng.standard_normal((5, 3)).astype(np.float32)}
    return Generated(graph.model(), {"sample": values})
