"""A chain of element-wise operators on large tensors: many bytes for little arithmetic."""

from __future__ import annotations

import numpy as np

from .graph import Generated, Graph

N_OPERATORS = 64
N_ELEMENTS = 16 << 20


def wide() -> Generated:
    """64 tensors of 64 MiB, 4 GiB in all, of which two are alive at a time."""
    graph = Graph("wide", seed=64)
    x = graph.input("x", np.float32, [N_ELEMENTS])
    step = graph.constant("/step", np.array(1.0009765625, np.float32))
    for index in range(N_OPERATORS - 1):
        x = graph.node("Mul", [x, step], f"/mul_{index}/Mul")
    graph.node("ReduceMax", [x], "/max/ReduceMax", output="y", keepdims=1)
    graph.output("y", np.float32, [1])
    return Generated(graph.model(), {})
