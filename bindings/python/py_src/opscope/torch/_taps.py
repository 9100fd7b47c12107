"""Graphs with inserted calls that report operators' results."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch.fx import GraphModule

from .._native.capture import Graph
from . import _bodies
from ._graph import Described
from ._storage import OPERATOR

try:
    from torch.fx.graph import _BoxedCodeGen
except ImportError:  # Before torch 2.9.
    _BoxedCodeGen = None

# A function that takes a list of arguments, which it empties.
Boxed = Callable[[list], Any]


def resolved(result: Any) -> Any:
    """The same tensors, with their elements materialised in memory."""
    if isinstance(result, (tuple, list)):
        return [resolved(part) for part in result]
    if not isinstance(result, torch.Tensor):
        return result
    try:
        return result.resolve_conj().resolve_neg()
    except (NotImplementedError, RuntimeError):
        # This layout never needs materialising.
        return result


def plain(gm: GraphModule) -> Boxed:
    """The unchanged graph."""
    return boxed(gm, copy.deepcopy(gm.graph))


def tapped(gm: GraphModule, described: Described, attached: Graph) -> Boxed:
    """The graph with a call after each tapped operator, and one that reports wanted values without
    a producer. Its first argument is the run that receives the calls.
    """
    return boxed(*_Tapper(described, attached).tapped(gm, None))


class _Tapper:
    def __init__(self, described: Described, attached: Graph) -> None:
        self.described = described
        self.tells_failures = attached.tells_failures
        self.parameters = attached.parameters
        self.tapped_operators: dict[int | None, list[int]] = {}
        for number in attached.tapped:
            self.tapped_operators.setdefault(described.operators[number].body, []).append(number)
        self.wanted: dict[int | None, list[int]] = {}
        for number in attached.wanted:
            self.wanted.setdefault(described.values[number].body, []).append(number)

    def tapped(self, gm: GraphModule, body: int | None) -> tuple[Any, Any]:
        """A copy of a graph with calls, and the owner of its attributes."""
        described = self.described
        graph = copy.deepcopy(gm.graph)
        # A copy has the same nodes in the same order.
        ours = dict(zip(gm.graph.nodes, graph.nodes))
        arguments = [node for node in graph.nodes if node.op == "placeholder"]
        if body is None:
            with graph.inserting_before(next(iter(graph.nodes))):
                run = graph.placeholder("opscope_run")
            after = arguments[-1] if arguments else run
        else:
            place = graph.inserting_after(arguments[-1]) if arguments else graph.inserting_before(None)
            with place:
                after = run = graph.call_function(_bodies.enter, (body,))
        given = []
        for number in self.wanted.get(body, ()):
            value = described.values[number]
            if value.node is None or value.node.op == "call_function":
                continue
            if value.node.op == "placeholder" and value.name.endswith(value.node.name):
                given.append(number)
            else:
                _give(graph, run, [number], described, ours, after=ours[value.node])
        if given:
            _give(graph, run, given, described, ours, after=after)
        order = {node: i for i, node in enumerate(gm.graph.nodes)}
        # For operators that wait, the last call after them.
        shown: dict[Any, Any] = {}
        for number in self.tapped_operators.get(body, ()):
            called = described.operators[number]
            node = ours[called.node]
            outputs = [output for output in called.outputs if output is not None]
            is_lazy = any(described.values[output].is_lazy for output in outputs)
            if self.tells_failures:
                with graph.inserting_before(node):
                    graph.call_method("enter_operator", (run, number))
            # Results of a collective are reported once they are ready, and before the operator that
            # waits for them.
            last = max((wait for wait, _ in called.waits), key=order.__getitem__, default=None)
            last = node if last is None else ours[last]
            after, result = shown.get(last, last), node
            if called.waits:
                after, result = _awaited(graph, called.waits, ours, after)
            if is_lazy:
                with graph.inserting_after(after):
                    after = result = graph.call_function(resolved, (result,))
            with graph.inserting_after(after):
                shown[last] = graph.call_method("tap", (run, number, result))
        if body is None:
            _refresh(graph, run, self.parameters, described, ours)
        return self._with_bodies(gm, graph, body, ours), graph

    def _with_bodies(self, gm: GraphModule, graph: Any, body: int | None, ours: dict) -> Any:
        """Replaces the graphs inside operators by graphs with calls."""
        inside = [
            (number, nested)
            for number, nested in enumerate(self.described.bodies)
            if nested.parent == body and nested.reason is None and self._is_anything_shown(number)
        ]
        if not inside:
            return gm
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        root = {target: _bodies.attribute(gm, target) for target in targets}
        for number, nested in inside:
            name = f"opscope_body_{number}"
            root[name] = made = GraphModule(*self.tapped(nested.gm, number))
            made.meta.update(nested.gm.meta)
            outer, source = ours[self.described.operators[nested.outer].node], ours[nested.node]
            with graph.inserting_before(outer):
                outer.replace_input_with(source, graph.get_attr(name))
        used = {str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module") and node.users}
        for node in [node for node in graph.nodes if node.op == "get_attr" and not node.users]:
            graph.erase_node(node)
        return {name: found for name, found in root.items() if name in used}

    def _is_anything_shown(self, body: int) -> bool:
        """Whether a body or a nested one has anything to report."""
        if body in self.tapped_operators:
            return True
        bodies = enumerate(self.described.bodies)
        return any(nested.parent == body and self._is_anything_shown(number) for number, nested in bodies)


def _awaited(graph: Any, waits: list[tuple[Any, int | None]], ours: dict, after: Any) -> tuple[Any, Any]:
    """The results that operators have waited for, after the node `after`; also returns the last
    node."""
    results = []
    for wait, position in waits:
        result = ours[wait]
        if position is not None:
            with graph.inserting_after(after):
                after = result = graph.call_function(operator.getitem, (result, position))
        results.append(result)
    return after, results[0] if len(results) == 1 else tuple(results)


def _refresh(graph: Any, run: Any, parameters: list[int], described: Described, ours: dict) -> None:
    """Reports updated arguments if the graph writes to them."""
    written = [number for number in parameters if described.values[number].stability == OPERATOR]
    nodes = {number: described.values[number].node for number in written}
    numbers = [number for number, node in nodes.items() if node is not None and node.op == "placeholder"]
    numbers = [number for number in numbers if isinstance(nodes[number].meta.get("val"), torch.Tensor)]
    if numbers:
        with graph.inserting_before(next(node for node in graph.nodes if node.op == "output")):
            graph.call_method("refresh", (run, tuple(numbers), tuple(ours[nodes[number]] for number in numbers)))


def _give(graph: Any, run: Any, numbers: list[int], described: Described, ours: dict, *, after: Any) -> None:
    tensors: list[Any] = []
    for number in numbers:
        value = described.values[number]
        node = ours[value.node]
        if value.is_lazy:
            with graph.inserting_after(after):
                after = node = graph.call_function(resolved, (node,))
        tensors.append(node)
    with graph.inserting_after(after):
        graph.call_method("give", (run, tuple(numbers), tuple(tensors)))


def boxed(gm: Any, graph: Any) -> Boxed:
    """The code of a graph of `gm`, called with a list of arguments, which it empties."""
    if _BoxedCodeGen is not None:
        graph.set_codegen(_BoxedCodeGen())
        return GraphModule(gm, graph).forward
    forward = GraphModule(gm, graph).forward

    def call(arguments: list) -> Any:
        taken = tuple(arguments)
        arguments.clear()
        return forward(*taken)

    call.graph_code = forward.__code__  # type: ignore[attr-defined]
    return call


def code_of(call: Boxed) -> CodeType:
    """The code object of a graph in tracebacks."""
    return getattr(call, "graph_code", None) or call.__code__
