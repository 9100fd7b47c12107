"""Graphs that run node by node, so that each node can be looked at."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Interpreter

# A function that is called with a list of arguments, which it empties.
Boxed = Callable[[list], Any]


def copied(gm: GraphModule) -> GraphModule:
    """The graph as it is now, whatever is done to it later; its nodes have the same names."""
    return GraphModule(gm, copy.deepcopy(gm.graph))


class Quiet(Interpreter):
    """An interpreter that leaves errors of the model as they are."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.extra_traceback = False


def boxed(make: Callable[[], Interpreter]) -> Boxed:
    """Something to call, which makes an interpreter for each execution: two may be at it at once."""

    def run(arguments: list) -> Any:
        interpreter = make()
        taken = tuple(arguments)
        arguments.clear()
        return interpreter.run(*taken, enable_io_processing=False)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run
