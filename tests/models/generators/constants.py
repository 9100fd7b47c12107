"""Arithmetic with constants that engines like to simplify, on values for which simplifying is wrong."""

from __future__ import annotations

import numpy as np

from .graph import Generated, Graph

# Zero times NaN is no zero; the root of minus infinity is not its power of one half; the reciprocal of the smallest
# number is infinite; three quarters of the largest float16 is no longer exact by way of a reciprocal.
FLOATS = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, np.inf, np.nan)
HARD = {
    np.float32: (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-39, -1e-39, 3e38, -7.0, 7.5, 1.0, 5.0),
    np.float64: (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, -1e-310, 1e308, -7.0, 7.5, 1.0, 5.0),
    np.float16: (np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8, 65504.0, -7.0, 7.5, 1.0, 49128.0),
}
TINY = {np.float32: 1e-39, np.float64: 1e-310, np.float16: 65504.0}
INTEGERS = (0, 1, -1, 2, 4, 3, 64)


def constants() -> Generated:
    """Each operator with each constant on the right; where that is another calculation, on the left too."""
    graph = Graph("constants", seed=12)
    inputs = {}
    for dtype, values in HARD.items():
        name = np.dtype(dtype).name
        graph.input(name, dtype, ["n"])
        inputs[name] = np.array(values, dtype)
        for op_type in ("Add", "Sub", "Mul", "Div", "Pow"):
            if op_type == "Pow" and dtype == np.float16:
                continue
            _arithmetic(graph, op_type, name, dtype, [*FLOATS, TINY[dtype]])
    whole = np.array([7, -7, 8, -8, 1, 0, -1, 2**31 - 1, -(2**31) + 1])
    for dtype in (np.int32, np.int64):
        name = np.dtype(dtype).name
        graph.input(name, dtype, ["m"])
        inputs[name] = whole.astype(dtype)
        for op_type in ("Add", "Sub", "Mul", "Div", "Mod"):
            divisors = [number for number in INTEGERS if number or op_type not in ("Div", "Mod")]
            _arithmetic(graph, op_type, name, dtype, divisors, left=op_type not in ("Div", "Mod"))
    return Generated(graph.model(), {"sample": inputs})


def _arithmetic(graph: Graph, op_type: str, x: str, dtype: type, numbers: list, left: bool = True) -> None:
    for i, number in enumerate(numbers):
        constant = graph.initializer(f"{op_type}/{x}/{i}", np.array([number], dtype))
        sides = {"right": [x, constant], "left": [constant, x]} if left else {"right": [x, constant]}
        for side, names in sides.items():
            result = graph.node(op_type, names, f"/{op_type}/{x}/{i}/{side}")
            graph.output(result, dtype, ["m" if np.dtype(dtype).kind == "i" else "n"])
