"""Graphs that run node by node, so that each node can be observed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Interpreter

# A function that takes a list of arguments, which it empties.
Boxed = Callable[[list], Any]


def copied(gm: GraphModule) -> GraphModule:
    """A copy of the graph, independent of later changes; its nodes have the same names."""
    return GraphModule(gm, copy.deepcopy(gm.graph))


class Quiet(Interpreter):
    """An interpreter that does not alter the model's errors."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.extra_traceback = False


def boxed(make: Callable[[], Interpreter]) -> Boxed:
    """A callable that creates an interpreter for each execution, so that executions may overlap."""

    def run(arguments: list) -> Any:
        interpreter = make()
        taken = tuple(arguments)
        arguments.clear()
        return interpreter.run(*taken, enable_io_processing=False)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
