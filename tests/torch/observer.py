"""A backend that runs the graphs of AOT autograd node by node, and remembers all shapes and some of the bytes.

It shares no code with Opscope's describer of graphs: what an operator reads and returns is what goes in and comes out.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from models import bits
from reference import Graph, Recording, tensors
from torch import fx

# Results of these are whatever was in memory.
_UNDEFINED = ("aten.empty", "aten.new_empty")


@dataclass
class Slots:
    """Tensors on both sides of an operator."""

    inputs: list[Any]
    outputs: list[Any]


@dataclass
class Execution:
    """The execution of an operator with tensors in one step."""

    target: str
    shapes: Slots
    # Of sampled operators only.
    payloads: Slots | None


def _is_undefined(node: fx.Node) -> bool:
    return str(node.target).startswith(_UNDEFINED)


class _Interpreter(fx.Interpreter):
    def __init__(self, gm: fx.GraphModule, run: dict[str, Execution], every: int) -> None:
        super().__init__(gm)
        self.executions = run
        self.every = every

    def run_node(self, node: fx.Node) -> Any:
        if node.op != "call_function" or node.target is operator.getitem:
            return super().run_node(node)
        inputs = list(tensors(self.fetch_args_kwargs_from_env(node)))
        is_defined = not any(map(_is_undefined, (node, *node.all_input_nodes)))
        is_sampled = is_defined and len(self.executions) % self.every == 0
        read = [bits(tensor) for tensor in inputs] if is_sampled else []
        shapes = [tuple(tensor.shape) for tensor in inputs]
        result = super().run_node(node)
        outputs = [] if _is_undefined(node) else list(tensors(result))
        if inputs or outputs:
            payloads = Slots(read, [bits(tensor) for tensor in outputs]) if is_sampled else None
            given = [tuple(tensor.shape) for tensor in outputs]
            self.executions[node.name] = Execution(str(node.target), Slots(shapes, given), payloads)
        return result


class Observer(Recording):
    """The backend. Every `every`-th operator is sampled."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every

    def interpreter(self, gm: fx.GraphModule, graph: Graph) -> fx.Interpreter:
        """Remembers shapes, and bytes of some."""
        return _Interpreter(gm, graph.runs[-1], self.every)
